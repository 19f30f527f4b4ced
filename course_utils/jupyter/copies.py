"""What a copy for learners keeps of the stored outputs: what moves before a cell has run."""

import nbformat

OURS = "application/vnd.attention-course."  # how the mimetypes begin that JupyterLab shows moving


def clear_all_but_ours(notebook: nbformat.NotebookNode) -> None:
    """Take out every output but those of explorers, and all execution counts.

    Args:
        notebook: changed in place.
    """
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.execution_count = None
        cell.outputs = [
            output
            for output in cell.outputs
            if any(mimetype.startswith(OURS) for mimetype in output.get("data", {}))
        ]
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = None
