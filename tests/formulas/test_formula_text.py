"""Formulas as text: what is written is read again by the reader of problem files and has the same
values."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.formulas.terms import Unwritable, symbol
from cordes.formulas.written.text import LONGEST, FormulaText, as_text, exact
from cordes.formulas.written.toml import MAX_LENGTH, parse
from cordes.formulas.written.writing import write

XY = ("x1", "x2")


def read_again(text: FormulaText, dimension, controls=()):
    """The function that a text stands for."""
    definitions = {}
    for name, definition in text.definitions.items():
        definitions[name] = parse(definition, dimension, definitions, name, controls)

    def nested(value):
        if isinstance(value, list):
            return [nested(part) for part in value]
        return parse(value, dimension, definitions, "formula", controls)

    def evaluate(value, x):
        if isinstance(value, list):
            return jnp.stack([evaluate(part, x) for part in value])
        return value(x) if callable(value) else jnp.asarray(value)

    made = nested(text.value)
    return lambda x: evaluate(made, x)


def compare(function, points, names=None):
    text = as_text(write(function, names or [f"x{i + 1}" for i in range(points.shape[1])]))
    expected = np.asarray(jax.vmap(function)(jnp.asarray(points)))
    found = np.asarray(jax.vmap(read_again(text, points.shape[1]))(jnp.asarray(points)))
    finite = np.isfinite(expected)
    assert finite.any()
    scale = np.max(np.abs(expected[finite]))
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-13, atol=1e-14 * scale)
    return text


POINTS = np.random.default_rng(3).uniform(-1.5, 1.5, (50, 2))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: 2 + jnp.sin(jnp.pi * x[0]), "2 + sin(pi*x1)"),
        (lambda x: x[0] - (x[1] - 1), "x1 - (x2 - 1)"),
        (lambda x: x[0] / (x[1] / 3), "x1/(x2/3)"),
        (lambda x: -(x[0] ** 2), "-x1**2"),
        (lambda x: (-x[0]) ** 3, "(-x1)**3"),
        (lambda x: (x[0] ** 2) ** x[1], "(x1**2)**x2"),
        (lambda x: 2.0 ** (x[0] + 1), "2**(x1 + 1)"),
        (lambda x: (2 * jnp.pi) * x[0] + jnp.cos(jnp.pi / 3 + x[1]), None),
        (lambda x: 0.1 * x[0] + (1 / 3) * x[1], "0.1*x1 + 0.3333333333333333*x2"),
        (lambda x: jnp.where(x[0] > 0, 2.0, jnp.where(x[1] <= 0.5, x[0], 1.0)), None),
        (lambda x: jnp.where((x[0] > 0) & ~(x[1] > 0.5) | (x[0] < -1), 1.0, 0.0), None),
        (lambda x: jnp.linalg.norm(x) + jnp.maximum(jnp.maximum(x[0], x[1]), 0), None),
        (lambda x: jnp.arctan2(x[1], x[0]) + jnp.cbrt(x[0]) - jnp.floor(x[1]), None),
        (lambda x: jax.nn.softplus(x[0]) * jax.nn.sigmoid(x[1]) + jnp.expm1(x[0]), None),
        (lambda x: jnp.outer(x, x) + 3 * jnp.eye(2), None),
        (lambda x: 1e-300 * x[0] + 1e300 * x[1], None),
        (jax.grad(lambda x: jnp.exp(-jnp.sum(x**2)) * jnp.abs(x[0]) ** 2.5), None),
    ],
)
def test_text_is_read_as_the_same_function(function, expected):
    text = compare(function, POINTS)
    if expected is not None:
        assert text == FormulaText(expected, {})


def test_numbers_are_exact():
    for value in (0.1, 1 / 3, 1e-320, 1.7e308, 12345678901234567.0, math.pi / 7, 2 * math.pi, 3.0):
        assert parse(exact(value), 0) == value
    assert (exact(math.pi), exact(2 * math.pi), exact(math.pi / 4)) == ("pi", "2*pi", "pi/4")


def test_long_and_deep_formulas_are_split():
    def long(x):
        return sum(jnp.sin(k * x[0] + 0.1234567 * k * x[1]) for k in range(1, 200))

    def deep(x):
        value = x[0]
        for k in range(80):
            value = jnp.sin(value + 0.01 * k * x[1])
        return value

    for function in (long, deep):
        text = compare(function, POINTS)
        assert text.definitions
        assert max(map(len, (text.value, *text.definitions.values()))) < MAX_LENGTH
        assert LONGEST < MAX_LENGTH


def test_what_occurs_several_times_is_written_once():
    def f(x):
        s = jnp.exp(x[0] * x[1] + jnp.sin(3 * x[0]) + jnp.cos(x[1]) ** 2)
        return jnp.array([s + 1, s * s, s / (1 + s)])

    text = compare(f, POINTS)
    assert text.value == ["s1 + 1", "s1**2", "s1/(s1 + 1)"]
    assert list(text.definitions) == ["s1"]


def test_names_of_the_author_are_kept():
    written = write(lambda x: 2 * jnp.sin(x[0]), XY, definitions={"w": lambda x: jnp.sin(x[0])})
    text = as_text(written, {each: name for name, each in written.definitions.items()})
    assert text == FormulaText("2*w", {"w": "sin(x1)"})
    assert written.definitions["w"].arguments == (symbol("x1"),)


def test_what_files_do_not_know_is_refused():
    with pytest.raises(Unwritable, match="erf, which problem files do not know"):
        as_text(write(lambda x: jax.scipy.special.erf(x[0]), XY))


@pytest.mark.parametrize(
    "name",
    [
        "ex4.1-singular",
        "ex4.2-continuous",
        "ex4.3-cube5",
        "ex4.6-monge-ampere",
        "feng-neilan-schnake-5.1",
        "discontinuous-3d",
        "weak-ellipticity",
        "froese-oberman-c1",
    ],
)
def test_gallery_coefficients(name):
    problem = cordes.gallery[name]
    points = np.asarray(problem.domain.interior_points(40, seed=5))
    for function in (problem.arguments.get("A"), problem.f, problem.exact):
        if callable(function):
            compare(function, points)
