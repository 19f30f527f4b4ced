// A plugin of JupyterLab: numbers such as M16, in what a check says, lead to the page of mistakes.
(() => {
    const { moduleOf, plugins } = window.attentionCourse;
    const NUMBER = /\b(M\d\d)\b/, PAGE = "mistakes.md", TRIES = 50, PAUSE = 100;  // ms
    const SAID = ".jp-OutputArea-output pre:not(.ac-linked)";

    const showRow = async (number) => {
        const rows = () => [...document.querySelectorAll(".jp-MarkdownViewer tr")];
        for (let i = 0; i < TRIES; i++) {
            const row = rows().find(({ cells }) => cells[0].textContent.startsWith(number));
            if (row?.checkVisibility()) return row.scrollIntoView({ block: "center" });
            await new Promise((resolve) => setTimeout(resolve, PAUSE));
        }
    };

    const linkNumbers = (said, open) => {
        said.classList.add("ac-linked");
        if (!/• [a-z-]+ \(M\d\d/.test(said.textContent)) return;  // as a check names a mistake
        const walker = document.createTreeWalker(said, NodeFilter.SHOW_TEXT), texts = [];
        while (walker.nextNode()) texts.push(walker.currentNode);
        for (const text of texts) {
            const parts = text.data.split(NUMBER);
            if (parts.length == 1) continue;
            text.replaceWith(...parts.map((part, i) => {
                if (i % 2 == 0) return part;
                const link = document.createElement("a");
                Object.assign(link, { textContent: part, href: PAGE });
                link.addEventListener("click", (event) => {
                    event.preventDefault();
                    open(part);
                });
                return link;
            }));
        }
    };

    plugins.push(async () => {
        const { INotebookTracker } = await moduleOf("@jupyterlab/notebook");
        return {
            id: "attention-course:mistakes",
            autoStart: true,
            requires: [INotebookTracker],
            activate: (app, notebooks) => {
                notebooks.widgetAdded.connect((_, panel) => {
                    const open = (number) => {
                        const path = panel.context.path.replace(/[^/]*$/, PAGE);
                        app.commands.execute("rendermime:handle-local-link", { path });
                        showRow(number);
                    };
                    let waiting = false;
                    new MutationObserver(() => {
                        if (waiting) return;
                        waiting = true;
                        requestIdleCallback(() => {
                            waiting = false;
                            for (const said of panel.node.querySelectorAll(SAID))
                                linkNumbers(said, open);
                        }, { timeout: 500 });
                    }).observe(panel.node, { childList: true, subtree: true });
                });
            },
        };
    });
})();
