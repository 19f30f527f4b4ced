// A plugin of JupyterLab: questions by keyboard alone.
//
// Enter checks, or goes on to the next question. Shift + Enter checks and goes on in the notebook, as
// everywhere else. Escape leaves the question for its cell.
(() => {
    const isSeen = (node) => node.checkVisibility();
    const press = (asked, selector) => {
        const button = [...asked.querySelectorAll(selector)].find(isSeen);
        button?.click();
        return !!button;
    };

    // A question is complete where each group of radio buttons has a choice, and its field a text.
    const isComplete = (asked) =>
        [...asked.querySelectorAll(".widget-radio-box, .aq-choices")].filter(isSeen)
            .every((box) => box.querySelector(":checked")) &&
        [...asked.querySelectorAll("input[type=text]")].every((input) => input.value.trim());

    // A press in a quiz that shows one question at a time brings the next one: to its choices then.
    const goToNext = (asked) => {
        const shown = () => [...asked.querySelectorAll("input[type=radio]")].filter(isSeen);
        const before = shown(), deadline = Date.now() + 2000;
        const look = () => {
            const now = shown();
            if (now.length && now[0] !== before[0])
                (now.find((input) => input.checked) ?? now[0]).focus();
            else if (Date.now() < deadline) requestAnimationFrame(look);
        };
        look();
    };

    window.attentionCourse.plugins.push(async () => ({
        id: "attention-course:keys",
        autoStart: true,
        activate: (app) => {
            const onKey = (event) => {
                const asked = event.target.closest?.(".aq");
                if (!asked || !event.target.matches("input")) return;
                const isText = event.target.type == "text";
                if (event.key == "Enter" && event.shiftKey) {
                    if (isText) event.target.dispatchEvent(new Event("change", { bubbles: true }));
                    if (!asked.matches(".aq-steps") && isComplete(asked)) press(asked, ".aq-submit");
                    event.preventDefault();
                    event.stopPropagation();
                    app.commands.execute("notebook:run-cell-and-select-next");
                } else if (event.key == "Enter" && !event.ctrlKey && !event.altKey) {
                    if (isText && event.target.closest(".widget-text")) return;  // a widget's own
                    event.preventDefault();
                    event.stopPropagation();
                    press(asked, ".aq-onward") || press(asked, ".aq-submit");
                } else if (event.key == "Escape") {
                    event.preventDefault();
                    event.stopPropagation();
                    event.target.closest(".jp-Notebook-cell")?.focus();
                } else if (isText || /^(Arrow|Home$|End$| $)/.test(event.key)) {
                    event.stopPropagation();
                }
            };
            window.addEventListener("keydown", onKey, true);
            window.addEventListener("click", (event) => {
                const asked = event.target.closest?.(".aq-steps");
                if (asked && event.target.closest("button")) goToNext(asked);
            }, true);
        },
    }));
})();
