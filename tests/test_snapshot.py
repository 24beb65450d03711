"""The gallery's answers against those in tests/data, with all digits: what should change nothing
must change nothing. `python tests/support/snapshot.py tests/data` renews them, after a change that
is meant to move a digit; say in the commit which and why.

How near is near enough, on the processor that made the data and on another, is said in
tests/support/snapshot.py.
"""

from pathlib import Path

import pytest
import snapshot

DATA = Path(__file__).parent / "data"
FACTS, VALUES = snapshot.read(DATA)
SAME = (DATA / "processor.txt").read_text(encoding="utf-8").strip() == snapshot.processor()
# One of every kind.
QUICK = ("ex4.2-discontinuous", "ex4.5-hjb", "ex4.6-monge-ampere", "transport-ellipses")


def test_no_problem_is_missing():
    assert set(snapshot.names_of_all()) == set(FACTS)


@pytest.mark.filterwarnings("ignore::cordes.CordesConditionWarning")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.quick if n in QUICK else pytest.mark.long) for n in FACTS],
)
def test_an_answer_is_what_it_was(solved, name):
    answer = solved.certified(name)
    new = snapshot.answered(name, lambda *_, **__: answer)
    compare = snapshot.differences_of if SAME else snapshot.differences_elsewhere
    assert not compare(name, (FACTS[name], VALUES[name]), new)


def test_a_difference_is_found():
    """One digit of an answer, of a bound, of a count, and another word."""
    name = QUICK[0]
    old = (FACTS[name], VALUES[name])
    assert not snapshot.differences_of(name, old, old)
    assert not snapshot.differences_elsewhere(name, old, old)
    assert snapshot.differences_of(name, old, (old[0], old[1] * (1 + 1e-11)))
    assert snapshot.differences_elsewhere(name, old, (old[0], old[1] * (1 + 1e-7)))
    for key, value in (("points", old[0]["points"] + 1), ("result", "stagnated")):
        assert snapshot.differences_of(name, old, ({**old[0], key: value}, old[1]))
    for factor, found in ((1.5, False), (2.5, True)):
        bound = {"L2": factor * old[0]["certificate"]["L2"]}
        changed = {**old[0], "certificate": {**old[0]["certificate"], **bound}}
        assert bool(snapshot.differences_of(name, old, (changed, old[1]))) == found
    for distance, found in ((5e-12, False), (2e-11, True)):
        assert snapshot.close(1e-6, 1e-6 + distance, "name.certificate.L2") != found
        assert not snapshot.close(1e-3, 1e-3 + 5e-12, "name.condition.epsilon")
