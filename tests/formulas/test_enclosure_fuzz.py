"""Random formulas stay inside of their enclosures, and a rule that is too narrow is noticed: a
short part of benchmarks/enclosure_fuzz.py."""

import importlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cordes.formulas.intervals import rules
from cordes.formulas.rectangles import functions

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    with np.errstate(all="ignore"):  # Numbers beyond all others, and roots of negative ones.
        yield importlib.import_module("enclosure_fuzz")


@pytest.mark.quick
def test_no_value_is_outside(fuzz):
    found = fuzz.run(30, seed=1, by_jax=False)
    assert found["bad"] == []
    assert found["counts"]["real values"] > 20_000
    assert found["counts"]["complex values"] > 8_000


@pytest.mark.parametrize("name", ["sin", "exp", "tanh", "sqrt"])
def test_a_narrow_rule_is_noticed(fuzz, monkeypatch, name):
    formula = fuzz.Formula(name, (fuzz.Formula("x"),))
    for check in (partial(fuzz.check_real, by_jax=False), fuzz.check_complex):
        assert check(formula, 1, np.random.default_rng(3)).bad is None
    for table in (rules.ELEMENTWISE, functions.FUNCTIONS):
        monkeypatch.setitem(table, name, fuzz.narrowed(table[name]))
    for check in (partial(fuzz.check_real, by_jax=False), fuzz.check_complex):
        assert check(formula, 1, np.random.default_rng(3)).bad is not None


@pytest.mark.long
def test_values_as_jax_computes_them(fuzz):
    assert fuzz.run(150, seed=2)["bad"] == []
