"""Bad control problems and determinants are refused, with names and values."""

import re
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from nonlinear_jets import IDENTITY, SQUARE

import cordes
from cordes.errors import CoefficientError, OptionError


def control_problem(**changes):
    return cordes.HJB(
        **({"domain": SQUARE, "controls": [0.0, 1.0], "A": IDENTITY, "f": 1.0} | changes)
    )


def matrix(off, other=None):
    return lambda x, a: jnp.array([[1.0, off(x, a)], [(other or off)(x, a), 1.0]])


BAD_CONTROL_PROBLEMS = {
    "empty": ({"controls": []}, r"controls is empty \(shape \(0,\)\)"),
    "controls without components": (
        {"controls": np.zeros((3, 0))},
        r"controls is empty \(shape \(3, 0\)\)",
    ),
    "ragged": ({"controls": [[1], [1, 2]]}, "controls is ragged.*same shape"),
    "texts": ({"controls": ["a", "b"]}, "could not convert.*'a'"),
    "scalar": ({"controls": 1.0}, r"controls = 1.0: pass an array of shape \(m, …\)"),
    "none": ({"controls": None}, "controls = None"),
    "NaN control": (
        {"controls": [[0, 1], [np.nan, 1]]},
        r"control 1 is not finite: a = \[nan,  1.\]",
    ),
    "infinite control": ({"controls": [0, 1, np.inf]}, "control 2 is not finite"),
    "indefinite": (
        {"A": matrix(lambda x, a: 2 * a)},
        r"A is not positive definite: A\(\[0\..*control 1, a = 1.* has the eigenvalue -1",
    ),
    "vanishing": (
        {"A": lambda x, a: (1 - a) * jnp.eye(2)},
        "A is not positive definite.*control 1, a = 1.* eigenvalue 0",
    ),
    "skew": (
        {"A": matrix(lambda x, a: a / 9, lambda x, a: 0)},
        r"A is not symmetric: A\(\[0\..*control 1, a = 1.*pass \(A \+ Aᵀ\)/2",
    ),
    "NaN of one control": (
        {"f": lambda x, a: jnp.log(1 - a - x[0] / 2 + 1e-9)},
        r"f is not finite at \d+ of 2000.*nan for control 1, a = 1",
    ),
    "NaN in A": ({"A": lambda x, a: jnp.eye(2) / (1 - a)}, "A is not finite.*control 1"),
    "infinite b": ({"b": lambda x, a: x / a}, "b is not finite.*control 0, a = 0"),
    "NaN c": ({"c": lambda x, a: jnp.sqrt(-a)}, "c is not finite.*control 1"),
    "shape of A": (
        {"A": lambda x, a: jnp.ones((2, 3))},
        r"A\(x\) has shape \(2, 3\), but shape \(2, 2\)",
    ),
    "constant for each control": (
        {"A": np.stack([IDENTITY, IDENTITY])},
        r"A has shape \(2, 2, 2\), but shape \(2, 2\)",
    ),
    "shape of b": ({"b": lambda x, a: a}, r"b\(x\) has shape \(\), but shape \(2,\)"),
    "constant b": ({"b": [1, 2, 3]}, r"b has shape \(3,\)"),
    "shape of c": ({"c": lambda x, a: x}, r"c\(x\) has shape \(2,\)"),
    "shape of f with vector controls": (
        {"controls": [[0, 1]], "f": lambda x, a: a},
        r"f\(x\) has shape \(2,\), but shape \(\)",
    ),
    "without a": (
        {"f": lambda x: x[0]},
        "f failed.*takes 1 positional argument but 2.*x and the control",
    ),
    "complex": ({"f": lambda x, a: 1j * a}, "complex"),
    "text": ({"f": "x"}, r"f is the text 'x': it must be a number.*function of \(x, a\)"),
    "float of a": (
        {"f": lambda x, a: float(a)},
        "f cannot be traced by JAX: write it with jax.numpy",
    ),
    "if on a": (
        {"A": lambda x, a: jnp.eye(2) if a > 0 else 2 * jnp.eye(2)},
        "A cannot be traced.*jnp.where instead of if",
    ),
    "numpy": ({"f": lambda x, a: np.sin(x[0])}, "f cannot be traced"),
    "maximiser of another shape": (
        {"maximiser": lambda x, jet: jnp.zeros(2)},
        r"maximiser.*has shape \(2,\), but shape \(\)",
    ),
    "maximiser is a number": ({"maximiser": 3}, "maximiser is 3: it must be a function"),
    "maximiser of x alone": ({"maximiser": lambda x: 0.0}, "maximiser failed"),
    "maximiser with if": (
        {"maximiser": lambda x, jet: 0.0 if jet.value > 0 else 1.0},
        "maximiser cannot be traced",
    ),
    "maximiser is NaN": (
        {"f": lambda x, a: a, "maximiser": lambda x, jet: jnp.nan},
        "maximiser is not the best",
    ),
    "discontinuous g": (
        {"g": lambda x: jnp.where(x[0] > 0.5, 1.0, 0.0)},
        r"g is not continuous on the boundary: near \[0.5",
    ),
    "interfaces": ({"interfaces": lambda x: x[0]}, "pass a list of functions"),
    "exact": ({"exact": lambda x: x}, r"exact\(x\) has shape \(2,\)"),
    "domain": ({"domain": "square"}, "domain is 'square'"),
}


