"""All controls of a Hamilton–Jacobi–Bellman equation at many points, compared in blocks, and the
energy theorems that rest on the comparison.

With a multiplier g^a(x) > 0 for each control, M and λ common to all, |sup x_a - sup y_a| ≤ sup |x_a
- y_a| carries every theorem of `energy` over to F_g[w] = sup_a g^a (L^a w - f^a): ‖F_g[u_θ]‖/(1 +
s) ≤ ‖L_λ(u - u_θ)‖ ≤ ‖F_g[u_θ]‖/(1 - s) with s the supremum over all points and controls. The
maximum must be taken with the multiplier inside: g^a (L^a w - f^a) at the control that is best
without it is smaller, and no bound.

An infimum is minus the supremum of minus: everything here is multiplied by the sign of the problem
first.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.residual.candidate import EPSILON, ROUNDING_OF_TERMS, AbstractCandidate
from cordes.certificates.theorems.energy import Invariants, Scheme, inverse_root
from cordes.certificates.theorems.maximum import Profile
from cordes.jet import Jet
from cordes.problems.controls.controlled import AbstractControlled
from cordes.runtime.blocks import in_blocks

# Controls that are compared at once.
TOGETHER = 16
# Rounding of the products and sums of one equation, in units of ε times their sizes.
ROUNDING_OF_EQUATIONS = 8.0
# Points at which the rounding of the answer's derivatives is measured; it varies little, and beyond
# what was seen it is taken this much larger.
ROUNDING_POINTS, CAUTION = 256, 2.0
Multiplier = Callable[[Invariants], np.ndarray]


class Rounding(NamedTuple):
    """Bounds of the rounding in the value, gradient and Hessian of an answer, and the largest sizes
    of these where the bounds were found."""

    bound: Jet
    size: Jet

    def at(self, jet: Jet) -> Jet:
        """The bounds at points. Derivatives larger than any that were seen (at a singular point)
        are known to a share of what they are larger by."""
        parts: Any = (
            bound + ROUNDING_OF_TERMS * np.maximum(np.abs(np.asarray(value)) - size, 0.0)
            for bound, size, value in zip(self.bound, self.size, jet, strict=True)
        )
        return Jet(*parts)


def rounding_of(candidate: AbstractCandidate, points: np.ndarray) -> Rounding:
    """Each derivative is a linear expression of which `applied` bounds the rounding; one at a time
    at all points of a certificate would take too long."""
    x = points[:ROUNDING_POINTS]
    n, d = x.shape
    A, b, c = np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n)

    def largest(*coefficients: np.ndarray) -> tuple[float, float]:
        value, rounding = candidate.applied(x, *coefficients)
        return CAUTION * float(np.max(rounding)), float(np.max(np.abs(value)))

    value = largest(A, b, c - 1)
    gradient = np.transpose([largest(A, b + direction, c) for direction in np.eye(d)])
    hessian = np.zeros((2, d, d))
    for i, j in itertools.combinations_with_replacement(range(d), 2):
        unit = np.outer(np.eye(d)[i], np.eye(d)[j])
        hessian[:, i, j] = hessian[:, j, i] = largest(A + (unit + unit.T) / 2, b, c)
    parts: Any = zip(value, gradient, hessian, strict=True)
    return Rounding(*(Jet(*part) for part in parts))


class SeenControls(NamedTuple):
    """What is known of an answer at points: its derivatives with bounds of their rounding, or,
    where the controls are few, ±(L^a u - f^a) itself (N, m) with a bound of its rounding, which is
    sharper."""

    jet: Jet | None
    error: Jet | None
    defect: np.ndarray | None = None
    rounding: np.ndarray | None = None

    @staticmethod
    def nothing(n: int, d: int) -> "SeenControls":
        zero: Any = (np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d)))
        return SeenControls(Jet(*zero), Jet(*zero))


class Best(NamedTuple):
    """Limits of a supremum over the controls at points, and the number of the control that attains
    it."""

    lower: np.ndarray
    upper: np.ndarray
    index: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """The absolute value, rounded up."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))

    @property
    def least(self) -> np.ndarray:
        """The absolute value, rounded down: zero where the sign is not certain."""
        return np.maximum(np.maximum(self.lower, -self.upper), 0.0)


class Extremes(NamedTuple):
    """Over the controls at each point: the smallest det(A^a)^{1/d}, the largest
    |b^a|/det(A^a)^{1/d}, a_ii and c smallest, |b_i| largest."""

    root: np.ndarray
    ratio: np.ndarray
    diagonal: np.ndarray
    drift: np.ndarray
    reaction: np.ndarray


