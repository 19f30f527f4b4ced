// The course's extension of JupyterLab: what a notebook has stored of it moves before a cell has run.
//
// Written by hand in the form of a prebuilt extension, a module federation container, so that no
// build step and no Node.js is needed. Each file beside this one adds its part.
(() => {
    const here = document.currentScript.src;
    const beside = (name) => new URL(name, here).href;

    const load = (name) => new Promise((resolve, reject) => {
        const script = document.createElement("script");
        Object.assign(script, { src: beside(name), onload: resolve, onerror: reject });
        document.head.append(script);
    });

    const loadStyle = (name) => {
        const link = document.createElement("link");
        document.head.append(Object.assign(link, { rel: "stylesheet", href: beside(name) }));
    };

    let shared, loading;

    // A module of JupyterLab's own, in the version that it has loaded.
    const moduleOf = async (name) => {
        const versions = Object.values(shared[name]);
        const factory = await (versions.find(({ loaded }) => loaded) ?? versions[0]).get();
        return factory();
    };

    const loadAll = async () => {
        ["explorer.css", "stored.css", "questions.css"].forEach(loadStyle);
        await load("stored.js");
        for (const name of ["stops.js", "reading.js", "questions.js"]) await load(name);
        const course = window.attentionCourse;
        Object.assign(course, { moduleOf, plugins: [] });
        const parts = ["names.js", "figures.js", "keeper.js", "renderer.js", "clear.js", "keys.js"];
        for (const name of [...parts, "arrive.js", "waiting.js", "mistakes.js"]) await load(name);
        return course;
    };

    (window._JUPYTERLAB ??= {})["attention-course"] = {
        init: (scope) => { shared = scope; },
        get: async (module) => {
            const { plugins, makeRenderers } = await (loading ??= loadAll());
            const exported = module == "./mimeExtension"
                ? await makeRenderers()
                : await Promise.all(plugins.map((make) => make()));
            return () => ({ __esModule: true, default: exported });
        },
    };
})();
