"""A small extension of Jupyter's server: nobody else on the machine can read a kernel's output.

Jupyter's kernels listen on ports of the machine, and whoever has an account there may listen to
what they print. Sockets in the folder of their owner are closed to others. Where there are none (on
Windows, on some drives, or where the folder's path is too long for a socket) kernels keep their
ports, and encrypt what they send.
"""

import contextlib
import os
import socket
import uuid


def can_hold_sockets(folder: str) -> bool:
    """Whether a kernel's sockets can be made in a folder: tried with a name as long as theirs."""
    if os.name != "posix":  # zmq has them on Windows too, Jupyter does not
        return False
    path = os.path.join(folder, f"kernel-{uuid.uuid4()}-ipc-99")
    try:
        with socket.socket(socket.AF_UNIX) as tried:
            tried.bind(path)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return True


def keep_kernels_private(kernels) -> None:
    """Set how the kernels that will be started talk.

    Args:
        kernels: the server's MappingKernelManager. What its user has set is left alone.
    """
    if "transport" in kernels.config.KernelManager or kernels.transport_encryption != "disabled":
        return
    if can_hold_sockets(kernels.connection_dir):
        kernels.config.KernelManager.transport = "ipc"
    else:
        kernels.transport_encryption = "auto"


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": "course_utils.jupyter.transport"}]


def _load_jupyter_server_extension(server_app) -> None:
    keep_kernels_private(server_app.kernel_manager)