@functools.lru_cache(maxsize=16)
def _compiled(A: Callable, b: Callable, c: Callable, f: Callable) -> dict[str, Callable]:
    """Compiled functions of (controls of a block, constants, points, …) for the coefficients of a
    problem, kept so that a second certificate costs no compilation."""

    def equation(a: Any, root: Any, x: Any, *parts: Any) -> tuple:
        """tr A, |A₀|, |b| in the coordinates y = M^{-1/2}x, c, L^a u - f^a and its rounding."""
        matrix, drift, reaction, right = (function(x, a) for function in (A, b, c, f))
        jet, error = Jet(*parts[:3]), Jet(*parts[3:])
        carried = root @ matrix @ root
        trace, size = jnp.trace(carried), jnp.maximum(jnp.max(jnp.abs(carried)), 1e-300)
        rest = (carried - trace / len(x) * jnp.eye(len(x))) / size
        terms = (matrix * jet.hessian, drift * jet.gradient, -reaction * jet.value, -right)
        inherited = (
            jnp.sum(jnp.abs(matrix) * error.hessian)
            + jnp.sum(jnp.abs(drift) * error.gradient)
            + jnp.abs(reaction) * error.value
        )
        sizes = sum(jnp.sum(jnp.abs(term)) for term in terms)
        rounding = inherited + ROUNDING_OF_EQUATIONS * EPSILON * sizes
        deviation, slope = size * jnp.sqrt(jnp.sum(rest**2)), jnp.linalg.norm(root @ drift)
        return trace, deviation, slope, reaction, sum(jnp.sum(term) for term in terms), rounding

    def matrices(a: Any, _: Any, x: Any) -> tuple:
        """The entries of `Extremes` for one control."""
        matrix, drift = A(x, a), b(x, a)
        size = jnp.max(jnp.abs(matrix))
        root = size * jnp.linalg.det(matrix / size) ** (1 / len(x))
        ratio = jnp.linalg.norm(drift) / root
        return root, ratio, jnp.diag(matrix), jnp.abs(drift), jnp.asarray(c(x, a))

    def operator(a: Any, _: Any, x: Any, w: Any, gradient: Any, curvature: Any) -> Any:
        """-L^a w for a function whose Hessian is diagonal."""
        return c(x, a) * w - jnp.sum(A(x, a) * curvature) - jnp.dot(b(x, a), gradient)

    def compiled(function: Callable) -> Callable:
        def at_points(controls: Any, constants: Any, *points: Any) -> Any:
            def at_point(*point: Any) -> Any:
                return jax.vmap(lambda a: function(a, constants, *point))(controls)

            return jax.vmap(at_point)(*points)

        return jax.jit(at_points)

    return {each.__name__: compiled(each) for each in (equation, matrices, operator)}


def _least(against: list[Best]) -> Best:
    """What is left where the opponent chooses whom the controls play against."""
    if len(against) == 1:
        return against[0]
    lower, upper, index = (np.stack(part) for part in zip(*against, strict=True))
    chosen, rows = np.argmin(lower, axis=0), np.arange(lower.shape[1])
    return Best(lower[chosen, rows], np.min(upper, axis=0), index[chosen, rows])


