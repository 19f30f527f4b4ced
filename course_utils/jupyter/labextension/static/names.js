// A plugin of JupyterLab: it names what ipywidgets and JupyterLab leave without a name.
(() => {
    let groups = 0;

    // A slider's handle is called what stands beside the slider.
    const nameSlider = (handle) => {
        const label = handle.closest(".widget-slider")?.querySelector(".widget-label");
        handle.setAttribute("aria-label", label?.textContent || "slider");
    };

    // Radio buttons that share a name are one group: the arrow keys move between them.
    const groupRadios = (box) => {
        const name = `radios-${groups++}`;
        for (const input of box.querySelectorAll("input[type=radio]")) input.name = name;
    };

    // A figure's text form, one line beside the picture in the output, says what it shows.
    const describeFigures = (app) => {
        for (const panel of app.shell.widgets("main")) {
            for (const cell of panel.content?.widgets ?? []) {
                const outputs = cell.model?.outputs;
                for (let i = 0; i < (outputs?.length ?? 0); i++) {
                    const output = outputs.get(i);
                    const alt = output.metadata?.["image/png"]?.alt;
                    const picture = cell.outputArea?.widgets[i]?.node.querySelector(
                        ".jp-RenderedImage img:not([alt])"
                    );
                    if (alt && picture) picture.alt = alt;
                }
            }
        }
    };

    const nameAll = (app) => {
        document.querySelectorAll(".noUi-handle:not([aria-label])").forEach(nameSlider);
        for (const box of document.querySelectorAll(".widget-radio-box"))
            if (box.querySelector("input[type=radio]:not([name^=radios-])")) groupRadios(box);
        if (document.querySelector(".jp-RenderedImage img:not([alt])")) describeFigures(app);
    };

    window.attentionCourse.plugins.push(async () => ({
        id: "attention-course:names",
        autoStart: true,
        activate: (app) => {
            // JupyterLab would take the arrow keys for itself and go to the next cell.
            window.addEventListener("keydown", (event) => {
                if (event.key.startsWith("Arrow") && event.target.closest?.(".widget-radio-box"))
                    event.stopPropagation();
            }, true);
            let waiting = false;
            new MutationObserver(() => {
                if (waiting) return;
                waiting = true;
                requestIdleCallback(() => {
                    waiting = false;
                    nameAll(app);
                }, { timeout: 500 });
            }).observe(document.body, { childList: true, subtree: true });
        },
    }));
})();
