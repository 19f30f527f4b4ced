"""Nobody else with an account on the machine can read what a learner's kernel prints."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager
from traitlets.config import Config

from course_utils.jupyter.transport import keep_kernels_private

TOO_LONG = "r" * 90  # for a socket's path, which holds about 100 bytes

# As somebody else, asks for all that a kernel publishes, in the clear, and says what came.
LISTEN = """
import json, os, sys, zmq
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
address = sys.argv[1]
socket = zmq.Context().socket(zmq.SUB)
socket.subscribe(b"")
socket.linger = 0
try:
    socket.connect(address)
    came = b""
    while socket.poll(3000) and b"secret" not in came:
        came += b"".join(socket.recv_multipart())
    print("secret" if b"secret" in came else "nothing")
except zmq.ZMQError as error:
    print(error)
"""


@pytest.fixture
def runtime():
    """A folder that everybody may enter, unlike pytest's own; Jupyter closes its runtime folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def manager(folder: Path, **settings: str) -> MappingKernelManager:
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o755)
    config = Config({"KernelManager": settings})
    return MappingKernelManager(config=config, connection_dir=str(folder))


@pytest.mark.skipif(os.name == "nt", reason="on Windows they encrypt")
def test_kernels_talk_through_sockets_of_their_owner(runtime):
    kernels = manager(runtime)
    keep_kernels_private(kernels)
    assert kernels.config.KernelManager.transport == "ipc"
    assert list(runtime.iterdir()) == []


def test_where_there_can_be_no_socket_they_encrypt(runtime):
    kernels = manager(runtime / TOO_LONG)
    keep_kernels_private(kernels)
    assert "transport" not in kernels.config.KernelManager
    assert kernels.transport_encryption == "auto"
    assert list((runtime / TOO_LONG).iterdir()) == []


def test_what_the_user_has_set_stays(runtime):
    kernels = manager(runtime, transport="tcp")
    keep_kernels_private(kernels)
    assert kernels.config.KernelManager.transport == "tcp"
    assert kernels.transport_encryption == "disabled"


def test_the_server_is_told():
    """Once installed, also where it is not started by `make lab`."""
    settings = Path(__file__).parent.parent / "course_utils" / "jupyter" / "jupyter_server.json"
    extensions = json.loads(settings.read_text())["ServerApp"]["jpserver_extensions"]
    assert extensions["course_utils.jupyter.transport"] is True


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize(
    ("name", "private", "heard"),
    [("short", True, "nothing"), (TOO_LONG, True, "nothing"), ("short", False, "secret")],
    ids=["sockets", "encrypted", "as Jupyter does"],
)
def test_somebody_else_hears_nothing(runtime, name, private, heard):
    assert asyncio.run(what_others_hear(manager(runtime / name), private)) == heard


async def what_others_hear(kernels: MappingKernelManager, private: bool) -> str:
    if private:
        keep_kernels_private(kernels)
    number = await kernels.start_kernel()
    kernel = kernels.get_kernel(number)
    client = kernel.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        join = "-" if kernel.transport == "ipc" else ":"
        address = f"{kernel.transport}://{kernel.ip}{join}{kernel.iopub_port}"
        command = [sys.executable, "-c", LISTEN, address]
        listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while listener.poll() is None:
            client.execute("print('secret')")
            time.sleep(0.2)
        return listener.stdout.read().strip()
    finally:
        client.stop_channels()
        await kernels.shutdown_kernel(number, now=True)
