// A plugin of JupyterLab: a lesson as if nothing had run, with its sliders, which need no run.
(() => {
    const { kinds, moduleOf, plugins } = window.attentionCourse;
    const command = "attention-course:clear-outputs";

    const isKept = ({ outputs }) => {
        for (let i = 0; i < outputs.length; i++)
            if (Object.keys(kinds).some((kind) => kind in outputs.get(i).data)) return true;
        return false;
    };

    plugins.push(async () => {
        const { INotebookTracker } = await moduleOf("@jupyterlab/notebook");
        const { IMainMenu } = await moduleOf("@jupyterlab/mainmenu");
        return {
            id: "attention-course:clear",
            autoStart: true,
            requires: [INotebookTracker],
            optional: [IMainMenu],
            activate: (app, notebooks, menus) => {
                app.commands.addCommand(command, {
                    label: "Clear Outputs, Keep Sliders",
                    isEnabled: () => !!notebooks.currentWidget,
                    execute: () => {
                        for (const cell of notebooks.currentWidget.content.widgets) {
                            if (cell.model.type != "code" || isKept(cell.model)) continue;
                            cell.model.clearExecution();
                            cell.outputHidden = false;
                        }
                    },
                });
                menus?.editMenu.addGroup([{ command }], 10);
            },
        };
    });
})();
