"""Kinks of boundary values: found where they are, and what cannot be followed is said."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CoefficientError
from cordes.problems.kinks.boundary_kinks import KinkWarning, boundary_shape

SQUARE = cordes.Box([-1, -1], [1, 1])
DISK = cordes.Ball([0.0, 0.0], 1.0)

# Boundary values, and where their kinks are, by hand.
KINKS = {
    "absolute value": (SQUARE, lambda x: jnp.abs(x[0]), [[0, -1], [0, 1]]),
    "not on a dyadic point": (
        SQUARE,
        lambda x: jnp.abs(x[0] - 1 / 3) * jnp.exp(x[1]),
        [[1 / 3, -1], [1 / 3, 1]],
    ),
    "payoff": (
        cordes.Box([60, 60], [140, 140]),
        lambda x: jnp.maximum(jnp.maximum(x[0], x[1]) - 100, 0),
        [[100, 60], [60, 100]],
    ),
    "oblique": (SQUARE, lambda x: jnp.maximum(x[0] + 0.3 * x[1] - 0.1, 0), [[0.4, -1], [-0.2, 1]]),
    "a root of a square": (SQUARE, lambda x: jnp.sqrt(x[0] ** 2), [[0, -1], [0, 1]]),
    "at corners only": (SQUARE, lambda x: jnp.abs(x[0] - x[1]), []),
    "several": (
        SQUARE,
        lambda x: jnp.abs(jnp.abs(x[0]) - 0.5) + jnp.maximum(x[1] - 0.2, 0),
        [[-0.5, -1], [0, -1], [0.5, -1], [1, 0.2], [0.5, 1], [0, 1], [-0.5, 1], [-1, 0.2]],
    ),
    "disk": (
        DISK,
        lambda x: jnp.abs(x[0] - 0.2),
        [[0.2, np.sqrt(0.96)], [0.2, -np.sqrt(0.96)]],
    ),
    "ellipse": (
        cordes.Ellipsoid([0, 0.3], [1, 0.4]),
        lambda x: jnp.maximum(x[0], 0),
        [[0, 0.7], [0, -0.1]],
    ),
    "triangle": (
        cordes.Polygon([[0, 0], [1, 0], [0.3, 1]]),
        lambda x: jnp.maximum(x[0] - x[1] - 0.3, 0),
        # On the edge from (1, 0): x = 1 - 0.7s, y = s with 0.7 = 1.7s.
        [[0.3, 0], [1 - 0.7 * 7 / 17, 7 / 17]],
    ),
    "smooth": (SQUARE, lambda x: jnp.sin(9 * x[0]) * jnp.exp(x[1]), []),
    "C¹": (SQUARE, lambda x: x[0] * jnp.abs(x[0]), []),
    "C¹ and flat": (SQUARE, lambda x: jnp.maximum(x[0] - 0.8, 0) ** 2, []),
    "steep": (SQUARE, lambda x: jnp.tanh(100 * x[0]), []),
    "a removed zero": (
        SQUARE,
        lambda x: jnp.where(x[0] == 0, 0.0, jnp.sin(x[0]) ** 2 / jnp.where(x[0] == 0, 1.0, x[0])),
        [],
    ),
}


@pytest.mark.parametrize("case", list(KINKS))
def test_kinks_are_found_where_they_are(case):
    domain, g, expected = KINKS[case]
    shape = boundary_shape(g, domain)
    assert shape.rough is None
    found = np.array([kink.location for kink in shape.kinks]).reshape(-1, 2)
    assert len(found) == len(expected)
    lower, upper = domain.bounding_box
    for point in expected:
        assert np.min(np.linalg.norm(found - point, axis=1)) < 1e-13 * np.max(upper - lower)


def test_tangents_have_the_domain_on_their_left():
    for domain, g, _ in KINKS.values():
        for kink in boundary_shape(g, domain).kinks:
            t = kink.tangent
            inside = kink.location + 1e-3 * domain.volume**0.5 * np.array([-t[1], t[0]])
            assert domain.contains(inside[None])[0]


ROUGH = {
    "smooth bump": lambda x: jnp.exp(-(((x[0] - 0.1234) / 1e-4) ** 2)),
    "hat": lambda x: jnp.maximum(1 - jnp.abs(x[0] - 0.1234) / 1e-4, 0),
    "bump with a support": lambda x: jnp.maximum(1 - ((x[0] - 0.1234) / 1e-4) ** 2, 0) ** 3,
    "smooth kink": lambda x: (x[0] - 0.1) * jnp.tanh(1e4 * (x[0] - 0.1)),
    "smoother kink": lambda x: jnp.sqrt(1e-8 + x[0] ** 2),
    "root": lambda x: jnp.sqrt(jnp.abs(x[0])),
    "power": lambda x: jnp.abs(x[0]) ** 1.5,
    "next to a corner": lambda x: jnp.abs(x[0] - 0.9999),
    "two kinks next to each other": lambda x: jnp.clip(x[0] / 1e-3, 0, 1),
}


@pytest.mark.parametrize("case", list(ROUGH))
def test_what_cannot_be_followed_is_warned_about(case):
    with pytest.warns(KinkWarning, match="not called converged"):
        cordes.Linear(SQUARE, np.eye(2), 0.0, g=ROUGH[case])


@pytest.mark.parametrize("seed", range(8))
def test_bumps_of_any_place_and_width_are_seen(seed):
    generator = np.random.default_rng(seed)
    place, width = generator.uniform(-0.9, 0.9), 10 ** generator.uniform(-6, -4)
    shape = boundary_shape(
        lambda x: jnp.cos(x[0]) + 0.3 * jnp.exp(-(((x[1] - place) / width) ** 2)), SQUARE
    )
    assert shape.rough is not None


@pytest.mark.parametrize("domain", [cordes.Box([-1] * 3, [1] * 3), cordes.Ball([0.0] * 3, 1.0)])
def test_kinks_in_space_are_warned_about(domain):
    with pytest.warns(KinkWarning, match="in 3 dimensions"):
        cordes.Linear(domain, np.eye(3), 0.0, g=lambda x: jnp.abs(x[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cordes.Linear(domain, np.eye(3), 0.0, g=lambda x: x[0] * jnp.abs(x[0]))


def test_an_equation_that_cannot_follow_a_kink_says_so():
    with pytest.warns(KinkWarning, match="which this equation cannot follow"):
        cordes.MongeAmpere(SQUARE, 1.0, g=lambda x: jnp.abs(x[0]) + x @ x)


@pytest.mark.parametrize("width", [1.0, 1e-3])
def test_a_jump_is_refused_with_its_place(width):
    with pytest.raises(CoefficientError, match=r"g is not continuous on the boundary: near"):
        cordes.Linear(
            SQUARE,
            np.eye(2),
            0.0,
            g=lambda x: jnp.where(jnp.abs(x[0] - 0.3) < width / 2, x[0] + 2, x[0]),
        )
