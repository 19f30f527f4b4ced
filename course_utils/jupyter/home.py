"""Before JupyterLab starts: can it write where it keeps its settings?

Otherwise it ends with a long traceback, of which the last line names a folder.
"""

import sys
import tempfile
from pathlib import Path

from jupyter_core.paths import jupyter_config_dir, jupyter_data_dir, jupyter_runtime_dir


def problem() -> str | None:
    """What to do about a folder that cannot be written, in two sentences; None if all can."""
    for folder in (jupyter_config_dir(), jupyter_data_dir(), jupyter_runtime_dir()):
        try:
            Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            return (
                f"JupyterLab cannot write to {folder} ({error.strerror}), where it keeps its "
                "settings. Try: make lab HOME=folder, with a folder that you can write to."
            )
    return None


if __name__ == "__main__":
    sys.exit(problem())
