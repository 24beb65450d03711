"""Bad problems are refused with the coefficient, the point and the value; jumps are found, steep
functions are let be."""

import math
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CoefficientError
from cordes.problems.checks import UndeclaredJumpWarning

SQUARE = cordes.Box([-1, -1], [1, 1])
UNIT = cordes.Box([0, 0], [1, 1])
DISK = cordes.Ball([0, 0], 1)
WIDE = cordes.Box([-2, -2], [2, 2])


def make(domain=SQUARE, A=1.0, f=1.0, **data):
    return cordes.Linear(domain, A, f, **data)


def with_if(x):
    return 1.0 if x[0] > 0 else 2.0


REFUSED = {
    "domain": ({"domain": "square"}, "domain is 'square'"),
    "A not symmetric": (
        {"A": [[2.0, 1.0], [0.0, 2.0]]},
        r"A is not symmetric: A\(\[.*\]\) = \[\[2., 1.\]",
    ),
    "A function not symmetric": (
        {"A": lambda x: jnp.array([[2.0, x[0]], [0.0, 2.0]])},
        "A is not symmetric",
    ),
    "A indefinite": ({"A": [[1.0, 2.0], [2.0, 1.0]]}, r"A is not positive definite.*eigenvalue -1"),
    "A negative": ({"A": -1.0}, "change the sign of the whole equation"),
    "A indefinite somewhere": (
        {"A": lambda x: jnp.diag(jnp.array([1.0, 0.9 + x[0]]))},
        r"A\(\[-0\.9.*\]\)",
    ),
    "A not a number": (
        {"A": lambda x: (x[0] ** (1 / 3)) * jnp.eye(2)},
        r"A is not finite at \d+ of 2000.*A\(\[-.*\]\) = \[\[nan",
    ),
    "A constant not finite": ({"A": [[1.0, 0.0], [0.0, np.inf]]}, "A = .*inf.* is not finite"),
    "A of another dimension": ({"A": np.eye(3)}, r"A has shape \(3, 3\), but shape \(2, 2\)"),
    "A function of another shape": (
        {"A": lambda x: x},
        r"A\(x\) has shape \(2,\), but shape \(2, 2\)",
    ),
    "A text": ({"A": "identity"}, "A is the text 'identity'"),
    "b scalar": ({"b": 1.0}, r"b has shape \(\), but shape \(2,\)"),
    "b function scalar": ({"b": lambda x: x[0]}, r"b\(x\) has shape \(\)"),
    "b not a number": ({"b": lambda x: x / 0.0}, "b is not finite"),
    "c vector": ({"c": lambda x: x}, r"c\(x\) has shape \(2,\), but shape \(\)"),
    "c not a number": ({"c": lambda x: jnp.sqrt(x[1])}, r"c is not finite.*c\(\[.*\]\) = nan"),
    "f vector": ({"f": [1.0, 2.0]}, r"f has shape \(2,\)"),
    "f complex": ({"f": lambda x: x[0] + 1j}, "f.x. has dtype complex128"),
    "f list": ({"f": lambda x: [x[0]]}, "f returns list"),
    "f infinite": ({"f": lambda x: jnp.log(x[0])}, "f is not finite"),
    "f of math": (
        {"f": lambda x: math.sin(x[0])},
        r"f cannot be traced by JAX: write it with jax.numpy \(jnp.sin instead of math.sin",
    ),
    "f with if": ({"f": with_if}, "f cannot be traced by JAX.*jnp.where instead of if"),
    "A of math": ({"A": lambda x: math.sin(x[0]) * jnp.eye(2)}, "A cannot be traced"),
    "f fails": ({"f": lambda x: x[0] + undefined}, "f failed at x = .*NameError"),
    "exact of another shape": ({"exact": lambda x: x}, r"exact\(x\) has shape"),
    "g vector": ({"g": lambda x: x}, r"g\(x\) has shape"),
    "g not finite": ({"g": lambda x: jnp.log(x[0])}, "g is not finite .* of the boundary"),
    "g of math": ({"g": lambda x: math.exp(x[0])}, "g cannot be traced"),
    "A constant too large": ({"A": 1e300}, r"A = .*e\+300.*numbers up to 1e\+50"),
    "A too small": ({"A": 1e-300}, r"A\(.*\) = .*e-300.* so small that its squares are zero"),
    "f too large": ({"f": lambda x: jnp.exp(600 + x[0])}, r"f\(.*\) = .*up to 1e\+250"),
    "c too large": ({"c": 1e101}, r"c = 1.e\+101.*Choose another unit"),
    "interface constant": (
        {"interfaces": [lambda x: jnp.ones(())]},
        r"interfaces\[0\] does not change sign in the domain.*\[1, 1\]",
    ),
    "interface never zero": (
        {"interfaces": [lambda x: x[0], lambda x: x[0] ** 2 + 1]},
        r"interfaces\[1\] does not change sign",
    ),
    "interface no function": ({"interfaces": [0.0]}, r"interfaces\[0\] is 0.0"),
    "interfaces a function": ({"interfaces": lambda x: x[0]}, r"pass a list of functions, \[phi\]"),
    "interface vector": ({"interfaces": [lambda x: x]}, r"interfaces\[0\]\(x\) has shape"),
    "interface without gradient": (
        {"interfaces": [lambda x: jnp.sqrt(jnp.maximum(x[0], 0.0)) - 0.3]},
        r"gradient of interfaces\[0\] is not finite",
    ),
    "epsilon zero": ({"epsilon": 0.0}, r"epsilon = 0.0: .* lies in \(0, 1\]"),
    "epsilon too large": ({"epsilon": 1.01}, "epsilon = 1.01"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_bad_input_is_refused(case):
    data, message = REFUSED[case]
    with pytest.raises(CoefficientError, match=message), np.errstate(all="ignore"):
        make(**data)


def test_constants_and_numbers_are_understood():
    problem = make(A=2, b=[1, 2], c=3, f=4, g=5)
    A, b, c, f = problem.linearise(jnp.zeros(2))
    np.testing.assert_array_equal(A, 2 * np.eye(2))
    np.testing.assert_array_equal(b, [1, 2])
    assert (float(c), float(f), float(problem.g(jnp.zeros(2)))) == (3, 4, 5)
    assert problem.constant_coefficients
    assert problem.has_drift
    assert problem.has_reaction
    assert not problem.zero_g
    assert make().zero_g
    assert not make().has_drift


# Boundary values ----------------------------------------------------------------------------------

DISCONTINUOUS = {
    "at corners": (SQUARE, lambda x: jnp.where(x[0] > 1 - 1e-12, 1.0, 0.0)),
    "along an edge": (SQUARE, lambda x: jnp.where(x[1] > 0.3, 1.0, 0.0)),
    "small, along an edge": (SQUARE, lambda x: 1.0 + jnp.where(x[1] > 0.3, 1e-3, 0.0)),
    "on a circle": (DISK, lambda x: jnp.sign(x[0])),
    "on a sphere": (cordes.Ball([0, 0, 0], 1), lambda x: jnp.sign(x[0] - 0.2)),
    "on a triangle": (
        cordes.Polygon([[0, 0], [2, 0], [0, 1]]),
        lambda x: jnp.where(x[1] < 1e-12, 1.0, 0.0),
    ),
}


@pytest.mark.parametrize("case", list(DISCONTINUOUS))
def test_discontinuous_boundary_values_are_refused(case):
    domain, g = DISCONTINUOUS[case]
    with pytest.raises(CoefficientError, match="g is not continuous on the boundary: near"):
        make(domain, np.eye(domain.dimension), g=g)


CONTINUOUS = {
    "zero up to rounding": (
        UNIT,
        lambda x: jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]) * jnp.exp(x[0]),
    ),
    "rounding on one edge": (UNIT, lambda x: x[0] + jnp.cos(x[1]) ** 2 + jnp.sin(x[1]) ** 2 - 1),
    "cancellation on one edge": (UNIT, lambda x: (x[0] + x[1]) ** 2 - x[1] ** 2 - 2 * x[0] * x[1]),
    "rounding on all edges": (UNIT, lambda x: jnp.cos(x[1]) ** 2 + jnp.sin(x[1]) ** 2 - 1),
    "rounding on a circle": (DISK, lambda x: 1 - x @ x),
    "steep": (DISK, lambda x: jnp.tanh(200 * x[0])),
    "with a corner": (SQUARE, lambda x: jnp.abs(x[0] - 0.1)),
    "constant": (DISK, lambda x: 3.0 + 0 * x[0]),
    "in five dimensions": (cordes.Box([-1] * 5, [1] * 5), lambda x: jnp.prod(jnp.sin(jnp.pi * x))),
}


