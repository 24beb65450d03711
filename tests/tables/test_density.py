"""Densities from samples, against sums and integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.domains import Ball, Box
from cordes.errors import CoefficientError
from cordes.formulas.regularity import kink

SQUARE = Box([0, 0], [1, 1])


def normal(count=800, seed=1, width=0.08):
    points = 0.5 + width * np.random.default_rng(seed).standard_normal((count, 2))
    return points[SQUARE.contains(points)]


def test_inside_it_is_the_sum_of_gaussians():
    points = normal()
    bandwidth = 0.04
    found = cordes.density(points, SQUARE, bandwidth)
    x = np.random.default_rng(2).random((60, 2)) * 0.4 + 0.3
    gap = x[:, None] - points[None]
    wanted = np.mean(np.exp(-np.sum(gap**2, axis=2) / (2 * bandwidth**2)), axis=1)
    wanted /= 2 * np.pi * bandwidth**2
    values = np.asarray(jax.jit(jax.vmap(found))(jnp.asarray(x)))
    # A thousandth is spread evenly.
    np.testing.assert_allclose(values, (wanted + 1e-3) / 1.001, rtol=2e-3)


@pytest.mark.parametrize("domain", [SQUARE, Ball([0.5, 0.5], 0.5), Box([0], [1])])
def test_a_probability_that_is_positive_and_smooth(domain):
    draw = np.random.default_rng(3)
    points = draw.random((400, domain.dimension)) ** 2
    found = cordes.density(points[domain.contains(points)], domain)
    x, weights = domain.quadrature(150)
    values = np.asarray(jax.jit(jax.vmap(found))(jnp.asarray(x)))
    assert abs(np.sum(weights * values) - 1) < 1e-6
    assert np.min(values) > 0
    assert kink(found, domain) is None
    assert "estimate" in repr(found)
    assert "estimated density" in found.refers_to


def test_the_sides_of_a_box_reflect():
    """Of evenly spread samples the estimate does not fall off at the sides."""
    found = cordes.density(np.linspace(0, 1, 401), Box([0], [1]), bandwidth=0.05)
    values = jax.jit(jax.vmap(found))(jnp.linspace(0, 1, 21)[:, None])
    np.testing.assert_allclose(values, 1.0, atol=0.03)


REFUSED = {
    "outside": ([[0.1, 0.2], [0.3, 2.0]], {}, r"samples\[1\] = \[0.3, 2. \] is no point"),
    "shape": (np.zeros((4, 3)), {}, r"shape \(4, 3\)"),
    "one place": (np.full((4, 2), 0.5), {}, "do not spread"),
    "narrow": (normal(), {"bandwidth": 1e-4}, "too narrow"),
    "negative": (normal(), {"bandwidth": -1.0}, "must be positive"),
    "not finite": ([[0.1, np.nan], [0.3, 0.2]], {}, r"samples\[0\].*is no point"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    samples, options, message = REFUSED[name]
    with pytest.raises(CoefficientError, match=message):
        cordes.density(samples, SQUARE, **options)
