// Reading what a learner typed: a shape or a number, in many ways to write it. It reads as
// `course_utils/questions/reading.py` does, for questions that are answered without Python.
(() => {
    // The digits of any script as 0 to 9: each script has ten or more of them in a row.
    const plainDigits = (text) => text.replace(/\p{Nd}/gu, (digit) => {
        const code = digit.codePointAt(0);
        let first = code;
        while (/^\p{Nd}$/u.test(String.fromCodePoint(first - 1))) first--;
        return String((code - first) % 10);
    });

    const readShape = (typed) => {
        const text = plainDigits(typed).trim().replace(/^torch\.Size\((.*)\)$/i, "$1");
        const bracketed = text.match(/^(?:\((.*)\)|\[(.*)\])$/);
        const inside = bracketed ? bracketed[1] ?? bracketed[2] : text;
        const sizes = inside.trim().replace(/,\s*$/, "").split(/\s*[,;×x]\s*|\s+/);
        if (sizes.join() == "") return bracketed && sizes.length == 1 ? ["()"] : [];
        return sizes.every((size) => /^\d+$/.test(size)) ? [sizes.map(BigInt).join()] : [];
    };

    // "1,600" is read both ways, "0,5" in the only way that makes sense, "50 %" as 0.5 and as 50.
    const readNumber = (typed) => {
        const text = plainDigits(typed).trim().replace(/^[≈~ ]+/, "").replaceAll("−", "-");
        if (/%\s*%$/.test(text)) return [];
        if (text.endsWith("%")) return readNumber(text.slice(0, -1)).flatMap((n) => [n, n / 100]);
        if (text.split("/").length == 2) {
            const [above, below] = text.split("/").map(readNumber);
            return above.flatMap((a) => below.filter((b) => b).map((b) => a / b));
        }
        const meant = [];
        if (/^[+-]?(\d+[.,]?\d*|[.,]\d+)(e[+-]?\d+)?$/i.test(text))
            meant.push(Number(text.replace(",", ".")));
        for (const mark of ",.' _\u2009\u00a0") {
            const point = "',.".replace(mark, "");
            if (RegExp(`^[+-]?[1-9]\\d{0,2}([${mark}]\\d{3})+([${point}]\\d+)?$`).test(text))
                meant.push(Number(text.replaceAll(mark, "").replace(",", ".")));
        }
        return meant;
    };

    const isClose = (a, b, tolerance) =>
        a == b || Math.abs(a - b) <= Math.max(1e-9 * Math.max(Math.abs(a), Math.abs(b)), tolerance)
            && Number.isFinite(a - b);

    /** All that a text may mean as an answer of a kind; empty if it is no such answer. */
    const read = (kind, text) =>
        kind == "shape" ? readShape(text) : kind == "number" ? readNumber(text) : [text];

    /** Whether something that a learner may have meant is the other answer. */
    const same = (kind, meant, other, tolerance) => {
        const list = Array.isArray(other) ? `(${other.join()})` : String(other);
        return read(kind, list).some((one) => meant.some((another) =>
            kind == "number" ? isClose(another, one, tolerance) : another === one));
    };

    Object.assign(window.attentionCourse, { read, same });
})();