@pytest.mark.parametrize("case", list(CONTINUOUS))
def test_continuous_boundary_values_are_taken(case):
    domain, g = CONTINUOUS[case]
    assert make(domain, np.eye(domain.dimension), g=g).g is g


# Jumps of coefficients ----------------------------------------------------------------------------


def step(x):
    """No comparison that could be read."""
    return 1.0 + jnp.maximum(jnp.floor(x[0] + 0.7), 0.0)


def ring(x):
    return 1.0 + jnp.minimum(jnp.floor(2 * (x[0] ** 2 + x[1] ** 2)), 1.0)


@pytest.mark.parametrize("name", ["A", "b", "c", "f"])
def test_jumps_that_stand_in_a_formula_are_interfaces(name):
    """Nobody need declare them, and nothing is warned about."""

    def jump(x):
        return jnp.where(x[0] ** 2 + x[1] ** 2 > 0.5, 2.0, 1.0)

    factor = {"A": lambda x: jnp.eye(2), "b": lambda x: x}.get(name, lambda x: 1.0)
    problem = make(**{name: lambda x: jump(x) * factor(x)})
    (interface,) = problem.interfaces
    angle = np.linspace(0, 2 * np.pi, 20)
    for x in np.sqrt(0.5) * np.stack([np.cos(angle), np.sin(angle)], axis=1):
        assert abs(interface(x)) < 1e-14
        assert interface(0.9 * x) * interface(1.1 * x) < 0


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("A", {"A": lambda x: step(x) * jnp.eye(2)}),
        ("A", {"A": lambda x: ring(x) * jnp.eye(2)}),
        ("b", {"b": lambda x: step(x) * x}),
        ("c", {"c": step}),
        ("f", {"f": step}),
        ("f", {"f": lambda x: 100 * x[1] + ring(x)}),
    ],
)
def test_undeclared_jumps_are_warned_about(name, data):
    with pytest.warns(
        UndeclaredJumpWarning,
        match=rf"^{name} jumps near x = \[.*\] from .* no interface is declared there",
    ) as caught:
        make(**data)
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["A", "f"])
def test_a_declared_interface_does_not_hide_another_jump(name):
    def both(x):
        return step(x) * (1.0 + 2.0 * jnp.maximum(jnp.floor(x[1] + 1.2), 0.0))

    data = {"A": lambda x: both(x) * jnp.eye(2)} if name == "A" else {"f": both}
    with pytest.warns(UndeclaredJumpWarning, match=f"^{name} jumps near"):
        make(interfaces=[lambda x: x[0] - 0.3], **data)


CALM = {
    "steep": (WIDE, lambda x: 2 + jnp.arctan(5000 * (x[0] ** 2 + x[1] ** 2 - 1))),
    "Hölder": (SQUARE, lambda x: 1 + jnp.linalg.norm(x) ** 0.25),
    "Hölder along a line": (SQUARE, lambda x: 1 + jnp.abs(x[0] - x[1]) ** 0.25),
    "rounding": (SQUARE, lambda x: 1 + 1e-3 * (jnp.cos(x[1]) ** 2 + jnp.sin(x[1]) ** 2)),
}


@pytest.mark.parametrize("case", list(CALM))
def test_no_warning_where_nothing_jumps(case):
    domain, function = CALM[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(domain, A=lambda x: function(x) * jnp.eye(2), f=function)


def test_no_warning_where_it_is_declared():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(A=lambda x: step(x) * jnp.eye(2), f=step, interfaces=[lambda x: x[0] - 0.3])
        make(
            A=lambda x: ring(x) * jnp.eye(2),
            f=lambda x: step(x) + ring(x),
            interfaces=[lambda x: x @ x - 0.5, lambda x: 7 * (x[0] - 0.3)],
        )
