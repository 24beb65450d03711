"""Where formulas change: operands of comparisons, also such that are tables."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.formulas.switches import switches
from cordes.problems.kinks.found_interfaces import found_interfaces

SQUARE = cordes.Box([0, 0], [1, 1])


def test_operands_that_are_arrays_are_compared_as_wholes():
    lines = jnp.array([0.2, 0.5, 0.7])

    def between(x):
        first = x[0]
        return jnp.sum(jnp.where(first > lines, 1.0, 0.0) + jnp.where(first > lines, 1.0, x[1]))

    found = switches(between, 2)
    # The same comparison twice is one switch for each of its numbers.
    assert len(found) == len(lines)
    x = jnp.array([0.5, 0.1])
    np.testing.assert_allclose([float(phi(x)) for phi in found], x[0] - lines)


def test_other_arrays_are_other_switches():
    first, second = jnp.array([0.2, 0.5]), jnp.array([0.2, 0.6])

    def both(x):
        own = x[0]
        return jnp.sum(jnp.maximum(own, first) + jnp.maximum(own, second))

    assert len(switches(both, 2)) == 4


@pytest.mark.parametrize("order", [1, 3])
def test_tables_are_no_interfaces_and_no_failures(order):
    spline = cordes.interpolate(np.random.default_rng(order).random((8, 8)), SQUARE, order=order)
    assert found_interfaces([lambda x: spline(x) * jnp.eye(2)], SQUARE, []) == []
