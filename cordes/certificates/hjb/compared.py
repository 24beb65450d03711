"""An answer to which all controls are applied: F[u_θ] at points with limits of its rounding, the
best control there, and whether a maximiser is one."""

from typing import NamedTuple

import numpy as np

from cordes.certificates.hjb.energy import (
    ROUNDING_OF_EQUATIONS,
    Best,
    Pairs,
    Seen,
    rounding_of,
)
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import CHUNK, EPSILON, AbstractCandidate
from cordes.certificates.theorems.energy import TraceSplit
from cordes.jet import Jet
from cordes.problems.hjb import HJB
from cordes.runtime.plain import show

# Up to this number of controls each is applied to the answer on its own; its derivatives cost about
# as much as three of them.
DIRECT = 3
# A sampled control that beats the maximiser by more than this, relative to the terms of the
# equation, refutes it.
BEATEN = 1e-9


class ControlState(NamedTuple):
    """At points: what is known of the answer; limits of ±F[u_θ], and of the same with the
    multiplier d/tr A^a inside; the best control of the first; the smallest det(A^a)^{1/d}; by how
    much a sampled control beats the maximiser, relative to the terms of the equation."""

    seen: Seen
    plain: Best
    scaled: Best
    control: np.ndarray
    root: np.ndarray
    beaten: np.ndarray


class Compared:
    """An answer to which all controls are applied: few of them one by one, many by its derivatives,
    whose rounding is measured at the pilot points."""

    def __init__(self, problem: HJB, candidate: AbstractCandidate, pilot_points: np.ndarray):
        self.problem, self.candidate, self.pairs = problem, candidate, Pairs(problem)
        direct = problem.maximiser is None and len(problem.controls) <= DIRECT
        self.rounding = None if direct else rounding_of(candidate, pilot_points)

    def see(self, x: np.ndarray) -> Seen:
        if self.rounding is None:
            parts = [
                [self._applied(x[k : k + CHUNK], a) for k in range(0, len(x), CHUNK)]
                for a in self.problem.controls
            ]
            columns = [np.concatenate(part, axis=1) for part in parts]
            return Seen(
                None, None, *(np.stack([column[k] for column in columns], axis=1) for k in range(2))
            )
        jet = Jet(*(np.asarray(part) for part in self.candidate.jet(x)))  # pyright: ignore
        return Seen(jet, self.rounding.at(jet))

    def _applied(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """±(L^a u - f^a) and its rounding for one control, (2, N)."""
        A, b, c, f = (
            np.asarray(part)
            for part in self.problem.pairs(x, np.broadcast_to(a, (len(x), *a.shape)))
        )
        value, rounding = self.candidate.applied(x, A, b, c)
        return np.stack([self.problem.sign * (value - f), rounding + 4 * EPSILON * np.abs(f)])

    def evaluate(self, x: np.ndarray) -> ControlState:
        seen = self.see(x)
        plain, scaled = self.pairs.best(
            x, seen, [lambda at: np.ones(len(at.trace)), TraceSplit().multiplier]
        )
        root = self.pairs.extremes(x).root
        control = self.problem.controls[plain.index]
        beaten = np.zeros(len(x))
        if self.problem.maximiser is not None and seen.jet is not None:
            control = self.problem.policy(x, seen.jet, scaled=False)
            plain, scaled, beaten = self._by_maximiser(x, seen, control, plain)
        return ControlState(seen, plain, scaled, control, root, beaten)

    def _by_maximiser(
        self, x: np.ndarray, seen: Seen, control: np.ndarray, sampled: Best
    ) -> tuple[Best, Best, np.ndarray]:
        """The supremum over the continuum. At another state, the true one, another control may be
        best: the rounding is that of the worst control."""
        jet, error = seen.jet, seen.error
        assert jet is not None
        assert error is not None
        A, b, c, f = (np.asarray(part) for part in self.problem.pairs(x, control))
        terms = np.concatenate(
            [
                (A * jet.hessian).reshape(len(x), -1),
                b * jet.gradient,
                -(c * jet.value)[:, None],
                -f[:, None],
            ],
            axis=1,
        )
        size = np.sum(np.abs(terms), axis=1)
        inherited = (
            np.sum(np.abs(A) * error.hessian, axis=(1, 2))
            + np.sum(np.abs(b) * error.gradient, axis=1)
            + np.abs(c) * error.value
        )
        rounding = inherited + ROUNDING_OF_EQUATIONS * EPSILON * size
        value = self.problem.sign * np.sum(terms, axis=1)
        largest = 2 * np.maximum(rounding, self.pairs.largest_rounding(x, seen))
        plain = Best(value - rounding, np.maximum(value + largest, sampled.upper), sampled.index)
        multiplier = x.shape[1] / np.trace(A, axis1=1, axis2=2)
        return (
            plain,
            Best(multiplier * plain.lower, multiplier * plain.upper, plain.index),
            (sampled.lower - value - largest) / np.maximum(size, 1e-300),
        )

    def densities(self, state: ControlState) -> np.ndarray:
        """What the cells are refined for: the energy norm and the ABP norm."""
        d = self.problem.domain.dimension
        with np.errstate(over="ignore"):
            return np.stack([state.scaled.size**2, (state.plain.size / state.root) ** d], axis=1)


def unusable(problem: HJB, state: ControlState, points: np.ndarray) -> Reason | None:
    """What is not a number, and a maximiser that is none."""
    n = len(points)
    parts = [
        part.reshape(n, -1)
        for part in (
            state.plain.lower,
            state.plain.upper,
            state.scaled.lower,
            state.scaled.upper,
            state.root,
        )
    ]
    bad = np.flatnonzero(~np.all([np.all(np.isfinite(part), axis=1) for part in parts], axis=0))
    if len(bad):
        return Reason(
            Why.not_finite,
            f"the equation or the residual is not a finite number at x = {show(points[bad[0]])}, "
            f"a = {show(state.control[bad[0]])}",
            {"point": points[bad[0]], "control": state.control[bad[0]]},
        )
    outside = problem.outside(state.control)
    if np.any(outside):
        i = int(np.argmax(outside))
        return Reason(
            Why.maximiser,
            f"maximiser leaves the control set: at x = {show(points[i])} it gives a = "
            f"{show(state.control[i])}, beyond the box of the controls; include the ends of the "
            "set in controls",
            {"point": points[i], "control": state.control[i]},
        )
    worst = int(np.argmax(state.beaten))
    if state.beaten[worst] > BEATEN:
        return Reason(
            Why.maximiser,
            f"maximiser is not the best at x = {show(points[worst])}: it gives a = "
            f"{show(state.control[worst])}, but control {state.plain.index[worst]} is better; it "
            f"must give the {problem.sense} of L^a u - f^a over all controls",
            {"point": points[worst], "control": state.control[worst]},
        )
    return None
