// An explorer without a kernel: its views were made beforehand, and its controls choose one.
(() => {
    const { build, unpack, kinds } = window.attentionCourse;
    const MAX_CONTROLS = 12, MAX_STOPS = 1000, MAX_BUTTONS = 20;

    const isText = (value) => typeof value == "string" && value.length < 1000;
    const isNumber = (value, end) => Number.isInteger(value) && value >= 0 && value < end;
    const endOf = ({ labels }) => (labels ? labels.length : 2);

    // Throws where what is stored is no explorer.
    const check = ({ controls, left_out, texts, views, stops }) => {
        const fits =
            controls.length > 0 && controls.length <= MAX_CONTROLS &&
            controls.every((control) =>
                isText(control.key) && isText(control.name) &&
                (control.labels === null || control.labels.every(isText)) &&
                (!control.buttons || control.labels.length <= MAX_BUTTONS) &&
                endOf(control) <= MAX_STOPS &&
                isNumber(control.start, endOf(control))) &&
            left_out.length <= MAX_CONTROLS && left_out.every(isText) &&
            texts.every((text) => text.every((part) => typeof part == "string")) &&
            views.every(([text, numbers]) =>
                isNumber(text, texts.length) && typeof numbers == "string") &&
            Object.values(stops).every((view) => isNumber(view, views.length));
        if (!fits) throw new TypeError("no explorer is stored");
    };

    const element = (name, properties = {}, ...children) => {
        const made = Object.assign(document.createElement(name), properties);
        made.append(...children);
        return made;
    };

    let groups = 0;

    // A control with its name: its node, and what reads its stop.
    const make = ({ name, labels, buttons }, stop) => {
        if (!labels) {
            const input = element("input", { type: "checkbox", checked: stop == 1 });
            const node = element("label", {}, input, name);
            return { node, stop: () => +input.checked };
        }
        if (buttons) {
            const group = `ac-buttons-${groups++}`;
            const inputs = labels.map((_, i) =>
                element("input", { type: "radio", name: group, checked: i == stop }));
            const node = element("div", { className: "ac-buttons" }, element("span", {}, name),
                ...inputs.map((input, i) => element("label", {}, input, labels[i])));
            node.setAttribute("role", "radiogroup");
            node.setAttribute("aria-label", name);
            return { node, stop: () => inputs.findIndex((input) => input.checked) };
        }
        const input = element("input", { type: "range", min: 0, max: labels.length - 1, step: 1 });
        const readout = element("output");
        input.value = stop;
        input.setAttribute("aria-label", name);  // without the readout, which is the value's text
        const read = () => {
            readout.textContent = labels[input.value];
            input.setAttribute("aria-valuetext", labels[input.value]);
            return +input.value;
        };
        const className = labels.every((label) => label.length < 6) ? "ac-numbers" : "ac-names";
        const node = element("label", { className }, name, input, readout);
        return { node, stop: read };
    };

    const showStops = async (node, stored, place) => {
        const content = await unpack(stored.stops);
        check(content);
        const { controls, left_out, texts, views, stops } = content, left = Object(place.kept());
        const made = controls.map((control) => {
            const own = Object.hasOwn(left, control.key) ? left[control.key] : undefined;
            return make(control, isNumber(own, endOf(control)) ? own : control.start);
        });
        const view = element("div", { className: "ac-explorer-view" });
        const show = () => {
            const at = made.map(({ stop }) => stop());
            if (!Object.hasOwn(stops, at.join())) return at;
            const [text, numbers] = views[stops[at.join()]], gaps = numbers.split(" ");
            try {
                view.replaceChildren(
                    build(texts[text].map((part, i) => part + (gaps[i] ?? "")).join("")),
                );
            } catch {
                view.replaceChildren("What is stored for this setting cannot be shown.");
            }
            return at;
        };
        for (const { node } of made)
            node.addEventListener("input", () => {
                const at = show();
                // What a kernel alone can show stays as it was left.
                const keys = controls.map(({ key }, i) => [key, at[i]]);
                place.keep({ ...place.kept(), ...Object.fromEntries(keys) });
            });
        show();
        const bar = element("div", { className: "ac-explorer-controls" });
        bar.append(...made.map((control) => control.node));
        node.classList.add("ac-explorer");
        node.replaceChildren(bar, view);
        if (left_out.length) {
            const names = left_out.map((name) => `“${name}”`).join(" and ");
            bar.append(element("p", {}, `${place.toRun} to change ${names} as well.`));
        }
    };

    kinds["application/vnd.attention-course.stops+json"] = showStops;
})();
