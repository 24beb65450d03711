"""Folders belong to one run at a time, whatever ends it."""

import contextlib
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cordes.errors import FileError
from cordes.runtime.files import PART, part_of, write_file
from cordes.runtime.folders import LOCK, Contents, claimed

KNOWN = ("answer", "picture", "result.json")
CONTENTS = Contents(
    ["answer", "result.json"], ["answer", "picture", "result.json"], ["result.json"]
)


class Killed(BaseException):
    """As a kill: nothing that would clean up is run after it."""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def claim(folder, command, overwrite=False):
    with claimed(folder, CONTENTS, command, overwrite):
        pass


def run_of(folder, command, *written):
    (folder / "result.json").write_text(
        json.dumps({"command": command, "files": [str(folder / name) for name in written]})
    )
    for name in written:
        if name != "result.json":
            (folder / name).write_text(f"{command}")


def test_a_claim_leaves_nothing_behind(tmp_path):
    place = tmp_path / "made" / "here"
    with claimed(place, CONTENTS, ["solve"]):
        assert names(place) == [LOCK]
    assert names(tmp_path) == []


def test_another_run_is_refused_while_one_is_writing(tmp_path):
    with claimed(tmp_path, CONTENTS, ["solve", "one.toml"]):
        with pytest.raises(FileError, match=r"written by process \d+ .*solve one.toml"):
            claim(tmp_path, ["solve"], overwrite=True)
        assert names(tmp_path) == [LOCK]
    with claimed(tmp_path, CONTENTS, ["solve"]):
        pass


