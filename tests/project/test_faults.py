"""The programs of benchmarks/faults in small, and that they can fail."""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cordes

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults"
sys.path.insert(0, str(FAULTS))


def program(name):
    """A program by its file: other modules have such names, too."""
    spec = importlib.util.spec_from_file_location(f"faults_{name}", FAULTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    """A formula or a file that is executed would leave its mark here."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / "executed").exists()


def test_what_no_input_may_do_is_told_apart():
    def bad():
        raise cordes.FileError("refused.")

    def long():
        raise cordes.FileError("x" * 100_000)

    tally = program("judging").Tally()
    for action in (bad, long, lambda: 1, lambda: 1 / 0):
        tally.judge("kind", "note", action)
    found = {outcome: count for (_, outcome), count in tally.counts.items()}
    assert found == {"refused": 1, "message": 1, "accepted": 1, "fault": 1}
    assert len(tally.failures) == 2


@pytest.mark.parametrize("busy", [True, False])
def test_what_does_not_end_is_told(monkeypatch, busy):
    judging = program("judging")
    monkeypatch.setattr(judging, "MOST_SECONDS" if busy else "MOST_WAIT", 0.1)
    end = time.monotonic() + 30

    def work():
        while time.monotonic() < end:
            time.sleep(0 if busy else 1)

    assert judging.Tally().judge("kind", "note", work) == "hang"


def test_formulas():
    tally = program("formulas").fuzz(400, 120, 0, seed=3)
    assert not tally.failures
    assert {outcome for _, outcome in tally.counts} == {"accepted", "refused"}


@pytest.mark.long
def test_meshes():
    tally = program("meshes").fuzz(200, seed=3)
    assert not tally.failures
    # COFF is a mesh, and what has another number of corners than it says may be one.
    assert tally.counts["by hand", "refused"] > 40


@pytest.mark.long
def test_answers():
    tally = program("answers").fuzz(10, 25, seed=3)
    assert not tally.failures
    assert tally.counts["attack", "accepted"] == 0
    assert tally.counts["attack", "refused"] > 15


@pytest.mark.long
def test_proofs():
    tally = program("proofs").fuzz(40, seed=3)
    assert not tally.failures
    assert tally.counts["attack", "refused"] > 15
    assert tally.counts["forged", "refused"] > 20


@pytest.mark.long
def test_studies():
    tally = program("studies").fuzz(60, 40, seed=3)
    assert not tally.failures
    for kind in ("finished", "judged", "damaged state", "forged state"):
        assert tally.counts[kind, "refused"] > 0


@pytest.mark.long
def test_surroundings(capsys):
    chosen = "^(ascii, solve|solve to /dev/full|result.json is a link|pipe to true|no HOME)$"
    assert program("surroundings").main(chosen) == 0, capsys.readouterr().out
    assert "5 surroundings: 5 as wanted" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("exit 3", "status 3"),
        ("echo 'Traceback (most recent call last)'", "a traceback"),
        ("echo other > mine", "changed: ['mine']"),
        ("mkdir -p .cache/cordes", "left behind: {'.cache/cordes'}"),
        ("true # solve one.toml", "the answer is lost"),
        ("echo 1 1 # --json", "standard output is not one object"),
        ("mkdir o; echo '{' > o/result.json", "result.json is half a file"),
    ],
)
def test_what_a_command_did_wrong_is_told(tmp_path, command, told):
    surroundings = program("surroundings")
    case = surroundings.Surrounding("", command, before="echo mine > mine", out="o")
    _, wrong = surroundings.judged(case, tmp_path / "case", dict(os.environ))
    assert told in wrong


@pytest.mark.long
def test_kills_at_every_write():
    """In a process that has used no device, since the killed ones are forks of it."""
    words = [sys.executable, str(FAULTS / "writes.py"), "report"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 0 faults") == 2


@pytest.mark.long
def test_arguments(capsys):
    assert program("arguments").main([]) == 0, capsys.readouterr().out