@pytest.mark.parametrize("name", BAD_CONTROL_PROBLEMS)
def test_bad_control_problems(name):
    changes, message = BAD_CONTROL_PROBLEMS[name]
    with pytest.raises(CoefficientError, match=f"(?s){message}"):
        control_problem(**changes)


@pytest.mark.parametrize("sense", ["largest", "SUP", None, 1, ["sup"]])
def test_senses_that_do_not_exist(sense):
    with pytest.raises(OptionError, match=re.escape(f"sense = {sense!r}: 'sup' or 'inf'.")):
        control_problem(sense=sense)


def test_a_late_control_is_named():
    def A(x, a):
        return (1 - 2.0 * (a == 4321) * (x[0] > 0.1)) * jnp.eye(2)

    with pytest.raises(
        CoefficientError, match=r"A is not positive definite: A\(\[0\..*control 4321, a = 4321"
    ):
        control_problem(controls=np.arange(5000), A=A)


def test_a_maximiser_that_is_not_the_best_is_named():
    def problem(maximiser, sense="sup"):
        return control_problem(
            controls=np.linspace(-1, 1, 21),
            f=lambda x, a: -a * x[0],
            maximiser=maximiser,
            sense=sense,
        )

    with pytest.raises(
        CoefficientError,
        match=r"maximiser is not the best: at x = \[0\..*it gives a = -1.*"
        r"but control 20, a = 1.*It must give the sup",
    ):
        problem(lambda x, jet: -1.0)
    # Good at most points is not good enough: here it fails in a corner.
    with pytest.raises(CoefficientError, match=r"at x = \[0\.9\d*, 0\.[89]"):
        problem(lambda x, jet: jnp.where((x[0] > 0.9) & (x[1] > 0.8), -1.0, 1.0))
    assert problem(lambda x, jet: 1.0).maximiser is not None
    # The same for the infimum, of which the lower end is the best.
    assert problem(lambda x, jet: -1.0, "inf").maximiser is not None
    with pytest.raises(CoefficientError, match="It must give the inf"):
        problem(lambda x, jet: 1.0, "inf")


def stairs(x):
    """More jumps than are taken for interfaces where nobody declares them."""
    return sum(jnp.where(step(x) > 0, 1.0, 0.0) for step in STEPS)


STEPS = [lambda x, place=k / 9: x[0] - place for k in range(1, 9)]


def test_an_undeclared_jump_of_one_control_is_warned_about():
    def f(x, a):
        return jnp.where(a == 2, stairs(x), x[1])

    with pytest.warns(cordes.UndeclaredJumpWarning, match=r"f jumps near x = \[0."):
        control_problem(controls=np.arange(4.0), f=f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        control_problem(controls=np.arange(4.0), f=f, interfaces=STEPS)
        control_problem(controls=np.arange(4.0), f=lambda x, a: jnp.maximum(x[0] - 0.3, 0.0) * a)


BAD_DETERMINANTS = {
    "negative": ({"f": lambda x: x[0] - 0.5}, r"f is negative: f\(\[0\.0.* = -0\.4"),
    "negative constant": ({"f": -1.0}, "f is negative"),
    "NaN": (
        {"f": lambda x: jnp.sqrt(x[0] - 0.5)},
        r"f is not finite at \d+ of 2000 sampled points: f\(\[0.*nan",
    ),
    "infinite": ({"f": np.inf}, "f = inf is not finite"),
    "shape": ({"f": lambda x: x}, r"f\(x\) has shape \(2,\)"),
    "untraceable": ({"f": lambda x: float(x[0])}, "f cannot be traced by JAX"),
    "text": ({"f": "x"}, "f is the text 'x': it must be a number"),
    "discontinuous g": (
        {"f": 1.0, "g": lambda x: jnp.where(x[1] > 0.5, 1.0, 0.0)},
        "g is not continuous on the boundary",
    ),
    "NaN g": ({"f": 1.0, "g": lambda x: jnp.log(x[0] - 0.5)}, "g is not finite.*of the boundary"),
    "exact": ({"f": 1.0, "exact": lambda x: x}, r"exact\(x\) has shape"),
    "interface": (
        {"f": 1.0, "interfaces": [lambda x: x[0] + 1]},
        r"interfaces\[0\] does not change sign",
    ),
}


@pytest.mark.parametrize("name", BAD_DETERMINANTS)
def test_bad_determinants(name):
    changes, message = BAD_DETERMINANTS[name]
    with pytest.raises(CoefficientError, match=f"(?s){message}"):
        cordes.MongeAmpere(SQUARE, **changes)


def test_a_jump_of_the_determinant_is_warned_about():
    with pytest.warns(cordes.UndeclaredJumpWarning, match=r"f jumps near x = \[0."):
        cordes.MongeAmpere(SQUARE, lambda x: 1.0 + stairs(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cordes.MongeAmpere(SQUARE, lambda x: 1.0 + stairs(x), interfaces=STEPS)
        cordes.MongeAmpere(SQUARE, 0.0)
