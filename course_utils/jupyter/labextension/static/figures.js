// A plugin of JupyterLab: figures have an alt text, and on a dark page the picture made for it.
(() => {
    const isPng = (source) => typeof source == "string" && /^[\w+/=\s]+$/.test(source);

    const dress = (app, theme) => {
        for (const panel of app.shell.widgets("main")) {
            for (const cell of panel.content?.widgets ?? []) {
                const outputs = cell.model?.outputs;
                for (let i = 0; i < (outputs?.length ?? 0); i++) {
                    const { data, metadata } = outputs.get(i), own = metadata?.["image/png"];
                    const picture = cell.outputArea?.widgets[i]?.node.querySelector(
                        ".jp-RenderedImage img"
                    );
                    if (!picture || picture.dataset.theme == theme) continue;
                    picture.dataset.theme = theme;
                    if (own?.alt) picture.alt = own.alt;
                    if (!isPng(own?.dark)) continue;
                    const source = theme == "dark" ? own.dark : data["image/png"];
                    picture.src = `data:image/png;base64,${source}`;
                }
            }
        }
    };

    window.attentionCourse.plugins.push(async () => ({
        id: "attention-course:figures",
        autoStart: true,
        activate: (app) => {
            let waiting = false;
            new MutationObserver(() => {
                if (waiting) return;
                waiting = true;
                requestIdleCallback(() => {
                    waiting = false;
                    const isLight = document.body.dataset.jpThemeLight != "false";
                    const theme = isLight ? "light" : "dark";
                    const other = `.jp-RenderedImage img:not([data-theme=${theme}])`;
                    if (document.querySelector(other)) dress(app, theme);
                }, { timeout: 500 });
            }).observe(document.body, {
                childList: true, subtree: true, attributeFilter: ["data-jp-theme-light"],
            });
        },
    }));
})();
