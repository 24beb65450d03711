"""Kill a command at every single write: each time a file is opened for writing, renamed or removed,
or a folder is made or removed.

    python benchmarks/faults/writes.py [COMMAND …]     those of the table, all by default

Each kill comes to a copy of a folder: an empty one, and one that holds another run. Afterwards it
is as before, or holds a complete answer, or only files that the same command replaces when it runs
again: a lock, parts, and an answer without all of its pictures. What was killed at every fifth
write is run again, and must leave a complete run and nothing else.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from commands import Child, import_everything, is_complete, write_inputs, wrong_in

from cordes.runtime.files import PART
from cordes.runtime.folders import LOCK

PATIENCE, AGAIN = 300.0, 5
SOLVE = ["solve", "one.toml", "--features", "20", "--out", "out", "--overwrite"]
COMMANDS = {
    "solve": SOLVE,
    "check": ["check", "two.toml", "--out", "out", "--overwrite"],
    "surface": ["surface", "small.obj", "--no-network", "--out", "out", "--overwrite"],
    "report": ["report", "first", "first", "--out", "out/page.html"],
}
BEFORE = ["solve", "two.toml", "--features", "60", "--seed", "1", "--out", "out"]
NOTES = "notes.txt"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Killing(Child):
    """A command that is killed at its `at`-th write below a folder."""

    def __init__(self, at: int, words: list[str], folder: Path, log: Path):
        self.at = at
        super().__init__(words, folder, log)

    def _become(self, words: list[str], folder: Path) -> None:  # pyright: ignore
        place, left = str(folder / "out"), [self.at]

        def hear(event: str, arguments: tuple) -> None:
            if _writes(event, arguments, place):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1

        sys.addaudithook(hear)
        super()._become(words, folder)


def _writes(event: str, arguments: tuple, place: str) -> bool:
    if event == "open":
        path, _, flags = arguments
        wanted = bool(flags & WRITING)
    else:
        path = arguments[0] if arguments else None
        wanted = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
    if not wanted or not isinstance(path, str | bytes | os.PathLike):
        return False
    return os.path.abspath(os.fsdecode(path)).startswith(place)


def contents(folder: Path) -> dict[str, bytes]:
    """What is there, but for what a run needs only while it writes."""
    return {
        path.name: path.read_bytes()
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name != LOCK and not path.name.startswith(PART)
    }


def wrong_after(name: str, folder: Path, before: dict[str, bytes]) -> list[str]:
    """What must not be after a kill; a page has no record, and no folder of its own."""
    after = contents(folder)
    wrong = list(wrong_in(folder, killed=True))
    if after.get(NOTES) != before.get(NOTES):
        wrong.append("a file of somebody else has changed")
    # What is checked has no file but its record, in whose place there is none for a moment.
    answers = {"answer.cordes", "surface.obj"}
    if name != "check" and answers & before.keys() and not answers & after.keys():
        wrong.append("the answer is gone")
    return wrong


def killed_everywhere(name: str, root: Path, full: bool) -> tuple[int, list[str]]:
    """How often a command was killed until it ended, and what was wrong."""
    out, faults, at = root / "out", [], 0
    while True:
        shutil.rmtree(out, ignore_errors=True)
        if full:
            shutil.copytree(root / "before", out)
        elif name == "report":
            out.mkdir()
        before = contents(out)
        status = Killing(at, COMMANDS[name], root, root / "log").ended(PATIENCE)
        faults += [f"{name} at {at}: {each}" for each in wrong_after(name, out, before)]
        if status != -signal.SIGKILL:
            break
        if at % AGAIN == 0:
            status = Child(COMMANDS[name], root, root / "log").ended(PATIENCE)
            faults += [] if _good(name, out, full) else [f"{name} at {at}: again {status}"]
        at += 1
    good = status == 0 and _good(name, out, full)
    return at, faults if good else [*faults, f"{name}: status {status} at the end"]


def _good(name: str, out: Path, full: bool) -> bool:
    """Whether a complete run is there, beside the file of somebody else, and nothing is left."""
    found = {path.name for path in out.iterdir()}
    if any(each == LOCK or each.startswith(PART) for each in found):
        return False
    if name == "report":
        return "page.html" in found
    (out / NOTES).unlink(missing_ok=True)
    return is_complete(out)


def main(names: list[str]) -> int:
    root, failures = Path(tempfile.mkdtemp(prefix="writes-")), 0
    write_inputs(root)
    import_everything()
    first = [*SOLVE[:-3], "--out", "first"]
    for words in (first, BEFORE):
        assert Child(words, root, root / "log").ended(PATIENCE) == 0
    (root / "out" / NOTES).write_text("mine")
    (root / "out").rename(root / "before")
    for name in names or COMMANDS:
        for full in (False, True):
            kills, faults = killed_everywhere(name, root, full)
            where = "a folder with another run" if full else "an empty folder"
            print(f"{name:<8} {where:<26} {kills:>3} kills, {len(faults)} faults", flush=True)
            print(*faults[:20], sep="\n", end="\n" if faults else "")
            failures += len(faults)
    shutil.rmtree(root)
    return failures


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
