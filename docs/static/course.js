// An explorer of the static edition: every view was made beforehand, and the controls choose one.
document.addEventListener("DOMContentLoaded", () => {
    for (const explorer of document.querySelectorAll(".ac-explorer")) {
        const views = JSON.parse(explorer.querySelector("script").textContent);
        const controls = [...explorer.querySelectorAll("input")];
        const view = explorer.querySelector(".ac-explorer-view");
        const show = () => {
            const at = controls.map((control) => {
                const labels = JSON.parse(control.dataset.labels || "null");
                if (!labels) return +control.checked;
                control.nextElementSibling.textContent = labels[control.value];
                control.setAttribute("aria-valuetext", labels[control.value]);
                return control.value;
            });
            view.innerHTML = views[at.join()];
        };
        controls.forEach((control) => control.addEventListener("input", show));
        show();
    }
});

// What can be scrolled must be reached by keyboard.
const reach = () => {
    for (const box of document.querySelectorAll("article pre, .math-wrapper, .table-wrapper"))
        if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
};
addEventListener("load", reach);
addEventListener("resize", reach);
