// What a lesson has stored moves here as in JupyterLab; the place of each is its number on the page.
document.addEventListener("DOMContentLoaded", () => {
    const { kinds, recall, remember } = window.attentionCourse;
    document.querySelectorAll(".ac-stored").forEach(async (stored, number) => {
        const { kind, stored: data } = stored.dataset, moving = document.createElement("div");
        const name = `attention-course:${location.pathname}#${number}`;
        const place = {
            toRun: "Run this cell in JupyterLab",
            kept: () => recall(name),
            keep: (value) => remember(name, value),
        };
        try {
            await kinds[kind](moving, JSON.parse(data), place);
            stored.prepend(moving);
        } catch {
            stored.classList.add("ac-stored-fails");
        }
    });
});

// What can be scrolled must be reached by keyboard.
const reach = () => {
    for (const box of document.querySelectorAll("article pre, .math-wrapper, .table-wrapper"))
        if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
};
addEventListener("load", reach);
addEventListener("resize", reach);
