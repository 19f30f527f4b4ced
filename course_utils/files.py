"""Files that are replaced as a whole: a full disk or a broken-off run leaves the old one."""

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until nobody else is in here with the same folder, in this process or another.

    Where the system cannot lock, as on some network drives, it goes on without.
    """
    if fcntl:  # a folder can be locked itself, so nothing has to lie around in it
        handle = os.open(folder, os.O_RDONLY)
    else:
        name = sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        lock_file = Path(tempfile.gettempdir()) / f"attention-course-{name}.lock"
        handle = os.open(lock_file, os.O_RDWR | os.O_CREAT)
    try:
        with contextlib.suppress(OSError):
            if fcntl:
                fcntl.flock(handle, fcntl.LOCK_EX)
            else:
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        yield
    finally:
        os.close(handle)  # this unlocks as well


def replace(path: Path, data: bytes) -> None:
    """Write a file beside the old one and put it in its place, with the same permissions.

    Args:
        path: the file; where it is a link, what it leads to is replaced.
        data: all of the new content.

    Raises:
        OSError: it cannot be written, or is read-only. The old file is then as it was, and nothing
            is left beside it.
    """
    path = Path(path).resolve()
    # Asked of the file itself: root may write everywhere, and a new file needs only the folder.
    if path.exists() and not (path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):
        raise PermissionError(None, "it is read-only", str(path))
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # some network drives notice only here that they are full
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def replace_all(source: Path, target: Path) -> None:
    """Put copies of all files of a folder into another, which may have other files as well.

    Args:
        source: a folder.
        target: a folder; made where there is none.

    Raises:
        OSError: there is no room for them, or no right to write. Each file is then either the old
            or the new one, and nothing is left beside them.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as beside:
        copy = Path(shutil.copytree(source, Path(beside) / "copy"))
        for folder, _, names in os.walk(copy):
            into = target / Path(folder).relative_to(copy)
            into.mkdir(exist_ok=True)
            for name in names:
                Path(folder, name).replace(into / name)
