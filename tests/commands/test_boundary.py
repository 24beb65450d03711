"""The boundary of the program: every way out of a command has its status, and nothing that was
found is lost on the way."""

import contextlib
import errno
import io
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from rich.text import Text

import cordes
from cordes.commands import files, output
from cordes.commands.files import KNOWN, RECORDS, _draw
from cordes.commands.output import Report
from cordes.errors import FileError
from cordes.runtime import distribution
from cordes.runtime.clock import Clock
from cordes.runtime.folders import LOCK, Contents, Folder, claimed
from cordes.runtime.progress import Progress
from cordes.runtime.signals import HEEDED
from cordes.solutions.solution import Solution

ONE = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0]
upper = [1]
[equation]
A = 1
f = 1
"""


@pytest.fixture
def one(tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(ONE)
    return path


def names(folder):
    return {path.name for path in folder.iterdir()}


def named(folder, record="result.json"):
    """The files that a record names, which must be there."""
    files = json.loads((folder / record).read_text())["files"]
    assert all(os.path.exists(file) for file in files)
    return {os.path.basename(file) for file in files}


def sending(number, function):
    def instead(*arguments, **options):
        signal.raise_signal(number)
        return function(*arguments, **options)

    return instead


# Signals ------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("number", HEEDED)
@pytest.mark.parametrize("moment", ["save", "plot", "to_vtk"])
def test_a_signal_while_files_are_written_costs_no_answer(
    invoke, one, tmp_path, monkeypatch, number, moment
):
    monkeypatch.setattr(Solution, moment, sending(number, getattr(Solution, moment)))
    out = tmp_path / "out"
    status, stdout, _ = invoke("solve", one, "--features", 10, "--out", out, "--json")
    facts = json.loads(stdout)
    assert status == 128 + number
    assert (facts["result"], facts["interrupted"]) == ("converged", number.name)
    assert names(out) == named(out) >= {"answer.cordes", "result.json"}
    assert json.loads((out / "result.json").read_text()) == facts
    assert cordes.load(out / "answer.cordes")([0.5]) == pytest.approx(-0.125)
    assert ("report.html" in named(out)) is False


@pytest.mark.parametrize("number", HEEDED)
def test_a_signal_before_there_is_an_answer_leaves_no_trace(
    invoke, one, tmp_path, monkeypatch, number
):
    monkeypatch.setattr(cordes, "solve", sending(number, cordes.solve))
    out = tmp_path / "out"
    status, stdout, _ = invoke("solve", one, "--features", 10, "--out", out, "--json")
    assert status == 128 + number
    assert json.loads(stdout)["error"]["kind"] == "interrupted"
    assert not out.exists()


@pytest.mark.long
def test_a_signal_in_the_certificate_leaves_the_answer(invoke, one, tmp_path, monkeypatch):
    from cordes.solvers import certified

    monkeypatch.setattr(certified, "certify", sending(signal.SIGTERM, certified.certify))
    out = tmp_path / "out"
    status, stdout, _ = invoke("solve", one, "--features", 10, "--out", out, "--json")
    facts = json.loads(stdout)
    assert (status, facts["result"], facts["interrupted"]) == (143, "interrupted", "SIGTERM")
    assert "answer.cordes" in named(out)


# Folders ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_run_is_made_again_but_no_other_in_its_place(invoke, one, tmp_path):
    out = tmp_path / "out"
    solve = ("solve", one, "--features", 10, "--out", out, "--json")
    first = json.loads(invoke(*solve)[1])
    assert invoke(*solve)[0] == 0
    status, stdout, _ = invoke("check", one, "--out", out, "--json")
    error = json.loads(stdout)["error"]
    assert (status, error["kind"]) == (2, "file")
    assert "--overwrite" in error["message"]
    assert "--features 10" in error["message"]
    assert named(out) == {os.path.basename(file) for file in first["files"]}
    status, _, _ = invoke("check", one, "--out", out, "--overwrite", "--json")
    assert status == 0
    assert names(out) == {"check.json", "report.html"} == named(out, "check.json")


@pytest.mark.parametrize("name", ["report.html", "answer.cordes", "result.json"])
def test_my_own_files_are_refused_and_kept(invoke, one, tmp_path, name):
    (tmp_path / name).write_text("mine")
    for more in ([], ["--overwrite"]):
        status, stdout, _ = invoke("solve", one, "--out", tmp_path, *more, "--json")
        assert (status, json.loads(stdout)["error"]["kind"]) == (2, "file")
    assert (tmp_path / name).read_text() == "mine"
    assert names(tmp_path) == {"one.toml", name}


@pytest.mark.long
def test_a_full_disk_leaves_the_earlier_run(invoke, one, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "out"
    solve = ("solve", one, "--features", 10, "--out", out, "--json")
    invoke(*solve)
    before = {path: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr(os, "fsync", full)
    status, stdout, stderr = invoke(*solve)
    assert (status, json.loads(stdout)["files"]) == (1, [])
    assert f"{out} is left as it was" in stderr
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_disk_that_is_full_of_pictures_holds_a_run_without_them(tmp_path, monkeypatch, capsys):
    wrote = files.write_file

    def full_at_the_end(path, content):
        # The first record has the name of a part.
        if Path(path).name == "result.json":
            raise FileError("No space left on device")
        return wrote(path, content)

    monkeypatch.setattr(files, "write_file", full_at_the_end)
    facts, kept = {}, {"answer.cordes": lambda path: path.write_text("answer")}
    drawn = {"solution.png": lambda path: path.write_text("drawn")}
    with claimed(tmp_path, Contents(["answer.cordes"], KNOWN, RECORDS), ["solve"]) as folder:
        assert not files.write_all(folder, "result.json", facts, kept, drawn)
    assert "No space left" in capsys.readouterr().err
    assert names(tmp_path) == named(tmp_path) == {"answer.cordes", "result.json"}
    assert {Path(file).name for file in facts["files"]} == names(tmp_path)


def test_an_output_without_a_name_is_refused(invoke, one):
    status, stdout, _ = invoke("solve", one, "--out", "", "--json")
    assert (status, "it is empty" in stdout) == (2, True)


def test_time_that_is_up_is_not_spent_on_pictures(invoke, one, tmp_path):
    out = tmp_path / "out"
    status, stdout, stderr = invoke(
        "solve", one, "--features", 10, "--max-seconds", 1e-3, "--out", out, "--json"
    )
    assert (status, json.loads(stdout)["result"]) == (1, "time_out")
    assert names(out) == named(out) == {"answer.cordes", "result.json"}
    assert "--max-seconds passed before" in stderr


def test_a_picture_that_would_take_too_long_is_not_begun(tmp_path, capsys, monkeypatch):
    # One process draws: what all agree on would be waited for.
    monkeypatch.setattr(distribution, "agreed", None)
    folder, drawn = Folder(tmp_path, []), {"solution.png": lambda path: path.write_text("drawn")}
    assert _draw(folder, drawn, Clock(0.5).alone) == ["solution.png"]
    assert "--max-seconds passed before solution.png" in capsys.readouterr().err
    assert _draw(folder, drawn, Clock(60.0).alone) == []
    assert names(tmp_path) == {"solution.png"}


# Standard output ----------------------------------------------------------------------------------


class Broken(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, _):
        raise self.error


@pytest.mark.parametrize(
    ("table", "as_json"), [("text", True), ("text", False), (Text("text"), False)]
)
def test_a_closed_pipe_ends_quietly(capsys, table, as_json):
    with contextlib.redirect_stdout(Broken(BrokenPipeError(errno.EPIPE, "Broken pipe"))):
        assert output.deliver(Report({}, table), as_json, False) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC, errno.EBADF])
def test_a_message_that_nobody_reads_ends_nothing(number):
    with contextlib.redirect_stderr(Broken(OSError(number, "nobody"))):
        output.complain("Warning: …", "yellow")


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO])
def test_progress_that_nobody_watches_any_more_ends_nothing(number):
    with (
        contextlib.redirect_stderr(Broken(OSError(number, "nobody"))),
        Progress("title", show=True) as bar,
    ):
        bar.update(residual=1.0)


def test_a_solve_without_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("title") as bar:
        bar.update(residual=1.0)
    output.complain("Warning: …", "yellow")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_result_that_cannot_be_printed_is_kept(capsys, tmp_path, monkeypatch, as_json):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with contextlib.redirect_stdout(Broken(OSError(errno.ENOSPC, "No space left on device"))):
        assert output.deliver(Report({"found": 1.5}, "text"), as_json, False) == 1
    kept = next(tmp_path.iterdir())
    assert json.loads(kept.read_text()) == {"found": 1.5}
    assert str(kept) in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--help", "--version", "--citation"])
def test_what_only_informs_is_an_object_too(invoke, word):
    plain = invoke(word)
    status, stdout, stderr = invoke(word, "--json")
    assert (status, stderr) == (0, "")
    assert json.loads(stdout) == {"text": plain[1]}


def test_a_fault_is_short_even_if_its_message_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refusal = output.fault(RuntimeError("x" * 10**6), ["solve"])
    assert (refusal.status, refusal.kind) == (70, "internal")
    assert len(refusal.message) < 1000


# Whole processes ----------------------------------------------------------------------------------


def command(*words, shell="exec {}", **environment):
    line = shell.format(f"{sys.executable} -m cordes {' '.join(map(str, words))}")
    return subprocess.run(
        ["bash", "-c", line],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=300,
        check=False,
    )


@pytest.mark.long
def test_surroundings(tmp_path):
    (tmp_path / "loud.py").write_text(
        "import os, cordes\nprint(1)\nos.write(1, b'raw')\n"
        "problem = cordes.Linear(cordes.Box([0], [1]), 1.0, 1.0)\n"
    )
    loud = command("check", tmp_path / "loud.py", "--json")
    assert json.loads(loud.stdout)["satisfied"], loud.stderr
    for shell, status in (("set -o pipefail; {} | true", 141), ("exec {} > /dev/full", 1)):
        done = command("gallery", "--json", shell=shell)
        assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    ascii_only = command("gallery", PYTHONIOENCODING="ascii")
    assert ascii_only.returncode == 0, ascii_only.stderr
    assert "ex4.2-continuous" in ascii_only.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_to_a_process(one, tmp_path, number, status):
    out = tmp_path / "out"
    words = [sys.executable, "-m", "cordes", "solve", str(one), "--out", str(out), "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (out / "answer.cordes").exists():
        pass
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in stderr) == (status, False), stderr
    assert json.loads(stdout)["interrupted"] == number.name
    assert LOCK not in names(out)
    assert "answer.cordes" in named(out)


@pytest.mark.long
@pytest.mark.parametrize(("ignored", "status"), [(False, 129), (True, 1)], ids=["hangup", "nohup"])
def test_a_terminal_that_is_closed_costs_no_answer(one, tmp_path, ignored, status):
    """It sends SIGHUP, and takes no line any more."""
    out = tmp_path / "out"
    shell = f"trap {'' if ignored else '-'!r} HUP; exec {sys.executable} -m cordes solve {one}"
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", "bash", "-c", f"{shell} --out {out}"],
        **dict.fromkeys(("stdin", "stdout", "stderr"), other_end),
    )
    os.close(other_end)
    # The first line of progress, and where the signal counts, an answer.
    assert os.read(terminal, 1)
    while process.poll() is None and not (ignored or (out / "answer.cordes").exists()):
        time.sleep(0.001)
    os.close(terminal)
    assert process.wait(120) == status
    assert "answer.cordes" in named(out)
    assert LOCK not in names(out)
