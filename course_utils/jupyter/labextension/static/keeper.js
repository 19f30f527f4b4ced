// A plugin of JupyterLab: an explorer stands where it was left, after a re-run, F5 and reopening.
//
// A move is kept in the browser at once, and in the notebook when it is saved the next time: in the
// metadata of the output, as `stop`, which nbval does not compare. A move alone does not make a
// notebook "unsaved". A cell that runs again shows a fresh explorer, which is then told its stop.
(() => {
    const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";
    const { kinds, recall, remember, forget, moduleOf, plugins } = window.attentionCourse;
    const kindOf = (data) => Object.keys(kinds).find((kind) => kind in data);
    // An answer is the learner's own: it has a time, stays in the browser, and is in no notebook.
    const isAnswer = (value) => Number.isInteger(value?.when);
    const isSame = (a, b) => JSON.stringify(a) == JSON.stringify(b);

    class Keeper {
        constructor(panel) {
            this.panel = panel;
            this.left = new Map();  // what was left, by cell and number of its output
            this.live = new Map();  // the same keys by the id of a live widget
            this.opened = new Map();  // what the kernel knew when it made a widget
            this.written = new Map();
            const { context, sessionContext } = panel;
            context.saveState.connect((_, state) => {
                if (state == "started") this.write();
                if (state == "completed") this.forgetWritten();
            });
            sessionContext.iopubMessage.connect((_, message) => this.hear(message));
            sessionContext.statusChanged.connect((_, status) => {
                if (/restarting|dead|terminating/.test(status)) this.unplug();
            });
            sessionContext.kernelChanged.connect(() => this.unplug());
        }

        /** Every output of a kind of ours: [key, cell model, index, output model]. */
        *outputs() {
            for (const cell of this.panel.content.model?.cells ?? [])
                for (let i = 0; i < (cell.outputs?.length ?? 0); i++) {
                    const output = cell.outputs.get(i);
                    if (kindOf(output.data)) yield [`${cell.id}/${i}`, cell, i, output];
                }
        }

        nameOf(key) {
            return `attention-course:${this.panel.context.path}#${key}`;
        }

        /** Opening alone changes nothing, though JupyterLab notes the language of each kernel. */
        stayClean() {
            this.panel.context.model.metadataChanged.connect((model, { key }) => {
                const wasDirty = model.dirty;
                if (key == "language_info") queueMicrotask(() => { model.dirty = wasDirty; });
            });
        }

        /** What the file says of its outputs, as long as nothing newer is known. */
        readFile() {
            for (const [key, , , output] of this.outputs()) {
                const { stop } = Object(output.metadata[kindOf(output.data)]);
                if (stop && !isAnswer(stop) && !this.left.has(key)) this.left.set(key, stop);
            }
        }

        kept(key) {
            return recall(this.nameOf(key)) ?? this.left.get(key);
        }

        keep(key, value) {
            this.left.set(key, value);
            remember(this.nameOf(key), value);
        }

        /** Put what was left into the notebook that is about to be saved. */
        write() {
            this.written.clear();
            for (const [key, cell, i, output] of this.outputs()) {
                const stop = this.kept(key), kind = kindOf(output.data), json = output.toJSON();
                if (!stop || isAnswer(stop)) continue;
                this.written.set(key, stop);
                const stored = Object(json.metadata[kind]);
                json.metadata = { ...json.metadata, [kind]: { ...stored, stop } };
                // Past the output's own model, so that nothing is drawn again.
                cell.sharedModel.updateOutputs(i, i + 1, [json], "silent-change");
            }
        }

        /** What is in the file now need not stay in the browser. */
        forgetWritten() {
            for (const [key, stop] of this.written) {
                if (!isSame(this.kept(key), stop)) continue;  // moved since
                this.left.set(key, stop);
                forget(this.nameOf(key));
            }
        }

        hear({ header, content }) {
            if (/^(execute_result|display_data)$/.test(header.msg_type)) {
                const id = content.data[WIDGET_VIEW]?.model_id;
                if (id && kindOf(content.data)) this.plug(id);
            } else if (header.msg_type == "comm_open") {
                const stop = content.data?.state?.stop;
                if (isAnswer(stop)) this.opened.set(content.comm_id, stop);
            } else if (header.msg_type == "comm_msg" && this.live.has(content.comm_id)) {
                const { method, state } = Object(content.data);
                if (method == "update" && state?.stop)
                    this.keep(this.live.get(content.comm_id), state.stop);
            }
        }

        /** A fresh widget was shown: find its output, and move it to where the last one was left. */
        async plug(id) {
            for (let tries = 0; tries < 50; tries++) {
                for (const [key, , , output] of this.outputs())
                    if (output.data[WIDGET_VIEW]?.model_id == id) {
                        const stop = this.kept(key), own = this.opened.get(id);
                        this.live.set(id, key);
                        // Of two answers the newer one wins: the kernel finds out, if both know one.
                        if (stop) await this.send(id, { stop });
                        else if (own) this.keep(key, own);
                        return;
                    }
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
        }

        async send(comm_id, state) {
            const { KernelMessage } = await moduleOf("@jupyterlab/services");
            const kernel = this.panel.sessionContext.session?.kernel;
            kernel?.sendShellMessage(KernelMessage.createMessage({
                msgType: "comm_msg",
                channel: "shell",
                session: kernel.clientId,
                username: kernel.username,
                content: { comm_id, data: { method: "update", state, buffer_paths: [] } },
            }));
        }

        /** The kernel is gone: what is stored takes the place of widgets that no longer answer. */
        unplug() {
            const model = this.panel.content.model, wasDirty = model?.dirty;
            for (const [, cell, i, output] of [...this.outputs()]) {
                if (!(WIDGET_VIEW in output.data)) continue;
                const json = output.toJSON(), { [WIDGET_VIEW]: _, ...data } = json.data;
                cell.outputs.set(i, { ...json, data });
            }
            this.live.clear();
            if (model) model.dirty = wasDirty;
        }
    }

    const keepers = new Set();

    /** Where a renderer stands in a notebook, and what was left there. */
    window.attentionCourse.placeOf = (widget, stored) => {
        const find = () => {
            const around = [];  // the renderer, its output, the output area, …
            for (let one = widget; one; one = one.parent) around.push(one);
            for (const keeper of keepers)
                for (const cell of keeper.panel.content.widgets) {
                    const area = around.indexOf(cell.outputArea);
                    if (area > 0)
                        return [
                            keeper,
                            `${cell.model.id}/${cell.outputArea.widgets.indexOf(around[area - 1])}`,
                        ];
                }
            return [];  // in a view of an output alone
        };
        let here = stored.stop;
        return {
            toRun: "Run this cell",
            kept: () => {
                const [keeper, key] = find();
                return keeper?.kept(key) ?? here;
            },
            keep: (value) => {
                const [keeper, key] = find();
                here = value;
                keeper?.keep(key, value);
            },
        };
    };

    plugins.push(async () => {
        const { INotebookTracker } = await moduleOf("@jupyterlab/notebook");
        return {
            id: "attention-course:keeper",
            autoStart: true,
            requires: [INotebookTracker],
            activate: (app, notebooks) => {
                notebooks.widgetAdded.connect(async (_, panel) => {
                    const keeper = new Keeper(panel);
                    keepers.add(keeper);
                    panel.disposed.connect(() => keepers.delete(keeper));
                    await panel.context.ready;
                    keeper.stayClean();  // not before: as it is read, a notebook changes too
                    keeper.readFile();
                });
                // JupyterLab would take these keys for itself and go to the next cell.
                const ours = /^(Arrow(Left|Right|Up|Down)|Home|End|PageUp|PageDown| )$/;
                window.addEventListener("keydown", (event) => {
                    if (ours.test(event.key) && event.target.closest?.(".ac-explorer input"))
                        event.stopPropagation();
                }, true);
            },
        };
    });
})();
