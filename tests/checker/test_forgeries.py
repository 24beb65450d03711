"""Forged files, in parts: benchmarks/forgeries.py has all of them and says what is asked."""

import sys
from pathlib import Path

import pytest
from flint import ctx

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import forged_truth
import forgeries

# The proof of a linear equation, the quickest to check, has all kinds; of the others a part.
EVERY = {"linear": 1, "jumps": 3, "control": 3}


@pytest.fixture(autouse=True)
def _precision():
    kept = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = kept


@pytest.mark.long
@pytest.mark.parametrize("base", EVERY)
def test_nothing_false_is_said_of_a_forged_file(base):
    counts, wrong = forgeries.run([base], EVERY[base])
    assert wrong == []
    assert sum(counts.values()) >= 60
    assert counts["refused"] > counts["accepted"] > 0


def test_there_are_more_than_five_hundred():
    found = [(given.base, given.kind) for given in forgeries.forgeries()]
    assert len(found) > 500
    assert len({kind for _, kind in found}) > 150


def test_what_is_false_is_noticed():
    """The judge, who knows the solution, says so of bounds that are too small."""
    data = forgeries.read("jumps")
    assert forged_truth.falsehood(data, data["claims"]) is None
    assert "Linf" in forged_truth.falsehood(data, {"Linf": "1e-5"})
    data = forgeries.read("linear")
    assert forged_truth.falsehood(data, data["claims"]) is None
    data["problem"] = data["problem"].replace("c = 1\n", "c = 1.001\n")
    assert "Linf" in forged_truth.falsehood(data, data["claims"])
