// Renderers of JupyterLab for everything that `stored.js` knows how to show.
(() => {
    const { kinds, placeOf, moduleOf } = window.attentionCourse;

    // What anybody else's renderer shows as well.
    const showPicture = (node, { data, metadata }) => {
        if (!("image/png" in data)) return node.replaceChildren(data["text/plain"] ?? "");
        const picture = document.createElement("img");
        picture.src = `data:image/png;base64,${data["image/png"]}`;
        picture.alt = metadata["image/png"]?.alt ?? "";
        node.replaceChildren(picture);
    };

    window.attentionCourse.makeRenderers = async () => {
        const { Widget } = await moduleOf("@lumino/widgets");

        class Renderer extends Widget {
            constructor(mimeType) {
                super();
                this.mimeType = mimeType;
            }

            async renderModel(model) {
                const stored = Object(model.metadata[this.mimeType]);
                try {
                    await kinds[this.mimeType](this.node, stored, placeOf(this, stored));
                } catch (error) {
                    showPicture(this.node, model);
                }
            }
        }

        return Object.keys(kinds).map((mimeType) => ({
            id: `attention-course:${mimeType}`,
            rendererFactory: {
                safe: true,  // nothing that is stored is run, and it was escaped when it was made
                mimeTypes: [mimeType],
                createRenderer: () => new Renderer(mimeType),
            },
            rank: 0,  // behind a live widget, which has -10, and before HTML and pictures
            dataType: "json",
        }));
    };
})();
