// A plugin of JupyterLab: it names what ipywidgets leaves without a name.
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

    const nameAll = () => {
        document.querySelectorAll(".noUi-handle:not([aria-label])").forEach(nameSlider);
        for (const box of document.querySelectorAll(".widget-radio-box"))
            if (box.querySelector("input[type=radio]:not([name^=radios-])")) groupRadios(box);
    };

    window.attentionCourse.plugins.push(async () => ({
        id: "attention-course:names",
        autoStart: true,
        activate: () => {
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
                    nameAll();
                }, { timeout: 500 });
            }).observe(document.body, { childList: true, subtree: true });
        },
    }));
})();
