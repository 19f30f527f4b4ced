"""Several learners at once on a JupyterHub: each runs a lesson on a server of their own.

    python deploy/learners.py NAME [NAME ...]

The names are users of this machine who have the course in ``~/attention``; their servers must not
run. All servers are started at once through the Hub, and all learners run the lesson at once. With
two names or more, the last one drops out halfway, comes back when the others are done, and goes
on. Prints what each of them saw, their times and their memory. Run it as root on the Hub's machine,
with a Hub that was started with ``trial_config.py``, and HUB_TOKEN set for both.
"""

import json
import os
import pwd
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import requests
import websocket

ROOT = Path(__file__).parents[1]
HUB = os.environ.get("HUB", "http://127.0.0.1:8000")
LESSON = os.environ.get("LESSON", "attention/04_merging_heads.ipynb")
HEADERS = {"Authorization": f"token {os.environ['HUB_TOKEN']}"}


def call(method: str, path: str, body=None, *, may_fail: tuple[int, ...] = ()):
    """Call the Hub, or a learner's server behind it, and return its answer."""
    reply = requests.request(method, HUB + path, headers=HEADERS, json=body, timeout=120)
    if not reply.ok and reply.status_code not in may_fail:
        raise RuntimeError(f"{method} {path}: {reply.text}")
    return reply.json() if reply.content else None


def text_of(output: dict) -> str:
    """What an output shows as plain text, in a message and in a notebook."""
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def stored() -> dict[str, str]:
    """What each cell of the lesson printed when it was written, by the cell's id."""
    cells = nbformat.read(ROOT / "notebooks" / Path(LESSON).name, as_version=4).cells
    return {cell.id: "".join(map(text_of, cell.get("outputs", []))) for cell in cells}


@dataclass
class Learner:
    """A user of the machine and the kernel of their lesson."""

    name: str
    printed: dict[str, str] = field(default_factory=dict)  # by the cell's id
    socket: websocket.WebSocket | None = None

    def start_server(self) -> None:
        """Ask the Hub for this learner's server and wait until it answers."""
        started = time.perf_counter()
        user = f"/hub/api/users/{self.name}"
        call("POST", user, may_fail=(409,))  # the Hub knows this learner already
        call("POST", f"{user}/server")
        while not call("GET", user)["servers"].get("", {}).get("ready"):
            time.sleep(0.2)
        self.server_seconds = time.perf_counter() - started

    def open_lesson(self) -> None:
        """Open the lesson; if it is open already, find its kernel again, as JupyterLab does."""
        server = f"/user/{self.name}/api"
        found = call("GET", f"{server}/contents/{LESSON}?content=1")["content"]["cells"]
        self.cells = [(cell["id"], cell["source"]) for cell in found if cell["cell_type"] == "code"]
        session = {"path": LESSON, "name": "", "type": "notebook", "kernel": {"name": "python3"}}
        self.kernel = call("POST", f"{server}/sessions", session)["kernel"]["id"]
        address = HUB.replace("http", "ws", 1) + f"{server}/kernels/{self.kernel}/channels"
        self.socket = websocket.create_connection(address, header=HEADERS, timeout=300)

    def run(self, cells: list[tuple[str, str]]) -> None:
        """Run cells one after the other and keep what each prints."""
        for cell, source in cells:
            asked, idle, replied = self.send(source), False, False
            self.printed[cell] = ""
            while not (idle and replied):
                message = json.loads(self.socket.recv())
                kind, content = message["header"]["msg_type"], message["content"]
                if message["parent_header"].get("msg_id") != asked:
                    continue
                idle |= kind == "status" and content["execution_state"] == "idle"
                if kind == "execute_reply":
                    replied, self.cells_run = True, content["execution_count"]
                elif kind == "error":
                    raise RuntimeError(f"{self.name}: {content['ename']}: {content['evalue']}")
                elif kind in ("stream", "execute_result", "display_data"):
                    self.printed[cell] += text_of(content)

    def send(self, code: str) -> str:
        """Ask the kernel to run code, and return the message's id."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "username": self.name,
            "session": self.name,
            "version": "5.3",
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "channel": "shell"}
        self.socket.send(json.dumps({**message, "content": {"code": code, "silent": False}}))
        return header["msg_id"]

    def learn(self, drops_out: bool = False) -> None:
        """Run the lesson to its end, or to its middle and be gone."""
        started = time.perf_counter()
        self.open_lesson()
        half = len(self.cells) // 2
        self.run(self.cells[:half] if drops_out else self.cells)
        if drops_out:
            self.send(self.cells[half][1])  # gone while this cell runs
            self.socket.close()
        self.lesson_seconds = time.perf_counter() - started

    def come_back(self) -> None:
        """Open the lesson again and go on after the cell that was running."""
        kernel, half = self.kernel, len(self.cells) // 2
        self.open_lesson()
        assert self.kernel == kernel, "the kernel was lost"
        self.run(self.cells[half + 1 :])
        assert self.cells_run == len(self.cells), "a cell was lost"

    def memory(self) -> dict[str, float]:
        """MB of this learner's processes: pss counts a shared page in parts, own leaves it out."""
        total = {"processes": 0, "pss": 0.0, "own": 0.0}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if folder.stat().st_uid != pwd.getpwnam(self.name).pw_uid:
                    continue
                lines = (folder / "smaps_rollup").read_text().splitlines()[1:]
            except OSError:  # it ended meanwhile
                continue
            size = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
            total["processes"] += 1
            total["pss"] += size["Pss"]
            total["own"] += size["Private_Clean"] + size["Private_Dirty"]
        return total


def main(names: list[str]) -> None:
    """Run the lesson with all of them, and print what was seen, the times and the memory."""
    learners = [Learner(name) for name in names]
    last = learners[-1] if len(learners) > 1 else None
    with ThreadPoolExecutor(len(learners)) as pool:
        list(pool.map(Learner.start_server, learners))
        idle = {learner.name: learner.memory() for learner in learners}
        list(pool.map(lambda learner: learner.learn(drops_out=learner is last), learners))
    if last:
        last.come_back()
    expected, others = stored(), 0
    for learner in learners:
        seen = learner.printed
        other = [cell for cell, text in seen.items() if text != expected[cell]]
        others += len(other)
        print(f"{learner.name}: {len(seen)} of {len(learner.cells)} cells seen; other than stored:")
        print("   ", ", ".join(other) or "none")
    print("learner      server  lesson | MB server: pss   own | MB in all: pss   own  processes")
    sums = [0.0, 0.0]
    for learner in learners:
        now, before = learner.memory(), idle[learner.name]
        sums = [sums[0] + now["pss"], sums[1] + now["own"]]
        print(
            f"{learner.name:<12} {learner.server_seconds:5.1f} s {learner.lesson_seconds:5.1f} s |"
            f"         {before['pss']:6.0f} {before['own']:5.0f} |"
            f"         {now['pss']:6.0f} {now['own']:5.0f}  {now['processes']}"
        )
    for learner in learners:
        call("DELETE", f"/hub/api/users/{learner.name}/server")
    print(f"all together: pss {sums[0]:.0f} MB, own {sums[1]:.0f} MB")
    sys.exit(others)


if __name__ == "__main__":
    main(sys.argv[1:])
