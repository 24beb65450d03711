"""What a residual is multiplied with before its norm is taken, as squares: at points, and on
neighbourhoods of cells."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from cordes.certificates.enclosed.abstract import Equation, Weight
from cordes.certificates.theorems.energy import Local, Scheme, inverse_root
from cordes.certificates.theorems.exponential import Transform
from cordes.formulas.rectangles import Rectangle

Array = np.ndarray


UNIT = Weight(lambda x, local: np.ones(len(x)), lambda equation: equation.c * 0.0 + 1.0)


def exponential(k: float, direction: Array, start: float) -> Weight:
    """exp(k(s - start)), s the coordinate along a direction."""

    def squared(equation: Equation) -> Rectangle:
        return np.exp(((equation.x * direction).sum(-1) - start) * (2 * k))  # pyright: ignore

    return Weight(lambda x, local: np.exp(k * (x @ direction - start)), squared)


class RectangleInvariants(NamedTuple):
    """`Invariants` for rectangles: squares in place of roots, which are not analytic at zero."""

    dimension: int
    trace: Rectangle
    squared_deviation: Rectangle
    squared_drift: Rectangle
    reaction: Rectangle

    @property
    def anisotropy(self) -> Rectangle:
        return self.squared_deviation / self.trace.square()


def _trace(A: Rectangle) -> Rectangle:
    return sum((A[..., i, i] for i in range(1, A.shape[-1])), A[..., 0, 0])


def _total(z: Rectangle, axes: tuple[int, ...]) -> Rectangle:
    return z.sum(axes)


def whitened(A: Rectangle, root: Array) -> Rectangle:
    """root A root."""
    left = (root[:, :, None] * A[..., None, :, :]).sum(-2)
    return (left[..., :, :, None] * root).sum(-2)


def invariants(equation: Equation, matrix: Array) -> RectangleInvariants:
    A, b, c = equation.A, equation.b, equation.c
    d = A.shape[-1]
    if not np.array_equal(matrix, np.eye(d)):
        root = inverse_root(matrix)
        A, b = whitened(A, root), (b[..., None] * root).sum(-2)
    trace = _trace(A)
    rest = A - trace[..., None, None] * (np.eye(d) / d)
    return RectangleInvariants(
        d, trace, _total(rest.square(), (-2, -1)), _total(b.square(), (-1,)), c
    )


def _on_rectangles(scheme: Scheme, equation: Equation, matrix: Array) -> Rectangle:
    """The multiplier is written for numbers, and rectangles calculate like these."""
    at: Any = invariants(equation, matrix)
    return cast(Any, scheme.multiplier(at))


def multiplier(scheme: Scheme, matrix: Array, transform: Transform | None = None) -> Weight:
    """g of an energy theorem, times the growth of a transform."""

    def at(x: Array, local: Local) -> Array:
        changed = local if transform is None else transform.local(x, local)
        g = scheme.multiplier(changed.invariants(matrix))
        return g if transform is None else g * transform.growth(x)

    def squared(equation: Equation) -> Rectangle:
        if transform is None:
            return _on_rectangles(scheme, equation, matrix).square()
        changed, growth = _transformed(equation, transform)
        return _on_rectangles(scheme, changed, matrix).square() * growth

    return Weight(at, squared)


def _transformed(equation: Equation, transform: Transform) -> tuple[Equation, Rectangle]:
    """The coefficients of the transformed equation, and e^φ."""
    x, A, b, c = equation
    y = x - transform.center
    image = (y[..., None, :] * transform.S).sum(-1)
    gradient = image + transform.p
    turned = (A * gradient[..., None, :]).sum(-1)
    reaction = c + (b * gradient).sum(-1) * 0.5 - (turned * gradient).sum(-1) * 0.25
    reaction = reaction + (A * transform.S).sum((-2, -1)) * 0.5
    phi = (y * transform.p).sum(-1) + (y * image).sum(-1) * 0.5 + transform.constant
    return Equation(x, A, b - turned, reaction), np.exp(phi)


def determinant(A: Rectangle) -> Rectangle:
    d = A.shape[-1]
    if d == 1:
        return A[..., 0, 0]
    if d == 2:
        return A[..., 0, 0] * A[..., 1, 1] - A[..., 0, 1] * A[..., 1, 0]
    total = None
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        minor = A[..., 1, j] * A[..., 2, k] - A[..., 1, k] * A[..., 2, j]
        term = A[..., 0, i] * minor
        total = term if total is None else total + term
    assert total is not None
    return total


def over_root(root: Callable[[Array], Array]) -> Weight:
    """1/det A^{1/d}; `root` computes det A^{1/d} at points."""

    def squared(equation: Equation) -> Rectangle:
        return determinant(equation.A).power(-2 / equation.A.shape[-1])

    return Weight(lambda x, local: 1 / root(local.A), squared)


def drift_over_root(root: Callable[[Array], Array]) -> Weight:
    """|b|/det A^{1/d}."""

    def squared(equation: Equation) -> Rectangle:
        return equation.b.square().sum(-1) * over_root(root).squared(equation)

    return Weight(lambda x, local: np.linalg.norm(local.b, axis=1) / root(local.A), squared)
