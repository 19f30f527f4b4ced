// A plugin of JupyterLab: a link to a heading of a closed lesson leads to that heading.
//
// JupyterLab looks for it as soon as the notebook is read, before its cells are drawn, and finds
// nothing. So it is asked again until it has gone there and nothing moves any more, or until the
// reader does something.
(() => {
    const { moduleOf, plugins } = window.attentionCourse;
    const FOLLOW = "rendermime:handle-local-link", CALM = 5, TRIES = 50, PAUSE = 100;  // ms
    const TOUCHES = ["wheel", "pointerdown", "keydown"];

    const arrive = async (panel, heading) => {
        const { content } = panel, scroller = content.outerNode ?? content.node;
        let isTouched = false, calm = 0, last = null;
        const touched = () => { isTouched = true; };
        for (const name of TOUCHES) panel.node.addEventListener(name, touched, true);
        for (let i = 0; i < TRIES && calm < CALM && !isTouched && !panel.isDisposed; i++) {
            await content.setFragment(heading);
            const isThere = scroller.scrollTop > 0 && scroller.scrollTop === last;
            calm = isThere ? calm + 1 : 0;
            last = scroller.scrollTop;
            await new Promise((resolve) => setTimeout(resolve, PAUSE));
        }
        for (const name of TOUCHES) panel.node.removeEventListener(name, touched, true);
    };

    plugins.push(async () => {
        const { INotebookTracker } = await moduleOf("@jupyterlab/notebook");
        return {
            id: "attention-course:arrive",
            autoStart: true,
            requires: [INotebookTracker],
            activate: (app, notebooks) => {
                let followed = {};
                app.commands.commandExecuted.connect((_, { id, args }) => {
                    if (id == FOLLOW) followed = args;
                });
                notebooks.widgetAdded.connect(async (_, panel) => {
                    const { path, id } = followed;
                    if (!id || path != panel.context.path) return;
                    followed = {};
                    await Promise.all([panel.context.ready, panel.revealed]);
                    arrive(panel, id);
                });
            },
        };
    });
})();
