"""Formulas that must never be shown, and such that are easily shown wrongly."""

import functools
import types

import jax
import jax.numpy as jnp
import pytest
from formula_text import TIMES, Method, shown
from jax.numpy import sin

from cordes.formulas.terms import Unwritable
from cordes.formulas.written.mathml import typeset
from cordes.formulas.written.writing import write

K, k = 5, 7


def norm(v):
    return abs(v[0]) + abs(v[1])


def square(t):
    return t * t * t


# A module whose functions have the names of those of jax.numpy.
own = types.ModuleType("own")
own.__dict__.update(norm=norm, square=square, sqrt=functools.partial(jnp.power, 3.0), WEIGHT=3)


def decorated(x):
    @jax.grad
    def q(t):
        return t**3

    return q(x[0])


def compiled(x):
    @jax.jit
    def q(t):
        return t**3

    return q(x[0])


def default_of_a_local(x):
    def q(t, k=2):
        return k * t

    return q(x[0])


def unnamed_inside(x):
    def q(t):
        w = t**2 + 1
        return w * w

    return q(x[0]) + q(x[1])


def exponential_of_e(x):
    def q(e):
        return e * jnp.exp(e)

    return q(x[0])


def sine_of_its_own(x):
    def sin(t):
        return t**3 + 1

    return sin(x[0]) + jnp.sin(x[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.array(x, dtype=int),
        lambda x: jnp.round(x[0], 2),
        lambda x: x[0] / (1 - 1),
        lambda x: jnp.where(0 < x[0] < 1, 1.0, 0.0),
        lambda x: jnp.where(x[0] > 0, 1.0, 0.0) + jnp.where(x[0] >= 0, 1.0, 0.0),
    ],
)
def test_what_is_not_certain_is_refused(function):
    with pytest.raises((Unwritable, TypeError)):
        shown(function)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (decorated, "3 ^{x12}"),
        (Method().f, "x1"),
        (lambda x: own.sqrt(x[0]), "^{3x1}"),
        (lambda x: jnp.min(x, 0), "min(x1,x2)"),
        (lambda x: jnp.linalg.norm(x, 1), "|x1|+|x2|"),
        (lambda x: jnp.array([1, 2] * 2), "1,;2,;1,;2,;"),
        (lambda x: jnp.array([x[0]] + [x[1]]), "x1,;x2,;"),  # noqa: RUF005
        (lambda x: 1.0 * (x[0] > 0), "1,if x1>0,;0,otherwise,;"),
        (
            lambda x: 2.0 * (x[0] > 0) + (x[1] < 0),
            "2 (1,if x1>0,;0,otherwise,;)+(1,if x2<0,;0,otherwise,;)",
        ),
        (lambda x: jnp.diag(jnp.outer(x, x)), "^{x12},;^{x22},;"),
        (lambda x: (lambda t: t**2)(x[0]), "^{x12}"),
    ],
)
def test_what_no_source_shows_is_read(function, expected):
    """Decorators, methods, modules of the user's own, arguments by position: only the operations
    count."""
    assert shown(function) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, *, K=3: K * x[0], "3 x1"),
        (lambda x: own.WEIGHT * x[0], "3 x1"),
        (lambda x: own.norm(x), "|x1|+|x2|"),
        (lambda x: jnp.sum(jnp.concatenate([x[1:], x[:1]]) * x), "x2 x1+x2 x1"),
        (lambda x: jnp.max(x) + jnp.maximum(x[0], 1) + x.sum(), "max(x1,x2)+max(x1,1)+x1+x2"),
        (lambda x: jnp.sin(x[0]) ** -1, "^{(sin(x1))−1}"),
        (lambda x: jnp.sin(x[0]) ** 3, "^{sin3}(x1)"),
        (lambda x: 5 * 2**0.5 * x[0], "5 root{2} x1"),
        (lambda x: 2 * 10 ** x[0], "2·^{10x1}"),
        (lambda x: 3 * (1 / 2) * x[0], "1.5 x1"),
        (lambda x: jnp.where(x[0] > 0, 2.0, 1.0) + x[1], "(2,if x1>0,;1,otherwise,;)+x2"),
        (lambda x: jnp.where(x[0] > 0, 2.0, 1.0) ** 2, "^{(2,if x1>0,;1,otherwise,;)2}"),
        (lambda x: -jnp.where(x[0] > 0, 2.0, x[1]), "−(2,if x1>0,;x2,otherwise,;)"),
        (
            lambda x: jnp.where(((x[0] > 0) | (x[1] > 0)) & (x[0] < 1), 2.0, 1.0),
            "2,if (x1>0 or x2>0) and x1<1,;1,otherwise,;",
        ),
        (lambda x: sin(x[0]), "sin(x1)"),
        (lambda x: jnp.array([x[1], 2], dtype=jnp.float64), "x2,;2,;"),
        (lambda x: jnp.array([x[i] ** 2 for i in range(2)]), "^{x12},;^{x22},;"),
        (lambda x: 0.99999999 * x[0], "0.99999999 x1"),
        (lambda x: 1.0000000001 * x[0] - x[0], "1.0000000001 x1−x1"),
        (lambda x: jnp.outer(x, x).T @ jnp.array([1.0, 0.0]), "^{x12},;x1 x2,;"),
    ],
)
def test_hard_cases(function, expected):
    assert shown(function) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (compiled, "^{x13}"),
        (lambda x: own.square(x[0]), "^{x13}"),
        (default_of_a_local, "2 x1"),
        (unnamed_inside, "^{(^{x12}+1)2}+^{(^{x22}+1)2}"),
        (exponential_of_e, "x1 ^{ex1}"),
        (sine_of_its_own, "^{x13}+1+sin(x2)"),
    ],
)
def test_functions_of_a_number(function, expected):
    assert shown(function) == expected


def shifted(x):
    x1, x2 = x - 0.5
    return (x1**2 + x2**2) * x[0]


def circle(x):
    pi = x[0] + x[1]
    return pi * jnp.pi


def alike(x):
    q1 = x[0] + x[1]
    q_1 = x[0] - x[1]
    return q1 * q_1


def unknown(x):
    u = x[0] + x[1]
    e = x[0] - x[1]
    return u * jnp.exp(e)


def again(x):
    s = x[0] * x[1]
    s = s + 1
    s = s * s + s
    return s + 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (shifted, "(^{(x1−0.5)2}+^{(x2−0.5)2}) x1"),
        (circle, "π (x1+x2)"),
        (alike, "(x1+x2) (x1−x2)"),
        (unknown, "(x1+x2) ^{ex1−x2}"),
        (again, "^{(x1 x2+1)2}+x1 x2+1+1"),
    ],
)
def test_names_of_the_author_mislead_nobody(function, expected):
    assert shown(function) == expected


def test_a_control_and_a_name_that_looks_like_it():
    def f(z):
        a1 = z[2] * z[0]
        return a1 + z[2]

    assert shown(f, ("x1", "x2", "a1", "a2"), 2) == "a1 x1+a1"


def test_words_and_functions_keep_their_distance():
    found = typeset(write(lambda x: jnp.sign(x[0]) * jnp.sign(x[1]), ("x1", "x2")).entries)
    assert found.count("mspace") == 1
    assert found.index(TIMES) < found.index("mspace") < found.rindex("sign")
    assert "mspace" not in typeset(write(lambda x: 2 * x[0] * x[1], ("x1", "x2")).entries)
