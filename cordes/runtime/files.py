"""Files that are there whole or not at all, and whether they can be written, asked before any long
work."""

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cordes.arguments import as_path
from cordes.errors import FileError

try:
    import fcntl
except ImportError:
    # Windows: two runs at once into one folder are not noticed, and parts that were left stay.
    fcntl = None

# How the names of files begin that are not whole yet; a kill in the middle leaves one.
PART = ".part-"
# Random digits that tell parts of one file apart.
DIGITS = 8
# Somebody may have put a pipe or a link there: neither waited for nor followed.
SEEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
# The longest end of a name that a part takes over: names have at most 255 bytes.
NAME = 100


def check_writable(path: str | Path) -> Path:
    """Refuse an output before any long work."""
    path = as_path(path)
    folder = path.parent if str(path.parent) else Path()
    if path.is_dir():
        raise FileError(f"{path} is a folder: give the name of a file.")
    if not folder.is_dir():
        raise FileError(f"The folder {folder} does not exist: make it first.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise FileError(f"{path} cannot be written: permission denied.")
    return path


def part_of(path: Path) -> Path:
    """A name beside `path` that no other file has; the ending, which says the format, stays."""
    return path.with_name(f"{PART}{secrets.token_hex(DIGITS // 2)}-{path.name[-NAME:]}")


def write_file(path: str | Path, content: bytes | str) -> Path:
    """Write a file that is there whole or not at all, whatever ends the process: under a name of
    its own, where no link can lead elsewhere, and then renamed. A link of the name `path` is
    replaced, and not what it leads to; a device or a pipe is written to as it is."""
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if is_special(path):
            path.write_bytes(data)
        else:
            _replace(path, data)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
    return path


def _replace(path: Path, data: bytes) -> None:
    part, file = _begun(path)
    try:
        with file:
            file.write(data)
            file.flush()
            # Else the new name can reach the disk before what the file holds.
            os.fsync(file.fileno())
            _remove_left(path)
            if fcntl is not None:
                # As long as it is held nobody takes it for one that was left.
                os.replace(part, path)
        if fcntl is None:
            # Windows renames no open file.
            os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _begun(path: Path) -> tuple[Path, BinaryIO]:
    """A new part, open, and held until it is closed or its process ends."""
    while True:
        part = part_of(path)
        file = part.open("xb")
        # Before it was held, another process may have taken it for one that was left.
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            if not hold(file.fileno()) or os.path.samestat(os.fstat(file.fileno()), os.stat(part)):
                return part, file
        file.close()


def hold(descriptor: int) -> bool:
    """Whether a file could be locked; raises BlockingIOError where another process holds it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # A file system without locks.
        return False
    return True


def _remove_left(path: Path) -> None:
    """Parts of this file that nobody holds: their writers were killed."""
    ending, names = f"-{path.name[-NAME:]}", []
    # A folder may take files and show none.
    with contextlib.suppress(OSError):
        names = os.listdir(path.parent)
    for name in names:
        if name.startswith(PART) and name[len(PART) + DIGITS :] == ending:
            with contextlib.suppress(OSError):
                _remove_unheld(path.with_name(name))


def _remove_unheld(part: Path) -> None:
    file = os.open(part, SEEN)
    try:
        if hold(file):
            part.unlink()
    finally:
        os.close(file)


def is_special(path: Path) -> bool:
    """Whether something is there that a file must not take the place of, as /dev/null."""
    if path.exists() and not path.is_file():
        return True
    parent = path.parent.resolve()
    return parent == Path("/dev") or parent.is_relative_to("/proc")


@contextlib.contextmanager
def standard_output_kept() -> Iterator[None]:
    """Within this context whatever writes to standard output, be it a library in C, writes to
    standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
