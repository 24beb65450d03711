"""Features of formulas are found however small they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.formulas.resolution import resolved_boxes, why_opaque

SQUARE = cordes.Box([0, 0], [1, 1])


def bump(place, width):
    def function(x):
        return jnp.maximum(1 - jnp.sum((x - jnp.asarray(place)) ** 2) / width**2, 0) ** 4

    return function


def around(boxes, place):
    """The size of the box that holds a point."""
    holds = np.all((boxes.lower <= place) & (np.asarray(place) <= boxes.upper), axis=1)
    return float(np.min((boxes.upper - boxes.lower)[holds]))


def test_a_smooth_formula_needs_no_cuts():
    boxes = resolved_boxes([lambda x: jnp.sin(3 * x[0]) * jnp.exp(x[1])], SQUARE)
    assert len(boxes.lower) == 16
    assert np.all(boxes.resolved)
    assert not np.any(boxes.feature)


@pytest.mark.parametrize("seed", range(12))
def test_small_features_are_found(seed):
    rng = np.random.default_rng(seed)
    width, place = 10 ** rng.uniform(-3.3, -1.3), rng.uniform(0.1, 0.9, 2)
    height = 10 ** rng.uniform(-4, 0)
    shapes = (
        bump(place, width),
        lambda x: jnp.exp(-jnp.sum((x - place) ** 2) / width**2),
        lambda x: jnp.where(jnp.sum((x - place) ** 2) < width**2, 1.0, 0.0),
        lambda x: jnp.exp(-(((x[0] - place[0]) / width) ** 2)),
    )
    shape = shapes[seed % 4]
    boxes = resolved_boxes([lambda x: jnp.sin(2 * x[0] + x[1]) + height * shape(x)], SQUARE)
    # A box of the start needs no mark: points see as much as that.
    size = around(boxes, place)
    assert size < 8 * width
    assert size == 0.25 or around(boxes.features(), place) == size
    assert np.isclose(np.sum(np.prod(boxes.upper - boxes.lower, axis=1)), 1.0)


def test_a_kink_is_no_feature():
    boxes = resolved_boxes([lambda x: jnp.abs(x[0] - 0.3) * x[1]], SQUARE)
    assert not np.any(boxes.feature & (np.min(boxes.upper - boxes.lower, axis=1) < 0.1))


def test_long_domains_and_three_dimensions():
    box = cordes.Box([0, 0], [1000, 1])
    boxes = resolved_boxes([bump([333.3, 0.4], 0.2)], box)
    assert around(boxes, [333.3, 0.4]) < 0.2
    # Marked is where the bump begins, which no point would see.
    marked = boxes.features()
    away = np.linalg.norm((marked.lower + marked.upper) / 2 - [333.3, 0.4], axis=1)
    assert 0.1 < np.min(away) < 0.2
    cube = cordes.Box([0, 0, 0], [1, 1, 1])
    boxes = resolved_boxes([bump([0.37, 0.61, 0.43], 0.06)], cube)
    assert around(boxes.features(), [0.37, 0.61, 0.43]) < 0.1


def test_formulas_without_enclosure_are_left_out():
    def called(x):
        shape = jax.ShapeDtypeStruct((), jnp.float64)
        return jax.pure_callback(lambda y: np.float64(np.sum(y)), shape, x)

    assert len(resolved_boxes([called], SQUARE).lower) == 16
    assert "pure_callback" in str(why_opaque(called, SQUARE))
    assert why_opaque(bump([0.4, 0.6], 0.01), SQUARE) is None


def test_formulas_of_thousands_of_numbers_are_left_out_and_said_to_be():
    places = jnp.asarray(np.random.default_rng(0).uniform(size=(2000, 2)))

    def sources(x):
        return jnp.sum(jnp.exp(-jnp.sum((x - places) ** 2, axis=1)))

    assert len(resolved_boxes([sources], SQUARE).lower) == 16
    assert "numbers" in str(why_opaque(sources, SQUARE))
