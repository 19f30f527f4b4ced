// A plugin of JupyterLab: while the kernel has not caught up with a slider, its explorer says so.
(() => {
    const { moduleOf, plugins } = window.attentionCourse;
    const SOON = 400;  // ms; most moves are shown long before

    class Watch {
        constructor(panel) {
            this.panel = panel;
            this.touched = null;  // the output that was clicked in, or got a key, last
            this.open = new Map();  // the output by the id of a message that is not dealt with yet
            this.signal = null;
            for (const name of ["pointerdown", "keydown"])
                panel.node.addEventListener(name, ({ target }) => {
                    this.touched = target.closest?.(".jp-OutputArea-output:has(.ac-live)");
                }, true);
            panel.sessionContext.kernelChanged.connect(() => this.listen());
            this.listen();
        }

        listen() {
            this.signal?.disconnect(this.hear, this);
            for (const id of [...this.open.keys()]) this.close(id);
            this.signal = this.panel.sessionContext.session?.kernel?.anyMessage;
            this.signal?.connect(this.hear, this);
        }

        hear(_, { msg: { header, content, parent_header }, direction }) {
            const isMove = header.msg_type == "comm_msg" && content.data?.method == "update";
            if (direction == "send" && isMove && this.touched) {
                this.open.set(header.msg_id, this.touched);
                setTimeout(() => {
                    this.open.get(header.msg_id)?.classList.add("ac-waiting");
                }, SOON);
            } else if (header.msg_type == "status" && content.execution_state == "idle")
                this.close(parent_header.msg_id);
        }

        close(id) {
            const output = this.open.get(id);
            if (!this.open.delete(id) || [...this.open.values()].includes(output)) return;
            output.classList.remove("ac-waiting");
        }
    }

    plugins.push(async () => {
        const { INotebookTracker } = await moduleOf("@jupyterlab/notebook");
        return {
            id: "attention-course:waiting",
            autoStart: true,
            requires: [INotebookTracker],
            activate: (app, notebooks) => {
                notebooks.widgetAdded.connect((_, panel) => new Watch(panel));
            },
        };
    });
})();
