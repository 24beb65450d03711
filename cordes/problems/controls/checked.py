"""Controls and maximisers as users give them: finite, elliptic, and the best."""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.errors import CoefficientError
from cordes.jet import Jet
from cordes.problems.coefficients import at_states, check_elliptic, check_finite, check_shape
from cordes.runtime.plain import show

if TYPE_CHECKING:
    from cordes.problems.controls.controlled import AbstractControlled

# How far a maximiser may go beyond the box of the sampled controls, as a share of its width: no
# more than rounding. The sizes of the states it is tried with.
MARGIN, PROBED_SIZES = 1e-9, 10.0 ** np.arange(-3, 7)
# Pairs of points and controls that are looked at.
CHECK_PAIRS = 400_000


def checked_controls(controls: Any, name: str = "controls") -> np.ndarray:
    try:
        array = np.asarray(controls, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CoefficientError(
            f"{name} is ragged or holds something that is no number ({error}): all controls "
            "must have the same shape. Number those that have names: controls=range(3), and a "
            "table of their numbers indexed with a.astype(int)."
        ) from error
    if array.ndim == 0:
        raise CoefficientError(
            f"{name} = {controls!r}: pass an array of shape (m, …) whose leading axis runs "
            "over the controls."
        )
    if array.size == 0:
        raise CoefficientError(
            f"{name} is empty (shape {array.shape}): at least one control is needed."
        )
    bad = np.flatnonzero(~np.all(np.isfinite(array.reshape(len(array), -1)), axis=1))
    if len(bad):
        raise CoefficientError(f"control {bad[0]} is not finite: a = {show(array[bad[0]])}.")
    return array


def check_controls(problem: "AbstractControlled", points: np.ndarray) -> None:
    """Finite and elliptic for each control; the first one that is not is named."""
    n, several = len(points), max(1, CHECK_PAIRS // (4 * len(points)))
    for first in range(0, len(problem.controls), several):
        chosen = problem.controls[first : first + several]
        local = problem.pairs(np.tile(points, (len(chosen), 1)), np.repeat(chosen, n, axis=0))
        parts = [np.asarray(part).reshape(len(chosen), n, *np.shape(part)[1:]) for part in local]
        for k, a in enumerate(chosen):
            which = f"control {first + k}, a = {show(a)}"
            for name, values in zip(("A", "b", "c", "f"), parts, strict=True):
                check_finite(name, values[k], points, which=which)
            check_elliptic("A", problem.of_space(parts[0][k]), points, which=which)


def check_maximiser(problem: "AbstractControlled", points: np.ndarray) -> None:
    """For random states no sampled control may be better than the one that the maximiser
    gives."""
    maximiser = problem.maximiser
    if maximiser is None:
        return
    n, d = points.shape
    generator = np.random.default_rng(16)
    hessian = generator.standard_normal((n, d, d))
    value, gradient = generator.standard_normal(n), generator.standard_normal((n, d))
    jet = Jet(*map(jnp.asarray, (value, gradient, hessian + np.swapaxes(hessian, 1, 2))))
    one = Jet(*(part[0] for part in jet))
    check_shape("maximiser", maximiser, problem.controls.shape[1:], jnp.asarray(points[0]), one)

    def compare(x: Array, state: Jet) -> tuple[Array, ...]:
        index = problem.best_index(x, state, scaled=False)
        mine, rival = jnp.asarray(maximiser(x, state), float), jnp.asarray(problem.controls)[index]
        return problem.defect(x, state, mine), problem.defect(x, state, rival), mine, index

    mine, rival, control, index = at_states(compare)(points, jet)
    worse = problem.sign * (rival - mine)
    scale = 1 + np.abs(rival)
    i = int(np.argmax(np.where(np.isfinite(worse), worse / scale, np.inf)))
    if not worse[i] <= 1e-8 * scale[i]:
        raise CoefficientError(
            f"maximiser is not the best: at x = {show(points[i])} it gives a = "
            f"{show(control[i])} with L^a u - f^a = {mine[i]:.6g}, but control {index[i]}, a "
            f"= {show(problem.controls[index[i]])}, gives {rival[i]:.6g}. It must give the "
            f"{problem.sense} of L^a u - f^a over all controls."
        )
    _check_range(problem, points, jet)


def _check_range(problem: "AbstractControlled", points: np.ndarray, jet: Jet) -> None:
    """No state, however small or large, may ask for a control outside of the box of the sampled
    ones: certificates hold for the controls of this box."""
    for size in PROBED_SIZES:
        control = problem.policy(points, Jet(*(size * np.asarray(part) for part in jet)))
        outside = problem.outside(control)
        if np.any(outside):
            i = int(np.argmax(outside))
            lower, upper = np.min(problem.controls, axis=0), np.max(problem.controls, axis=0)
            raise CoefficientError(
                f"maximiser leaves the control set: at x = {show(points[i])} it gives a = "
                f"{show(control[i])} for second derivatives of size {size:.0e}, but the "
                f"controls lie between {show(lower)} and {show(upper)}. Include the ends of "
                "the set in controls, or clip the maximiser to it."
            )
