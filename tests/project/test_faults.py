"""The programs of benchmarks/faults in small, and that they can fail."""

import sys
from pathlib import Path

import pytest

import cordes

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "faults"))

import answers
import arguments
import formulas
import meshes
from judging import Tally


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

    tally = Tally()
    for action in (bad, long, lambda: 1, lambda: 1 / 0):
        tally.judge("kind", "note", action)
    found = {outcome: count for (_, outcome), count in tally.counts.items()}
    assert found == {"refused": 1, "message": 1, "accepted": 1, "fault": 1}
    assert len(tally.failures) == 2


def test_formulas():
    tally = formulas.fuzz(400, 120, 0, seed=3)
    assert not tally.failures
    assert {outcome for _, outcome in tally.counts} == {"accepted", "refused"}


@pytest.mark.long
def test_meshes():
    tally = meshes.fuzz(200, seed=3)
    assert not tally.failures
    # COFF is a mesh, and what has another number of corners than it says may be one.
    assert tally.counts["by hand", "refused"] > 40


@pytest.mark.long
def test_answers():
    tally = answers.fuzz(30, 60, seed=3)
    assert not tally.failures
    assert tally.counts["attack", "accepted"] == 0
    assert tally.counts["attack", "refused"] > 15


@pytest.mark.long
def test_arguments(capsys):
    assert arguments.main([]) == 0, capsys.readouterr().out
