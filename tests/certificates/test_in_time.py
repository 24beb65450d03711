"""Certificates of equations in time, asked for as users do: wrong answers whose error is known
(benchmarks/time_cases.py), data that no theorem covers, and answers that miss their values."""

import sys
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.certificates.enclosed.supremum import largest_on_boundary
from cordes.domains.cylinder import Cylinder

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import time_cases as cases

# In one dimension, two of each kind.
NUMBERS = [number for number in range(40) if cases.draw_dimension(number) == 1 and number % 20 < 8][
    :6
]
LINE = cordes.Box([0.0], [1.0])


@pytest.mark.parametrize("number", NUMBERS)
def test_every_bound_of_a_wrong_answer_holds(number):
    results = cases.run([number])
    assert cases.violations(results) == []
    ((_, found),) = results
    assert any(name.endswith("Linf") for name in found)
    assert max(bound / truth for name, (bound, truth) in found.items() if "at" not in name) < 300


def heat(**changes):
    given = {"A": 1.0, "f": 0.0, "g": 0.0, "initial": lambda x: jnp.sin(jnp.pi * x[0])}
    return cordes.Parabolic(LINE, 0.2, **(given | changes))


def decaying(x, t):
    return jnp.exp(-(jnp.pi**2) * t) * jnp.sin(jnp.pi * x[0])


def test_the_exact_answer_has_bounds_of_rounding():
    found = cordes.certify(heat(), decaying)
    assert found.Linf < 1e-11
    assert found.H2 < 1e-10


def test_the_same_backwards():
    """u_t + u_xx = 0 from terminal values: a function of the user's own time."""
    problem = heat(initial=None, terminal=lambda x: jnp.sin(jnp.pi * x[0]))
    assert cordes.certify(problem, lambda x, t: decaying(x, 0.2 - t)).Linf < 1e-11
    assert cordes.certify(problem, decaying).Linf is None


def test_answers_that_miss_the_initial_values_get_no_bound():
    found = cordes.certify(heat(), lambda x, t: decaying(x, t) + 1e-3 * x[0] * (1 - x[0]))
    assert (found.L2, found.Linf) == (None, None)
    assert "boundary values" in found.reason


def test_a_narrow_bump_of_the_initial_values_is_seen():
    """Between all points that are looked at, on the bottom."""
    bump = lambda x, t: jnp.exp(-(((x[0] - 0.31234) / 1e-6) ** 2)) * x[0] * (1 - x[0])  # noqa: E731
    found = cordes.certify(heat(), lambda x, t: decaying(x, t) + 1e-3 * bump(x, t))
    assert (found.L2, found.Linf) == (None, None)


@pytest.mark.parametrize("base", [LINE, cordes.Box([0, 1], [1, 2]), cordes.Ball([0, 0], 1.0)])
def test_the_top_is_no_boundary_and_all_else_is(base):
    """Of h the largest value on the bottom and on all of the sides is known, and that on the top
    does not count."""
    domain = Cylinder(base, 2.0)
    center, reach = np.asarray(base.center), float(np.max(base.bounding_box[1] - base.center))

    def distance(x):
        """One on the boundary, less inside."""
        if isinstance(base, cordes.Box):
            return 1 - jnp.prod(1 - ((x - center) / reach) ** 2)
        return jnp.sum((x - center) ** 2) / reach**2

    rising = largest_on_boundary(domain, lambda z: z[-1] * (1 - distance(z[:-1])), 1e-9)
    assert rising.bound <= 1e-6
    bottom = largest_on_boundary(domain, lambda z: (2 - z[-1]) * (1 - distance(z[:-1])), 1e-9)
    assert 1.9 <= bottom.seen <= bottom.bound
    one_side = largest_on_boundary(domain, lambda z: jnp.exp(-5 * (z[0] - center[0])), 1e-9)
    assert one_side.bound >= np.exp(5 * reach) * 0.99


def test_digital_initial_values_are_refused_whoever_answers():
    """A jump is in no space of the theorems; here the closed form solves the equation."""
    from jax.scipy.special import erf

    def closed(x, t):
        spread = jnp.sqrt(jnp.maximum(4 * t, 1e-300))
        return jnp.where(t > 0, (1 + erf((x[0] - 0.5) / spread)) / 2, jnp.where(x[0] > 0.5, 1.0, 0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = heat(g=closed, initial=lambda x: jnp.where(x[0] > 0.5, 1.0, 0.0))
        found = cordes.certify(problem, closed)
    assert (found.L2, found.Linf, found.H1) == (None, None, None)


def test_initial_values_that_do_not_meet_g_are_refused():
    with pytest.raises(cordes.CoefficientError, match="do not meet"):
        heat(initial=lambda x: jnp.cos(x[0]))


def test_bounds_at_a_time_grow_from_nothing():
    """At the start the error is zero, and so is its bound but for rounding."""
    wrong = lambda x, t: decaying(x, t) + 0.01 * t * x[0] * (1 - x[0])  # noqa: E731
    found = cordes.certify(heat(), wrong)
    largest = [found.at(t).Linf for t in (1e-6, 0.05, 0.1, 0.2)]
    assert largest == sorted(largest)
    assert largest[0] < 1e-4 * largest[-1]
    for t, bound in zip((0.05, 0.1, 0.2), largest[1:], strict=True):
        assert bound >= 0.01 * t / 4
