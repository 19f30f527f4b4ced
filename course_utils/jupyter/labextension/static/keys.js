// A plugin of JupyterLab: questions by keyboard alone.
//
// Enter checks, or goes on to the next question. Shift + Enter checks and goes on in the notebook,
// as everywhere else. Escape leaves the question for its cell.
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

    // A press on a button may bring another question, or hide the button itself. The keys go on with
    // what is in sight then.
    const moving = new WeakSet();  // those where Enter was pressed, and nothing has come of it yet
    const keepFocus = (asked) => {
        const seen = (selector) => [...asked.querySelectorAll(selector)].filter(isSeen);
        const box = ".widget-radio-box";
        const [before] = seen(box), deadline = Date.now() + 2000;
        // For how many frames nothing has the focus. Where one question takes the place of another,
        // widgets change one by one.
        let lost = 0;
        const patience = asked.matches(".aq-steps") ? 20 : 2;
        const look = () => {
            const inputs = seen("input:enabled");
            const isNew = inputs.length && seen(box)[0] !== before;
            lost = document.activeElement == document.body ? lost + 1 : 0;
            const isThere = isNew || lost > patience;
            if (isThere)
                (inputs.find((input) => input.checked) ?? inputs[0] ?? seen("button")[0])?.focus();
            if (isThere || Date.now() > deadline) moving.delete(asked);
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    };

    window.attentionCourse.plugins.push(async () => ({
        id: "attention-course:keys",
        autoStart: true,
        activate: (app) => {
            let changed = 0;  // when something was chosen last
            const goOn = () => app.commands.execute("notebook:run-cell-and-select-next");
            const onKey = async (event) => {
                const { key, target } = event, asked = target.closest?.(".aq");
                if (!asked || !target.matches("input")) return;
                const isWidgetsField = !!target.closest(".widget-text");
                if (isWidgetsField && key == "Enter") {  // it answers by itself
                    if (event.shiftKey) setTimeout(goOn);
                } else if (key == "Enter") {
                    event.preventDefault();
                    event.stopPropagation();
                    if (event.repeat || moving.has(asked)) return;
                    if (asked.matches(".widget-vbox.aq-steps") && !event.shiftKey)
                        moving.add(asked);  // until the next question is there
                    // A widget sends its next choice when the last one has arrived, and a press on
                    // a button must not overtake it.
                    await new Promise((done) => setTimeout(done, changed + 200 - Date.now()));
                    if (!event.shiftKey) press(asked, ".aq-onward") || press(asked, ".aq-submit");
                    else {
                        if (!asked.matches(".aq-steps") && isComplete(asked))
                            press(asked, ".aq-submit");
                        goOn();
                    }
                } else if (key == "Escape") {
                    event.preventDefault();
                    event.stopPropagation();
                    target.closest(".jp-Notebook-cell")?.focus();
                } else if (target.type == "text" || /^(Arrow|Home$|End$| $)/.test(key)) {
                    event.stopPropagation();  // JupyterLab would take it for itself
                }
            };
            window.addEventListener("change", (event) => {
                if (event.target.closest?.(".aq .widget-radio-box")) changed = Date.now();
            }, true);
            window.addEventListener("keydown", onKey, true);
            window.addEventListener("click", (event) => {
                const asked = event.target.closest?.(".widget-vbox.aq");
                if (asked && event.target.closest("button")) keepFocus(asked);
            }, true);
        },
    }));
})();
