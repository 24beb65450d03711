"""Commands that can be killed at any moment, and a look at what is left behind.

A command runs in a fork of a process that has imported everything and used no device, so that a
hundred of them take minutes.
"""

import contextlib
import hashlib
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import cordes
from cordes.cli import run
from cordes.commands.files import KNOWN, RECORDS
from cordes.runtime.files import PART
from cordes.runtime.folders import LOCK
from cordes.runtime.signals import HEEDED, listen_early

ONE = """schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0]
upper = [1]
[equation]
A = 1
f = "%s"
"""
SQUARE = """schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 1]
[equation]
A = 1
f = "x1*(1 - x2)"
"""
TIME = """schema = 2
kind = "parabolic"
[domain]
type = "box"
lower = [0]
upper = [1]
[equation]
horizon = 0.2
A = 1
f = 0
initial = "sin(pi*x1)"
"""
SIDE = 7
ENDINGS = {
    ".png": b"IEND\xaeB`\x82",
    ".html": b"</html>\n",
    ".vtu": b"</VTKFile>\n",
    ".obj": b"\n",
    ".json": b"}\n",
}


def import_everything() -> None:
    for module in pkgutil.walk_packages(cordes.__path__, "cordes."):
        if not module.name.startswith(("cordes.__main__", "cordes.commands.templates.")):
            importlib.import_module(module.name)
    from jax._src import xla_bridge

    assert not xla_bridge.backends_are_initialized(), "a fork cannot use a device of its parent"


def write_inputs(folder: Path) -> None:
    """Problems and a mesh that cost little."""
    (folder / "one.toml").write_text(ONE % "1")
    (folder / "two.toml").write_text(ONE % "sin(20 * x1)")
    (folder / "square.toml").write_text(SQUARE)
    (folder / "time.toml").write_text(TIME)
    points = [(i / (SIDE - 1), j / (SIDE - 1)) for i in range(SIDE) for j in range(SIDE)]
    lines = [f"v {x} {y} {0.1 * x * x}" for x, y in points]
    for i in range(SIDE - 1):
        for j in range(SIDE - 1):
            a, b = i * SIDE + j + 1, (i + 1) * SIDE + j + 1
            lines += [f"f {a} {b} {b + 1}", f"f {a} {b + 1} {a + 1}"]
    (folder / "small.obj").write_text("\n".join(lines) + "\n")


class Child:
    """A command in a process of its own, in its own group."""

    def __init__(self, words: Sequence[str], folder: Path, log: Path):
        self.log, self.began = log, time.monotonic()
        sys.stdout.flush()
        # Until it listens, as a command does from its first import on, signals wait.
        signal.pthread_sigmask(signal.SIG_BLOCK, HEEDED)
        self.pid = os.fork()
        self.status: int | None = None
        if self.pid == 0:
            self._become(words, folder)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HEEDED)

    def _become(self, words: Sequence[str], folder: Path) -> None:
        status = 99
        with contextlib.suppress(BaseException):
            os.setsid()
            # A shell's background job, or nohup, ignores them, and so would the command.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number in set(HEEDED) - {signal.SIGINT}:
                signal.signal(number, signal.SIG_DFL)
            listen_early()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HEEDED)
            os.chdir(folder)
            for number, name in ((1, "out"), (2, "err")):
                log = self.log.with_suffix(f".{name}")
                os.dup2(os.open(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
            status = run([*words, "--json"], own_process=True)
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)

    def poll(self) -> int | None:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status

    def wait(self, seconds: float) -> int | None:
        """The status; None where it has not ended by then."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        return self.status

    def send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def ended(self, seconds: float) -> int | str:
        """The status; a hang is ended and said."""
        if self.wait(seconds) is None:
            self.send(signal.SIGKILL)
            self.wait(10)
            return "HANG"
        assert self.status is not None
        return self.status

    @property
    def printed(self) -> str:
        return self.log.with_suffix(".out").read_text(errors="replace")

    @property
    def said(self) -> str:
        return self.log.with_suffix(".err").read_text(errors="replace")


def wrong_in(folder: Path, killed: bool) -> Iterator[str]:
    """What must never be there: half files, records of files that are not there, and, unless the
    process was killed, anything that a run needs only while it writes."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.name == LOCK or path.name.startswith(PART):
            if not killed:
                yield f"{path.name} is left"
        elif path.is_file() and not _whole(path):
            yield f"{path.name} is half a file"
        if path.name in (*RECORDS, "study.json") and _whole(path):
            files = json.loads(path.read_text())["files"]
            missing = [name for name in files if not (folder.parent / name).exists()]
            if missing:
                yield f"{path.name} names {missing}, not there"


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a run with all of its files and nothing else."""
    found = {path.name for path in folder.iterdir()}
    records = [name for name in RECORDS if name in found]
    if len(records) != 1 or not found <= set(KNOWN) or not all(map(_whole, folder.iterdir())):
        return False
    record = json.loads((folder / records[0]).read_text())
    return {Path(name).name for name in record["files"]} == found and "report.html" in found


def _whole(path: Path) -> bool:
    data = path.read_bytes()
    if path.suffix in (".cordes", ".npz"):
        with contextlib.suppress(Exception), zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
        return False
    if path.suffix == ".proof":
        head, _, body = data.partition(b"\n")
        return head.endswith(hashlib.sha256(body).hexdigest().encode())
    if path.suffix == ".json":
        with contextlib.suppress(ValueError):
            json.loads(data)
            return True
        return False
    if path.suffix == ".ply":
        head, _, body = data.partition(b"end_header\n")
        count = int(head.split(b"element face ")[1].split()[0]) if b"element face" in head else -1
        return count >= 0 and len(body) > 13 * count
    return data.endswith(ENDINGS.get(path.suffix, b"")) and len(data) > 0