class Pairs:
    """The sampled controls of a problem, in blocks of one size with which the compiled functions
    are called."""

    def __init__(self, problem: AbstractControlled):
        self.problem, controls = problem, problem.controls
        # A power of two: few sizes are compiled.
        # No block holds the controls against two opponents.
        self.against = len(controls) // problem.rivals
        size = min(1 << (self.against - 1).bit_length(), TOGETHER)
        self._blocks = []
        for first in range(0, len(controls), self.against):
            last = first + self.against - 1
            for k in range(first, last + 1, size):
                chosen = controls[np.minimum(np.arange(k, k + size), last)]
                self._blocks.append((k, min(size, last + 1 - k), chosen))
        self._compiled = _compiled(problem.A, problem.b, problem.c, problem.f)

    def _over_blocks(
        self, name: str, constants: np.ndarray, *arrays: Any
    ) -> Iterator[tuple[int, Any]]:
        """The results for one block of controls after the other, arrays (N, k, …), with the number
        of its first control."""
        compiled = self._compiled[name]
        for first, count, controls in self._blocks:
            found = in_blocks(
                lambda *points, controls=controls: compiled(controls, constants, *points), arrays
            )
            yield first, jax.tree.map(lambda leaf, count=count: leaf[:, :count], found)

    # All controls ---------------------------------------------------------------------------------

    def equations(
        self, x: np.ndarray, seen: SeenControls, matrix: np.ndarray
    ) -> Iterator[tuple[int, Invariants, np.ndarray, np.ndarray]]:
        """For one block of controls after the other: invariants, defects and their rounding, the
        pairs one point after the other."""
        empty = SeenControls.nothing(*x.shape)
        arrays: Any = (*(seen.jet or empty.jet), *(seen.error or empty.error))  # pyright: ignore
        blocks = self._over_blocks("equation", inverse_root(matrix), x, *arrays)
        for first, (*parts, defect, rounding) in blocks:
            at = Invariants(x.shape[1], *(part.ravel() for part in parts))
            last = first + defect.shape[1]
            if seen.defect is None or seen.rounding is None:
                yield first, at, self.problem.sign * defect, rounding
            else:
                yield first, at, seen.defect[:, first:last], seen.rounding[:, first:last]

    def best(
        self,
        x: np.ndarray,
        seen: SeenControls,
        multipliers: list[Multiplier],
        matrix: np.ndarray | None = None,
    ) -> list[Best]:
        """sup_a g^a (L^a u - f^a) for each of several multipliers, in a game the smallest of these
        over the opponents. What is not a number stays so, and is not hidden by other controls."""
        matrix = np.eye(x.shape[1]) if matrix is None else matrix
        nothing = np.full(len(x), -np.inf)
        rivals = self.problem.rivals
        none = Best(nothing, nothing, np.zeros(len(x), int))
        against = [[none for _ in range(rivals)] for _ in multipliers]
        rows = np.arange(len(x))
        for first, at, defect, rounding in self.equations(x, seen, matrix):
            for multiplier, each in zip(multipliers, against, strict=True):
                g, k, found = multiplier(at).reshape(defect.shape), first // self.against, each
                # The control is the best one of the lower limits, so that the lower limit holds for
                # its equation.
                value = g * (defect - rounding)
                index = np.argmax(value, axis=1)
                better = ~(value[rows, index] <= found[k].lower) & ~np.isnan(found[k].lower)
                found[k] = Best(
                    np.where(better, value[rows, index], found[k].lower),
                    np.maximum(found[k].upper, np.max(g * (defect + rounding), axis=1)),
                    np.where(better, first + index, found[k].index),
                )
        return [_least(each) for each in against]

    def largest_rounding(self, x: np.ndarray, seen: SeenControls) -> np.ndarray:
        blocks = self.equations(x, seen, np.eye(x.shape[1]))
        return np.max([np.max(rounding, axis=1) for *_, rounding in blocks], axis=0)

    def defects(
        self, scheme: Scheme, x: np.ndarray, matrix: np.ndarray, scale: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The largest defects of a scheme over the controls, (N, columns), and the control with the
        largest sum; `scale` (N,) multiplies the equations."""
        n, d = x.shape
        largest, total, worst = None, np.full(n, -np.inf), np.zeros(n, int)
        for first, at, defect, _ in self.equations(x, SeenControls.nothing(n, d), matrix):
            if scale is not None:
                at = Invariants(d, *(part * np.repeat(scale, defect.shape[1]) for part in at[1:]))
            columns = scheme.defects(at).reshape(*defect.shape, -1)
            here = np.max(columns, axis=1)
            largest = here if largest is None else np.maximum(largest, here)
            sums = np.sum(columns, axis=2)
            index = np.argmax(sums, axis=1)
            better = sums[np.arange(n), index] > total
            total = np.where(better, sums[np.arange(n), index], total)
            worst = np.where(better, first + index, worst)
        assert largest is not None
        return largest, worst

    def extremes(self, x: np.ndarray) -> Extremes:
        blocks = [block for _, block in self._over_blocks("matrices", np.zeros(0), x)]
        # In the order of the fields: smallest root, largest ratio, …
        extremes = (np.min, np.max, np.min, np.max, np.min)
        parts = zip(extremes, zip(*blocks, strict=True), strict=True)
        return Extremes(*(most([most(b, axis=1) for b in part], axis=0) for most, part in parts))

    def lowest_operator(self, x: np.ndarray, profile: Profile) -> np.ndarray:
        """min_a (-L^a w)."""
        arrays = (x, profile.value, profile.gradient, profile.curvature)
        blocks = self._over_blocks("operator", np.zeros(0), *arrays)
        return np.min([np.min(block, axis=1) for _, block in blocks], axis=0)
