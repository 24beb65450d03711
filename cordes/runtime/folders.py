"""Folders that belong to one run at a time, and whether they can be written, asked before any long
work."""

import contextlib
import json
import os
import platform
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cordes.errors import FileError
from cordes.runtime.files import PART, hold, is_special

# Records of a run are smaller; anything larger is not one.
LARGEST_RECORD = 64_000_000
# In a folder while a run writes there: who it is, and which files may be its. Gone when it has
# ended; what was killed leaves it, so that the next run knows what it may replace. Each run adds a
# line, which is one step: what earlier ones left is not forgotten.
LOCK = ".cordes.lock"
OPENED = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)


class Folder(NamedTuple):
    """A folder that a run has for itself; `command` are the run's words. `replaced` are the files
    of an earlier run, which go when this one has something to take their place; `records` are the
    names that its record may have."""

    path: Path
    command: list[str]
    replaced: frozenset[str] = frozenset()
    records: Sequence[str] = ()

    def put(self, parts: Mapping[str, Path], record: str) -> None:
        """Give files their names, the record of what is there last, in place of an earlier run. In
        the middle there is no record: never one of files that are not there."""
        records = {record, *self.records} & {record, *self.replaced}
        for name in sorted(records):
            (self.path / name).unlink(missing_ok=True)
        # Then the new answer is there before the old one goes.
        for name in sorted(parts.keys() - {record}):
            os.replace(parts[name], self.path / name)
        for name in sorted(self.replaced - parts.keys() - records):
            (self.path / name).unlink(missing_ok=True)
        if record in parts:
            os.replace(parts[record], self.path / record)


class Contents(NamedTuple):
    """The files that a command may write, those that any command may, and which of these are
    records of a run: objects with its `command` and its `files`."""

    names: Sequence[str]
    known: Sequence[str] = ()
    records: Sequence[str] = ()


@contextlib.contextmanager
def claimed(
    path: Path, contents: Contents, command: Sequence[str], overwrite: bool = False
) -> Iterator[Folder]:
    """Make the folder, and keep it from other runs. Refused: a folder that cannot be written, that
    another run is writing to, or that holds another run (unless `overwrite`); and, whatever is
    said, files of these names that no run has written."""
    # Not Path.exists, which raises for names that are too long.
    made = [each for each in (path, *path.parents) if not os.path.exists(each)]
    prepare_folder(path)
    try:
        with _locked(path, contents) as (lock, left):
            known = _known(path, contents, list(command), overwrite) | left
            _refuse_foreign(path, contents.names, known)
            replaced = frozenset(known & {*contents.names, *contents.known})
            note = {"process": os.getpid(), "host": platform.node(), "command": list(command)}
            note["files"] = sorted(replaced | set(contents.names))
            try:
                os.write(lock, json.dumps(note).encode() + b"\n")
            except OSError as error:
                raise _cannot_be_written(path, error) from error
            yield Folder(path, list(command), replaced, contents.records)
    finally:
        # Nothing was written: all is as it was.
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def prepare_folder(folder: Path) -> Path:
    """Make the folder and try to write there: what cannot be written is refused before a solve."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise FileError(f"--out {folder} is a file: give the name of a folder.") from None
    except OSError as error:
        raise _cannot_be_written(folder, error) from error
    return folder


def _cannot_be_written(folder: Path, error: OSError) -> FileError:
    return FileError(
        f"--out {folder} cannot be written: {error.strerror or error}. Choose another folder."
    )


@contextlib.contextmanager
def _locked(folder: Path, contents: Contents) -> Iterator[tuple[int, set[str]]]:
    """The lock, held, and the files that a killed run has left. The system gives a lock back when
    its process ends, however it ends. Its file goes, unless what a killed run has left is there
    still, since this run was refused, or ended without an answer."""
    path = folder / LOCK
    lock = _open_lock(path)
    try:
        left = _notes(path)
        if left:
            for part in folder.glob(f"{PART}*"):
                part.unlink(missing_ok=True)
        yield lock, set().union(*map(_names_in, left))
    finally:
        try:
            with contextlib.suppress(OSError):
                if not _unrecorded(folder, contents):
                    path.unlink()
        finally:
            os.close(lock)


def _unrecorded(folder: Path, contents: Contents) -> set[str]:
    """Files of runs that no record names."""
    records = [_read_object(folder / name) for name in contents.records]
    named = set(contents.records).union(*(_names_in(record) for record in records if record))
    noted = set().union(*map(_names_in, _notes(folder / LOCK)))
    return {name for name in noted - named if os.path.lexists(folder / name)}


def _open_lock(path: Path) -> int:
    while True:
        if os.path.lexists(path) and not path.is_file():
            raise FileError(f"{path} is no file: move it, or choose another --out.")
        try:
            lock = os.open(path, OPENED, 0o666)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror or error}.") from error
        try:
            # Where there are no locks, two runs at once are not noticed.
            hold(lock)
        except BlockingIOError:
            os.close(lock)
            raise FileError(_taken(path)) from None
        # Another run may have ended, and removed the file, after it was opened here.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(path)):
                return lock
        os.close(lock)


def _taken(lock: Path) -> str:
    owner = (_notes(lock) or [{}])[-1]
    who = f"process {owner.get('process')} on {owner.get('host')}" if owner else "another process"
    return (
        f"--out {lock.parent} is being written by {who}{_told(owner)}: wait for it to end, or "
        "choose another folder."
    )


def _told(record: Mapping[str, Any]) -> str:
    """The command of a run, where it is known."""
    command = record.get("command")
    if not isinstance(command, list) or not command:
        return ""
    return f" (cordes {shlex.join(map(str, command))[:200]})"


def _known(folder: Path, contents: Contents, command: list[str], overwrite: bool) -> set[str]:
    """The files of a run that may be replaced: the same one made again, or any if it is said."""
    found: set[str] = set()
    for name in contents.records:
        record = _read_object(folder / name)
        if record is None or not isinstance(record.get("files"), list):
            continue
        if not overwrite and record.get("command") != command:
            raise FileError(
                f"--out {folder} holds another run{_told(record)}: choose another folder, or give "
                "--overwrite to replace it."
            )
        found |= {name, *_names_in(record)}
    return found


def _refuse_foreign(folder: Path, names: Sequence[str], known: set[str]) -> None:
    for name in names:
        path = folder / name
        if os.path.lexists(path) and (name not in known or is_special(path)):
            raise FileError(
                f"{path} was not written by a run of cordes, and would be lost: move it, or choose "
                "another --out."
            )


def _names_in(record: Mapping[str, Any]) -> set[str]:
    files = record.get("files")
    return {Path(name).name for name in files or () if isinstance(name, str)}


def _read_object(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is none."""
    try:
        # Whoever reads a pipe waits for its writer.
        regular = path.is_file() and not path.is_symlink()
        if not regular or path.stat().st_size > LARGEST_RECORD:
            return None
        return _as_object(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _notes(lock: Path) -> list[dict[str, Any]]:
    """What runs have noted in a lock, the last one last; at its start a run has not yet."""
    with contextlib.suppress(OSError, ValueError):
        lines = lock.read_text(encoding="utf-8").splitlines()
        return [note for line in lines if (note := _as_object(line)) is not None]
    return []


def _as_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
