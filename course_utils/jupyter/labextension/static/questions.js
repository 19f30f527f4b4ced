// Predictions and quizzes without a kernel: chosen, checked and kept in the browser. They look and
// speak as `course_utils/questions` does, which takes over what was answered once its cell runs.
(() => {
    const { unpack, kinds, read, same } = window.attentionCourse;
    const MAX_ANSWER = 60;  // characters; what is longer is no shape and no number
    const OPEN = ".", SKIPPED = "?";

    const element = (name, properties = {}, ...children) => {
        const made = Object.assign(document.createElement(name), properties);
        made.append(...children);
        return made;
    };

    // `code` as code, an empty line between paragraphs.
    const paragraphs = (text) => text.trim().split("\n\n").filter(Boolean).map((paragraph) =>
        element("p", {}, ...paragraph.split(/`([^`]+)`/).map((part, i) =>
            i % 2 ? element("code", {}, part) : part)));

    const block = (text) => element("div", { className: "aq-text" }, ...paragraphs(text));

    const button = (label, press, className = "") =>
        element("button", { type: "button", textContent: label, onclick: press, className });

    // Where the keys go on when what had the focus is gone.
    const focusFirst = (node) => {
        (node.querySelector("input:checked:enabled") ?? node.querySelector("input:enabled") ??
            node.querySelector("button:not([hidden])"))?.focus();
    };

    let groups = 0;
    const radios = (choices, chosen, choose) => {
        const name = `aq-${groups++}`;
        const labels = choices.map((choice) => element("label", {}, element("input", {
            type: "radio", name, checked: choice === chosen, onchange: () => choose(choice),
        }), choice));
        return element("div", { className: "aq-choices" }, ...labels);
    };

    // What all questions share: a line that answers, a button to start over, and what is kept.
    const asking = (node, id, place) => {
        const status = element("div");
        status.setAttribute("role", "status");
        let kept = Object(place.kept());
        if (kept.question !== id) kept = {};
        return {
            kept: () => kept,
            keep: (record) => {
                const when = Math.max(Date.now(), (kept.when ?? 0) + 1);
                place.keep(kept = { question: id, when, ...record });
            },
            say: (sentence) => status.replaceChildren(...paragraphs(sentence)),
            show: (parts, startOver) => {
                const again = button("Start over", startOver, "aq-again");
                again.hidden = Object.keys(kept).length < 3;
                node.classList.add("aq");  // beside those that JupyterLab gave it
                node.replaceChildren(
                    ...parts, element("div", { className: "aq-answering" }, status, again));
                return again;
            },
        };
    };

    // --- predictions ---

    const verdict = (entry, meant) => {
        const { kind, right, why, hint, wrong = {}, tolerance = 0 } = entry;
        if (same(kind, meant, right, tolerance)) return `✓ Right. ${why}`;
        const reason = Object.entries(wrong).find(([key]) => same(kind, meant, key, tolerance));
        return `✗ Not yet. ${reason?.[1] ?? hint} Try again.`;
    };

    const showPrediction = (node, entry, place) => {
        const { kind, choices, question } = entry, isChoice = kind == "choice";
        const { kept, keep, say, show } = asking(node, entry.id, place);
        const fits = (answer) => typeof answer == "string" &&
            (isChoice ? choices.includes(answer) : answer.length < 1000);
        const meaning = (answer) =>
            [...answer].length > MAX_ANSWER && !isChoice ? [] : read(kind, answer);
        let again;

        const draw = () => {
            let { chosen, checked, tries } = kept();
            chosen = fits(chosen) ? chosen : isChoice ? null : "";
            checked = fits(checked) && meaning(checked).length ? checked : null;
            tries = checked === null ? 0 : Number.isInteger(tries) ? tries : 1;
            const note = () => {
                keep({ chosen, checked, tries });
                again.hidden = false;
            };
            const check = () => {
                if (!chosen?.trim()) {
                    const todo = isChoice ? "choose" : "write";
                    return say(`○ Nothing to check yet: ${todo} your answer first.`);
                }
                const meant = meaning(chosen);
                if (!meant.length) {
                    const letters = [...chosen], shown = letters.length <= MAX_ANSWER
                        ? chosen : `${letters.slice(0, MAX_ANSWER).join("")}…`;
                    const example = kind == "shape"
                        ? "its sizes with commas: 4, 7" : "digits: 12, 0.25";
                    return say(
                        `○ “${shown}” is no ${kind} that I can read. Write just ${example}.`);
                }
                tries += chosen !== checked;
                checked = chosen;
                note();
                say(verdict(entry, meant));
            };
            const choose = (value) => {
                chosen = value;
                note();
            };
            const field = () => {
                const input = element("input", {
                    type: "text", value: chosen, placeholder: `a ${kind}`,
                    oninput: () => choose(input.value),
                });
                return element("label", { className: "aq-field" }, "Your answer", input);
            };
            const control = isChoice ? radios(choices, chosen, choose) : field();
            again = show([block(question), control, button("Check", check, "aq-submit")], () => {
                keep({});
                draw();
                focusFirst(node);
            });
            say(checked === null
                ? "" : `You said “${checked}”. ${verdict(entry, meaning(checked))}`);
        };
        draw();
    };

    // --- quizzes ---

    const showQuiz = (node, quiz, place) => {
        const { questions, intro = "", after = "", invitation, feedback } = quiz;
        const { kept, keep, say, show } = asking(node, quiz.id, place);
        const hasSteps = invitation !== undefined, last = questions.length - 1;
        const hasLetter = ({ letters }, given) => letters.some(([, letter]) => letter === given);
        const split = (letters) => (typeof letters == "string" ? letters.split(" ") : []);
        const fits = (letters) => questions.every((question) =>
            hasLetter(question, split(letters)[question.place]));
        const isRight = ({ place, letters, right }, given) =>
            split(given)[place] === new Map(letters).get(right);
        const result = (given) =>
            `${questions.filter((question) => isRight(question, given)).length} of ` +
            `${questions.length} right. ${after}`;

        const draw = (sentence) => {
            let { chosen, handed_in: handedIn, step } = kept();
            const letters = questions.map(() => OPEN);
            for (const question of questions) {
                const given = split(chosen)[question.place];
                if (hasLetter(question, given)) letters[question.place] = given;
            }
            handedIn = fits(handedIn) ? handedIn : null;
            step = hasSteps && Number.isInteger(step) && step >= 0 && step <= last ? step : null;
            let again;

            const note = () => {
                keep({ chosen: letters.join(" "), handed_in: handedIn, ...(hasSteps && { step }) });
                again.hidden = false;
            };
            const goTo = (next) => {
                step = next;
                note();
                draw();
                focusFirst(node);
            };
            const skipIfOpen = () => {
                const { place } = questions[step];
                if (letters[place] == OPEN) letters[place] = SKIPPED;
            };
            const handIn = () => {
                if (step !== null) skipIfOpen();
                const open = questions.flatMap(({ place }, k) =>
                    letters[place] == OPEN ? [k + 1] : []);
                if (open.length) {
                    const others = open.slice(0, -1).join(", ");
                    const which = others
                        ? `s ${others} and ${open.at(-1)} are` : ` ${open.at(-1)} is`;
                    return say(`○ Question${which} still open.`);
                }
                handedIn = letters.join(" ");
                step = null;
                note();
                draw(`${result(handedIn)} Kept in this browser.`);
                focusFirst(node);
            };

            const isDone = hasSteps && handedIn !== null && step === null;
            const onward = button("Skip", () => {
                skipIfOpen();
                goTo(step + 1);
            }, "aq-onward");
            const ask = (question, k) => {
                const { place } = question, known = new Map(question.letters);
                const chosen = question.letters.find(([, letter]) => letter == letters[place]);
                const control = radios([...known.keys()], chosen?.[0], (choice) => {
                    letters[place] = known.get(choice);
                    onward.textContent = "Next";
                    note();
                });
                for (const input of control.querySelectorAll("input")) input.disabled = isDone;
                const number = hasSteps ? `${k + 1} of ${questions.length} ·` : `${k + 1}.`;
                const asked = block(`${number} ${question.question}`);
                asked.classList.add("aq-question");
                const parts = [asked, control];
                if (feedback && handedIn !== null) {
                    const mark = isRight(question, handedIn)
                        ? "✓ Right." : `✗ No. Right is “${question.right}”.`;
                    parts.push(block(`${mark} ${question.why}`));
                }
                return parts;
            };
            const row = (...parts) => element("div", { className: "aq-row" }, ...parts);
            const submit = button("Hand in", handIn, "aq-submit");
            let parts;
            if (!hasSteps) parts = [block(intro), ...questions.flatMap(ask), submit];
            else if (isDone) parts = feedback ? questions.flatMap(ask) : [];
            else if (step === null) {
                parts = [row(block(invitation), button("Start", () => goTo(0)))];
            } else {
                const back = button("Back", () => goTo(step - 1));
                back.disabled = step == 0;
                if (letters[questions[step].place] != OPEN) onward.textContent = "Next";
                parts = [...(step ? [] : [block(intro)]), ...ask(questions[step], step),
                    row(back, step < last ? onward : submit)];
            }
            again = show(parts, () => {
                keep({});
                draw();
                focusFirst(node);
            });
            node.classList.toggle("aq-steps", hasSteps);
            say(sentence ??
                (handedIn === null || step !== null ? "" : `You had ${result(handedIn)}`));
        };
        draw();
    };

    // Throws where what is stored is no question.
    const isText = (value) => typeof value == "string" && value.length < 5000;
    const check = (content) => {
        const isChoice = ({ question, choices, right }) =>
            isText(question) && choices.length < 20 && choices.every(isText) && isText(right);
        const isTyped = ({ question, right, tolerance = 0 }) =>
            isText(question) && Number.isFinite(tolerance) && String(right).length <= MAX_ANSWER;
        const isPrediction = ({ kind, why, hint = "", wrong = {} }) =>
            /^(choice|shape|number)$/.test(kind) &&
            (kind == "choice" ? isChoice : isTyped)(content) &&
            Object.values(wrong).every(isText) && [why, hint].every(isText);
        const isQuiz = ({ questions, intro = "", after = "", invitation = "" }) =>
            questions.length < 100 && questions.every(isChoice) &&
            [intro, after, invitation].every(isText) &&
            questions.every(({ place, letters, why = "" }) =>
                Number.isInteger(place) && place >= 0 && place < 100 && isText(why) &&
                letters.length < 20 && letters.every((pair) => pair.every(isText)));
        if (!isText(content.id) || !(content.questions ? isQuiz : isPrediction)(content))
            throw new TypeError("no question is stored");
    };

    kinds["application/vnd.attention-course.question+json"] = async (node, stored, place) => {
        const content = await unpack(stored.packed);
        check(content);
        (content.questions ? showQuiz : showPrediction)(node, content, place);
    };
})();
