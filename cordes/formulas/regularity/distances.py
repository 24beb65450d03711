"""Interfaces written as distances: √q - c, as in `norm(x) - 0.5`, and |w| - c vanish where q - c²
does, which has no kink at the centre."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.formulas.trace import CALLS


class Root(NamedTuple):
    """factor·√square + shift."""

    square: Array
    factor: float = 1.0
    shift: float = 0.0

    def scaled(self, by: float) -> "Root":
        return Root(self.square, self.factor * by, self.shift * by)

    def moved(self, by: float) -> "Root":
        return self._replace(shift=self.shift + by)


class Valued(NamedTuple):
    """A value of a function, whether it depends on the point, and what is known of it: `usual` is
    what stands beside the guard of a choice, where(q > 0, q, 1)."""

    value: Any
    depends: bool = False
    root: Root | None = None
    usual: Any = None


def without_root(phi: Callable[[Array], Array], points: np.ndarray) -> Callable | None:
    """A function with the zero set of φ, and its slope there, if φ is a distance less a number;
    compared with it at points."""

    def root_of(x: Array) -> Root | None:
        closed = jax.make_jaxpr(phi)(x)
        (seen,) = _run(closed.jaxpr, closed.consts, [Valued(x, True)])
        return seen.root

    found = root_of(points[0])
    if found is None or not found.factor * found.shift < 0:
        return None

    def twin(x: Array) -> Array:
        root = root_of(x)
        assert root is not None
        return (root.factor**2 * root.square - root.shift**2) / (-2 * root.shift)

    at = jnp.asarray(points)
    value, other = (np.asarray(jax.vmap(each)(at)) for each in (phi, twin))
    # q - c² = (√q - c)(√q + c): the second factor is φ less twice its shift.
    expected = value * (value - 2 * found.shift) / (-2 * found.shift)
    return twin if np.allclose(other, expected, rtol=1e-9, atol=1e-12) else None


def _run(jaxpr: Any, constants: Any, arguments: list[Valued]) -> list[Valued]:
    known = dict(zip(jaxpr.constvars, map(Valued, constants), strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> Valued:
        return Valued(variable.val) if hasattr(variable, "val") else known[variable]

    for equation in jaxpr.eqns:
        inputs, parameters = [read(each) for each in equation.invars], equation.params
        keys = ("call_jaxpr", "fun_jaxpr", "jaxpr")
        inner = [parameters[key] for key in keys if key in parameters]
        if equation.primitive.name in CALLS and inner and hasattr(inner[0], "consts"):
            results = _run(inner[0].jaxpr, inner[0].consts, inputs)
        else:
            made = equation.primitive.bind(*(each.value for each in inputs), **parameters)
            several = equation.primitive.multiple_results
            results = [_seen(equation, each, inputs) for each in (made if several else [made])]
        known.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _seen(equation: Any, value: Any, inputs: list[Valued]) -> Valued:
    moving = [each for each in inputs if each.depends]
    if not moving or np.shape(value) != ():
        return Valued(value, bool(moving))
    name, first, last = equation.primitive.name, inputs[0], inputs[-1]
    if name == "select_n":
        cases = [each for each in inputs[1:] if each.depends]
        usual = cases[0] if len(cases) == 1 else Valued(value)
        return Valued(value, True, usual.root, usual.value)
    if name in ("sqrt", "abs"):
        usual = first.value if first.usual is None else first.usual
        return Valued(value, True, Root(usual if name == "sqrt" else usual * usual))
    if name in ("convert_element_type", "reshape", "squeeze", "copy"):
        return first._replace(value=value)
    return Valued(value, True, _combined(name, first, last) if len(inputs) <= 2 else None)


def _combined(name: str, first: Valued, last: Valued) -> Root | None:
    """Sums and multiples of a root and a number."""
    if name == "neg" and first.root is not None:
        return first.root.scaled(-1.0)
    root, number = (first.root, last) if first.depends else (last.root, first)
    if root is None or number.depends or (name == "div" and number is first):
        return None
    constant = float(number.value)
    if name in ("mul", "div"):
        return root.scaled(constant if name == "mul" else 1 / constant)
    if name == "sub" and number is first:
        return root.scaled(-1.0).moved(constant)
    return root.moved(constant if name == "add" else -constant) if name in ("add", "sub") else None
