"""Files are there whole or not at all; what killed writers have left goes."""

import errno
import os
from pathlib import Path

import pytest

from cordes.errors import FileError
from cordes.runtime import files
from cordes.runtime.files import PART, part_of, write_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_replaces_the_link_and_not_its_target(tmp_path):
    target, link = tmp_path / "precious", tmp_path / "link"
    target.write_text("precious")
    link.symlink_to(target)
    write_file(link, "new")
    assert (target.read_text(), link.read_text(), link.is_symlink()) == ("precious", "new", False)
    assert names(tmp_path) == ["link", "precious"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    assert write_file(tmp_path / "written", b"").stat().st_mode == plain.stat().st_mode


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = write_file(tmp_path / "file", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="file cannot be written: No space left"):
        write_file(path, "new")
    assert (names(tmp_path), path.read_text()) == (["file"], "old")


def test_devices_and_pipes_are_not_replaced(tmp_path):
    write_file("/dev/null", "nothing")
    assert not Path("/dev/null").is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, "through")
        assert os.read(reader, 20) == b"through"
    finally:
        os.close(reader)
    assert names(tmp_path) == ["pipe"]


def test_long_names(tmp_path):
    path = tmp_path / ("n" * 250 + ".png")
    assert write_file(path, "x").read_text() == "x"
    assert part_of(path).suffix == ".png"


def test_what_a_killed_writer_has_left_goes(tmp_path):
    """With the next file of the same name; links are neither followed nor taken for one."""
    part_of(tmp_path / "page.html").write_text("half")
    other, link = f"{PART}01234567-other.html", f"{PART}01234567-page.html"
    (tmp_path / other).write_text("of another file")
    (tmp_path / link).symlink_to(tmp_path / other)
    write_file(tmp_path / "page.html", "new")
    assert names(tmp_path) == sorted(["page.html", other, link])


def test_what_another_process_is_writing_stays(tmp_path):
    path = tmp_path / "page.html"
    part, file = files._begun(path)
    with file:
        write_file(path, "new")
        assert part.exists()
    write_file(path, "newer")
    assert (names(tmp_path), path.read_text()) == (["page.html"], "newer")


def test_a_part_that_is_taken_for_one_that_was_left_is_made_again(tmp_path, monkeypatch):
    hold, seen = files.hold, []

    def late(descriptor):
        if not seen:
            seen.append((tmp_path / names(tmp_path)[0]).unlink())
        return hold(descriptor)

    monkeypatch.setattr(files, "hold", late)
    assert write_file(tmp_path / "page.html", "new").read_text() == "new"
    assert (seen, names(tmp_path)) == ([None], ["page.html"])


def test_a_folder_without_locks_or_names(tmp_path, monkeypatch):
    """Files are written there all the same, and nothing is removed that may be in use."""

    def refused(*_):
        raise PermissionError

    part = part_of(tmp_path / "page.html")
    part.write_text("of somebody")
    with monkeypatch.context() as patched:
        patched.setattr(files.fcntl, "flock", lambda *_: os.open("/nowhere", os.O_RDONLY))
        write_file(tmp_path / "page.html", "new")
    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", refused)
        write_file(tmp_path / "page.html", "newer")
    assert names(tmp_path) == [part.name, "page.html"]
