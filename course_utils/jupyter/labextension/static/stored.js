// What a notebook has stored for this course, made to move: in JupyterLab and on the static site.
//
// A notebook may come from anybody. So what it holds is data here, never code: it is inflated up to
// a bound, and its HTML is read by a document that runs and loads nothing, then built anew from the
// elements, attributes and style properties listed below. Everything else is left out. It is read as
// XML: out of a few misnested tags the parser of HTML makes millions of nodes.
(() => {
    const MAX_PACKED = 1_000_000, MAX_INFLATED = 10_000_000;  // characters, bytes
    const PIECE = 4096;  // bytes that are inflated at a time, to at most a thousand times as many
    const MAX_HTML = 600_000, MAX_NODES = 40_000, MAX_DEPTH = 40;  // of one view

    const set = (words) => new Set(words.split(/\s+/));
    const HTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";
    const ELEMENTS = {
        [HTML]: set(`b bdi br caption code col colgroup div em figcaption figure i img li ol p small
            span strong sub sup table tbody td tfoot th thead tr ul`),
        [SVG]: set("circle desc ellipse g line path polygon polyline rect svg text title tspan"),
    };
    const WORDS = set("alt aria-hidden aria-label aria-roledescription lang title");  // any text
    const VALUES = set(`cx cy d dir dominant-baseline dx dy fill fill-opacity font-size
        font-weight height opacity paint-order pathLength points preserveAspectRatio r rx ry scope
         stroke stroke-dasharray stroke-dashoffset stroke-linecap stroke-linejoin
        stroke-opacity stroke-width tabindex text-anchor transform viewBox width x x1 x2 y y1 y2`);
    const PROPERTIES = set(`align-items animation-delay background background-color border
        border-color bottom color column-gap contain-intrinsic-size display fill fill-opacity flex
        font-size font-weight gap grid-area grid-column grid-row grid-template-columns
        grid-template-rows height justify-content left line-height margin margin-bottom margin-left
        margin-right margin-top max-height max-width min-height min-width opacity padding right
        row-gap stroke stroke-opacity stroke-width text-align top transform vertical-align
        white-space width`);
    const FUNCTIONS = set(`calc clamp hsl hsla linear-gradient matrix max min minmax oklch repeat rgb
        rgba rotate scale translate translateX translateY skewX skewY var`);
    const ROLES = set("alert group img list listitem note presentation");

    // Numbers, names and the functions above; so neither url(…) nor anything that is quoted.
    const isPlain = (value) =>
        /^[\w\s.,:%#()+*/-]*$/.test(value) &&
        [...value.matchAll(/(?<![\w-])([\w-]*)\(/g)].every(
            ([, name]) => !name || FUNCTIONS.has(name));

    // A grid of a million columns would be laid out for minutes.
    const isSmall = (value) => value.length < 100 && !/(var|calc)\(|\d{4}/.test(value);

    const plainStyle = (style) =>
        style.split(";").flatMap((declaration) => {
            const [name, ...value] = declaration.split(":");
            const isKnown = PROPERTIES.has(name.trim()) || /^\s*--[\w-]+\s*$/.test(name);
            const isFine = isKnown && value.length == 1 && isPlain(value[0]) &&
                (!name.includes("grid") || isSmall(value[0]));
            return isFine ? [declaration] : [];
        }).join(";");

    // The value that an attribute may have; null if it may have none.
    const allowed = (name, value) => {
        if (WORDS.has(name)) return value;
        if (name == "class")  // the course's own, so that nothing poses as a part of JupyterLab
            return value.split(/\s+/).filter((one) => /^ac(-[\w-]+)?$/.test(one)).join(" ");
        if (name == "style") return plainStyle(value);
        if (name == "src") return /^data:image\/png;base64,[\w+/=]+$/.test(value) ? value : null;
        if (name == "colspan" || name == "rowspan") return /^\d{1,2}$/.test(value) ? value : null;
        if (name == "role") return ROLES.has(value) ? value : null;
        return VALUES.has(name) && isPlain(value) ? value : null;
    };

    /** The nodes of a piece of HTML, as far as they are allowed. Throws where it is too large. */
    const build = (html) => {
        if (html.length > MAX_HTML) throw new RangeError("the HTML is too long");
        const read = new DOMParser().parseFromString(`<div>${html}</div>`, "text/xml");
        if (read.querySelector("parsererror")) throw new SyntaxError("the HTML is not well formed");
        let nodes = 0;
        const copy = (from, to, depth) => {
            if (depth > MAX_DEPTH) throw new RangeError("the HTML is too deep");
            for (const node of from.childNodes) {
                if (++nodes > MAX_NODES) throw new RangeError("the HTML has too many nodes");
                if (node.nodeType == Node.TEXT_NODE) to.append(node.data);
                if (node.nodeType != Node.ELEMENT_NODE) continue;
                const { localName: name } = node;
                const space = name == "svg" || to.namespaceURI == SVG ? SVG : HTML;
                if (!ELEMENTS[space].has(name)) continue;
                const made = document.createElementNS(space, name);
                for (const { name, value } of node.attributes) {
                    const kept = allowed(name, value);
                    if (kept !== null) made.setAttribute(name, kept);
                }
                copy(node, made, depth + 1);
                to.append(made);
            }
        };
        const built = document.createDocumentFragment();
        copy(read.documentElement, built, 0);
        return built;
    };

    /** What Python's zlib and base64 have packed, read as JSON. Throws where it is too large. */
    const unpack = async (packed) => {
        if (typeof packed != "string" || packed.length > MAX_PACKED)
            throw new RangeError("too much is stored");
        const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
        let at = 0;
        const pieces = new ReadableStream({
            pull: (controller) => {
                controller.enqueue(bytes.subarray(at, at += PIECE));
                if (at >= bytes.length) controller.close();
            },
        }, { highWaterMark: 0 });
        const reader = pieces.pipeThrough(new DecompressionStream("deflate")).getReader();
        const decoder = new TextDecoder("utf-8", { fatal: true });
        let text = "", size = 0;
        for (let part; !(part = await reader.read()).done; ) {
            if ((size += part.value.length) > MAX_INFLATED) {
                reader.cancel();
                throw new RangeError("too much is stored");
            }
            text += decoder.decode(part.value, { stream: true });
        }
        return JSON.parse(text + decoder.decode());
    };

    // What was left in this browser, by name. Where it may store nothing, nothing was left.
    const inBrowser = (action) => {
        try {
            return action(window.localStorage);
        } catch {
            return undefined;
        }
    };
    const recall = (name) =>
        inBrowser((storage) => JSON.parse(storage.getItem(name))) ?? undefined;
    const remember = (name, value) =>
        inBrowser((storage) => storage.setItem(name, JSON.stringify(value)));
    const forget = (name) => inBrowser((storage) => storage.removeItem(name));

    // By mimetype, what shows it: called with an empty element, the metadata of the mimetype, and
    // where it stands: {kept, keep, toRun}. `kept()` is what was left there before, or undefined;
    // `keep(value)` leaves something; `toRun` is how to get all of it, the start of a sentence.
    const kinds = {};

    window.attentionCourse = { build, unpack, kinds, recall, remember, forget };
})();