@pytest.mark.long
def test_a_lock_is_given_back_by_the_end_of_its_process(tmp_path):
    program = f"""
import os, pathlib
from cordes.runtime.folders import Contents, claimed
with claimed(pathlib.Path({str(tmp_path)!r}), Contents(["answer"]), ["solve"]):
    pathlib.Path({str(tmp_path / "answer")!r}).write_text("left")
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert names(tmp_path) == [LOCK, "answer"]
    with claimed(tmp_path, CONTENTS, ["other"]) as folder:
        assert folder.replaced == {"answer"}


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / LOCK).symlink_to(tmp_path / "precious")
    with pytest.raises(FileError, match="cannot be written"):
        claim(tmp_path, ["solve"])
    assert (tmp_path / "precious").read_text() == "precious"


def test_files_of_others_are_never_taken(tmp_path):
    (tmp_path / "answer").write_text("mine")
    (tmp_path / "picture").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(FileError, match="answer was not written by a run of cordes"):
            claim(tmp_path, ["solve"], overwrite)
    (tmp_path / "answer").unlink()
    # Names that only other commands have are none of this one's business.
    with claimed(tmp_path, CONTENTS, ["solve"]) as folder:
        assert not folder.replaced


def test_a_record_cannot_give_away_other_files(tmp_path):
    run_of(tmp_path, ["solve"], "answer", "result.json", "notes.txt", "../outside")
    with claimed(tmp_path, CONTENTS, ["solve"]) as folder:
        assert folder.replaced == {"answer", "result.json"}


def test_a_linked_record_is_none(tmp_path):
    run_of(tmp_path, ["solve"], "answer", "result.json")
    (tmp_path / "result.json").rename(tmp_path / "elsewhere")
    (tmp_path / "result.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="was not written"):
        claim(tmp_path, ["solve"])


def test_another_run_is_replaced_only_if_it_is_said(tmp_path):
    run_of(tmp_path, ["solve", "one"], "answer", "picture", "result.json")
    with pytest.raises(FileError, match=r"holds another run \(cordes solve one\)"):
        claim(tmp_path, ["solve", "other"])
    for command, overwrite in ((["solve", "one"], False), (["other"], True)):
        with claimed(tmp_path, CONTENTS, command, overwrite) as folder:
            assert folder.replaced == {"answer", "picture", "result.json"}
    assert names(tmp_path) == ["answer", "picture", "result.json"]


STEPS = ("replace", "unlink", "fsync", "write")


def killing(monkeypatch, at):
    """The process is killed at its `at`-th call of the system: neither that nor any later one is
    done."""
    calls, begun = [], set()

    def instead(name, function):
        def call(*arguments, **options):
            calls.append(name)
            if len(calls) > at or "killed" in begun:
                begun.add("killed")
                raise Killed
            return function(*arguments, **options)

        return call

    for name in STEPS:
        monkeypatch.setattr(os, name, instead(name, getattr(os, name)))
    monkeypatch.setattr(Path, "unlink", instead("unlink", Path.unlink))
    return calls


def whole(folder):
    """Whether a folder holds a run whose record names what is there, or none at all."""
    path = folder / "result.json"
    if path.exists():
        record = json.loads(path.read_text())
        assert all(Path(file).exists() for file in record["files"])
        assert (folder / "answer").read_text() == str(record["command"])
        return record["command"]
    return None


@pytest.mark.parametrize("before", [None, ["old"]])
def test_killed_at_every_write(tmp_path, before):
    """After a kill at any call the folder is as before, or holds a complete answer, or only files
    that the next run replaces."""
    seen = set()
    for at in range(40):
        folder = tmp_path / str(at)
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
        if before:
            run_of(folder, before, "answer", "picture", "result.json")
        with pytest.MonkeyPatch.context() as patched:
            calls = killing(patched, at)
            with contextlib.suppress(Killed):
                written(folder, ["new"], overwrite=True)
            ended = "killed" if len(calls) > at else "whole"
        seen.add((whole(folder) or [None])[0])
        assert (folder / "notes.txt").read_text() == "mine"
        if (folder / "answer").exists():
            assert (folder / "answer").read_text() in ("['old']", "['new']")
        if before:
            assert (folder / "answer").exists()
        if ended == "whole":
            assert whole(folder) == ["new"]
            break
        written(folder, ["new"], overwrite=True)
        assert whole(folder) == ["new"]
        assert names(folder) == ["answer", "notes.txt", "picture", "result.json"]
    else:
        pytest.fail("more calls than thought")
    assert seen == ({"old", None, "new"} if before else {None, "new"})


def test_killed_while_a_run_of_another_kind_is_replaced(tmp_path):
    """Its record, which has another name, goes first, and its answer after there is a new one."""
    every = Contents(["check.json"], [*KNOWN, "check.json", "new"], ["check.json", "result.json"])
    for at in range(20):
        folder = tmp_path / str(at)
        folder.mkdir()
        run_of(folder, ["old"], "answer", "picture", "result.json")
        with claimed(folder, every, ["new"], overwrite=True) as place:
            parts = {name: part_of(folder / name) for name in ("new", "check.json")}
            write_file(parts["new"], "new answer")
            write_file(parts["check.json"], json.dumps({"files": ["new", "check.json"]}))
            with pytest.MonkeyPatch.context() as patched, contextlib.suppress(Killed):
                killing(patched, at)
                place.put(parts, "check.json")
        whole(folder)
        left = {name for name in names(folder) if not name.startswith(PART)}
        assert left & {"answer", "new"}
        assert "check.json" not in left or left == {"new", "check.json"}
    assert names(folder) == ["check.json", "new"]


def written(folder, command, overwrite):
    """A run as commands make it: the answer and its record first, then a picture."""
    with claimed(folder, CONTENTS._replace(names=CONTENTS.known), command, overwrite) as place:
        parts = {name: part_of(folder / name) for name in ("answer", "result.json")}
        write_file(parts["answer"], str(command))
        record = {"command": command, "files": ["answer", "result.json"]}
        record["files"] = [str(folder / name) for name in record["files"]]
        write_file(parts["result.json"], json.dumps(record))
        place.put(parts, "result.json")
        write_file(folder / "picture", str(command))
        record["files"].append(str(folder / "picture"))
        write_file(folder / "result.json", json.dumps(record))


def test_what_a_killed_run_has_left_is_not_forgotten(tmp_path):
    """Neither by a run that is refused, nor by one that ends without an answer."""
    run_of(tmp_path, ["solve"], "answer", "result.json")
    (tmp_path / "picture").write_text("not yet in the record")
    (tmp_path / LOCK).write_text(json.dumps({"files": [*KNOWN]}) + "\n")
    every = CONTENTS._replace(names=KNOWN)
    with pytest.raises(FileError, match="another run"), claimed(tmp_path, every, ["other"]):
        pass
    for _ in range(2):
        with claimed(tmp_path, every, ["solve"]) as folder:
            assert folder.replaced == set(KNOWN)
    written(tmp_path, ["other"], overwrite=True)
    assert names(tmp_path) == [*KNOWN]


def test_parts_of_a_killed_run_go(tmp_path):
    (tmp_path / LOCK).write_text(json.dumps({"files": ["answer"]}) + "\n")
    (tmp_path / f"{PART}01234567-answer").write_text("half")
    with claimed(tmp_path, CONTENTS, ["solve"]):
        assert names(tmp_path) == [LOCK]
    assert LOCK not in names(tmp_path)


@pytest.mark.parametrize("name", [LOCK, "result.json"])
def test_a_pipe_is_no_record_and_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match="choose another --out"):
        claim(tmp_path, ["solve"])
    assert names(tmp_path) == [name]


def test_a_disk_that_is_full_from_the_start_is_refused(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FileError, match=r"cannot be written: No space left on device\. Choose"):
        claim(tmp_path / "out", ["solve"])
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(FileError, match="cannot be written: File name too long"):
        claim(tmp_path / ("n" * 300), ["solve"])
