"""Certificates of Hamilton–Jacobi–Bellman equations: bounds of v = u - u_θ from the equation at u_θ
alone.

Energy: the theorems of the linear equation with a supremum over the controls, multiplier inside
(`hjb_energy`); without a maximiser for the finite set `controls`, exactly; with one, for the
continuum that it stands for, with a multiplier common to all controls (`hjb_coverage`).

Maximum: with ϱ = F[u_θ], L^a v ≤ -ϱ for the control a that is best for u_θ, and L^{a'} v ≥ -ϱ for
the control a' that is best for u and that nobody knows. So ϱ⁻ with the equation of a bounds sup(u_θ
- u), and ϱ⁺ with the worst of all equations sup(u - u_θ). For an infimum the sides change places.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cordes.certificates.certificate import Certificate
from cordes.certificates.hjb.coverage import ContinuumCoverage, ControlCoverage, choose_common
from cordes.certificates.hjb.energy import (
    ROUNDING_OF_EQUATIONS,
    Best,
    ControlPilot,
    Extremes,
    Pairs,
    Seen,
    rounding_of,
)
from cordes.certificates.linear import (
    assemble,
    disagreement_of,
    measured_closely,
    no_maximum,
    pilot_points_of,
    with_gap,
)
from cordes.certificates.residual.candidate import CHUNK, EPSILON, Candidate, Evaluated
from cordes.certificates.residual.hypotheses import boundary_gap, not_seen, refusal
from cordes.certificates.residual.layers import refusal_of
from cordes.certificates.residual.norms import unresolved
from cordes.certificates.theorems.contraction import Coverage
from cordes.certificates.theorems.energy import Local, Pilot, Scheme, TraceSplit
from cordes.certificates.theorems.energy_bounds import EnergyBound, Equation, energy_bounds, failure
from cordes.certificates.theorems.exponential import Transform
from cordes.certificates.theorems.maximum import (
    Limits,
    Maximum,
    MaximumPrinciple,
    Profile,
    best_of,
    determinant_root,
    maxima,
)
from cordes.certificates.theorems.preconditioner import preconditioners
from cordes.formulas.regularity import jump
from cordes.jet import Jet
from cordes.problems.hjb import HJB
from cordes.runtime.plain import show

# Norms for which one sample serves at most: energy, the two sides of ABP, the drift of each.
NORMS_OF_A_SAMPLE = 5
# Numbers in the matrices of all pairs of pilot points and controls.
PILOT_NUMBERS = 2_000_000
# Up to this number of controls each is applied to the answer on its own; its derivatives cost about
# as much as three of them.
DIRECT = 3
# Controls whose matrices are searched for jumps.
LOOKED_AT = 64
# A sampled control that beats the maximiser by more than this, relative to the terms of the
# equation, refutes it.
BEATEN = 1e-9


class State(NamedTuple):
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

    def __init__(self, problem: HJB, candidate: Candidate, pilot_points: np.ndarray):
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

    def evaluate(self, x: np.ndarray) -> State:
        seen = self.see(x)
        plain, scaled = self.pairs.best(
            x, seen, [lambda at: np.ones(len(at.trace)), TraceSplit().multiplier]
        )
        root, control, beaten = (
            self.pairs.extremes(x).root,
            self.problem.controls[plain.index],
            np.zeros(len(x)),
        )
        if self.problem.maximiser is not None:
            control = self.problem.policy(x, seen.jet, scaled=False)
            plain, scaled, beaten = self._by_maximiser(x, seen, control, plain)
        return State(seen, plain, scaled, control, root, beaten)

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

    def densities(self, state: State) -> np.ndarray:
        """What the cells are refined for: the energy norm and the ABP norm."""
        d = self.problem.domain.dimension
        with np.errstate(over="ignore"):
            return np.stack([state.scaled.size**2, (state.plain.size / state.root) ** d], axis=1)


class ControlledEquation(Equation):
    """A finite set of controls. `candidate` is a `Compared`, `evaluated` and `pilot` are states."""

    __slots__ = ()

    @property
    def pairs(self) -> Pairs:
        return self.candidate.pairs  # pyright: ignore[reportAttributeAccessIssue]

    def residual_at(self, points: np.ndarray) -> np.ndarray:
        best = self.candidate.evaluate(points).plain  # pyright: ignore[reportAttributeAccessIssue]
        return self.problem.sign * (best.lower + best.upper) / 2

    def transform(self) -> Transform | None:
        return None

    def pilot_local(self, coverage: Coverage) -> Local:
        return coverage.local

    def pilot_for(
        self, local: Local, matrix: np.ndarray, eigenvalue: float, transform: Transform | None
    ) -> Pilot:
        count = len(self.pilot_points)
        active = (
            self.pilot.scaled.size * np.trace(local.A[:count], axis1=1, axis2=2) / local.A.shape[-1]
        )  # pyright: ignore[reportAttributeAccessIssue]
        residual = np.concatenate([active, np.full(len(local.c) - count, -1.0)])
        at = local.invariants(matrix)
        return ControlPilot(
            local.whitened(matrix),
            at,
            residual,
            eigenvalue,
            self.problem.has_drift,
            self.problem.has_reaction,
        )

    def scaled(
        self, scheme: Scheme, coverage: Coverage, matrix: np.ndarray, transform: Transform | None
    ) -> tuple[np.ndarray, np.ndarray]:
        state: Any = self.evaluated
        best = self.pairs.best(self.measure.points, state.seen, [scheme.multiplier], matrix)[0]
        return best.size, best.least

    def failure(self, scheme: Scheme, matrix: np.ndarray, value: float, point: np.ndarray) -> str:
        worst = int(self.pairs.defects(scheme, point[None], matrix)[1][0])
        return (
            f"{failure(scheme, matrix, value, point)}, control {worst}, a = "
            f"{show(self.problem.controls[worst])}"
        )

    def coverage(self, **options: Any) -> Coverage:
        """All controls over the whole domain; the pairs are those of the best controls at the pilot
        points first, then the others."""
        problem, x = self.problem, self.pilot_points
        m, d = len(problem.controls), x.shape[1]
        index = self.pilot.scaled.index  # pyright: ignore[reportAttributeAccessIssue]
        fewer = np.unique(
            np.linspace(
                0, len(x) - 1, int(np.clip(PILOT_NUMBERS // (m * d * d), 32, len(x)))
            ).astype(int)
        )
        number, place = np.repeat(np.arange(m), len(fewer)), np.tile(fewer, m)
        others = index[place] != number
        points = np.concatenate([x, x[place[others]]])
        controls = problem.controls[np.concatenate([index, number[others]])]
        return ControlCoverage(
            problem,
            points,
            _local(problem, points, controls),
            self.pairs,
            self.measure.points,
            **options,
        )


class ContinuumEquation(ControlledEquation):
    """A continuum of controls with a maximiser: the closed form is that of the supremum without
    multipliers, so that one for all controls is needed."""

    __slots__ = ()

    def schemes(self, pilot: Pilot) -> Any:
        return choose_common(pilot)

    def scaled(
        self, scheme: Scheme, coverage: Coverage, matrix: np.ndarray, transform: Transform | None
    ) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(coverage, ContinuumCoverage)
        best = self.evaluated.plain  # pyright: ignore[reportAttributeAccessIssue]
        g = scheme.multiplier(coverage.local.take(np.zeros(1, int)).invariants(matrix))[
            0
        ] * coverage.scale(self.measure.points)
        return g * best.size, g * best.least

    def failure(self, scheme: Scheme, matrix: np.ndarray, value: float, point: np.ndarray) -> str:
        x, a = ContinuumCoverage.split(self.problem, point)
        return f"{failure(scheme, matrix, value, x)}, a = {show(a)}"

    def coverage(self, **options: Any) -> Coverage:
        problem, x = self.problem, self.pilot_points
        m, d = len(problem.controls), x.shape[1]
        fewer = np.unique(
            np.linspace(
                0, len(x) - 1, int(np.clip(PILOT_NUMBERS // (m * d * d), 32, len(x)))
            ).astype(int)
        )
        points = np.concatenate([x, x[np.tile(fewer, m)]])
        controls = np.concatenate(
            [self.pilot.control, np.repeat(problem.controls, len(fewer), axis=0)]
        )  # pyright: ignore[reportAttributeAccessIssue]
        state: Any = self.evaluated
        return ContinuumCoverage(
            problem,
            points,
            controls,
            _local(problem, points, controls),
            self.pairs,
            self.measure.points,
            state.control,
        )


def _local(problem: HJB, points: np.ndarray, controls: np.ndarray) -> Local:
    return Local(*(np.asarray(part) for part in problem.pairs(points, controls)[:3]))


def certify_hjb(
    problem: HJB, candidate: Candidate, singular: np.ndarray, confidence: float = 0.99
) -> Certificate:
    """The best bounds that the theorems give. `singular` (K, d) are points around which the
    residual may be large."""
    reason = refusal(problem, candidate)
    if reason is not None:
        return Certificate(reason=reason)
    pilot_points = pilot_points_of(problem.domain)
    compared = Compared(problem, candidate, pilot_points)
    pilot = compared.evaluate(pilot_points)
    reason = _unusable(problem, pilot, pilot_points)
    if reason is not None:
        return Certificate(reason=reason)
    how = (problem, singular, confidence, compared.evaluate, compared.densities, NORMS_OF_A_SAMPLE)
    measure, state, layers = measured_closely(
        *how, lambda x: compared.evaluate(x).scaled.least, lambda state: state.scaled.size
    )
    reason = (
        _unusable(problem, state, measure.points)
        or not_seen(problem, candidate, measure.points)
        or refusal_of(layers)
    )
    if reason is not None:
        return Certificate(reason=reason)
    kind = ControlledEquation if problem.maximiser is None else ContinuumEquation
    equation = kind(problem, compared, measure, state, pilot, pilot_points)  # pyright: ignore
    coverage = equation.coverage()
    certificate = controlled_bounds(equation, coverage)
    known: Any = [certificate] if certificate.contraction is not None else []
    return with_gap(
        boundary_gap(problem, candidate),
        certificate,
        lambda: _no_maximum_principle(equation, coverage, known),
    )


def controlled_bounds(equation: ControlledEquation, coverage: Coverage) -> Certificate:
    """All theorems applied to one equation that is known on a measure."""
    degenerate = coverage.degenerate_point() if isinstance(coverage, ControlCoverage) else None
    if degenerate is not None:
        return Certificate(
            reason=(
                f"A is not positive definite for every control near x = {show(degenerate)}: the "
                "equation is not elliptic there"
            )
        )
    energies, failures = energy_bounds(equation, coverage)
    disagreement = disagreement_of(equation.measure, energies)
    energies = [energy for energy in energies if energy.norm.converged]
    maximum, others, why = _maximum(equation, coverage, energies)
    return assemble(
        equation, energies, maximum, others, [*failures, *disagreement, *([why] if why else [])]
    )


def _unusable(problem: HJB, state: State, points: np.ndarray) -> str | None:
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
        return (
            f"the equation or the residual is not a finite number at x = {show(points[bad[0]])}, "
            f"a = {show(state.control[bad[0]])}"
        )
    outside = problem.outside(state.control)
    if np.any(outside):
        i = int(np.argmax(outside))
        return (
            f"maximiser leaves the control set: at x = {show(points[i])} it gives a = "
            f"{show(state.control[i])}, beyond the box of the controls; include the ends of the "
            "set in controls"
        )
    worst = int(np.argmax(state.beaten))
    if state.beaten[worst] > BEATEN:
        return (
            f"maximiser is not the best at x = {show(points[worst])}: it gives a = "
            f"{show(state.control[worst])}, but control {state.plain.index[worst]} is better; it "
            f"must give the {problem.sense} of L^a u - f^a over all controls"
        )
    return None


class Side(MaximumPrinciple):
    """One sign of the error: `right` (N,) bounds what drives it. With `extremes` the equation is
    not known, and the worst one of all controls counts."""

    def __init__(
        self,
        equation: ControlledEquation,
        evaluated: Evaluated,
        right: np.ndarray,
        extremes: Extremes | None,
    ):
        self.right, self.extremes, self.pairs = right, extremes, equation.pairs
        worst = (None, None) if extremes is None else (extremes.root, extremes.ratio)
        super().__init__(
            equation.domain, equation.measure, evaluated, equation.problem.has_drift, *worst
        )

    def sides(self) -> list[np.ndarray]:
        return [self.right]

    def size(self) -> np.ndarray:
        return self.right

    def minus_operator(self, profile: Profile) -> np.ndarray:
        return (
            super().minus_operator(profile)
            if self.extremes is None
            else self.pairs.lowest_operator(self.measure.points, profile)
        )

    def limits(self) -> Limits:
        if self.extremes is None:
            return super().limits()
        each = self.extremes
        return Limits(
            np.min(each.diagonal, axis=0), np.max(each.drift, axis=0), float(np.min(each.reaction))
        )


def _maximum(
    equation: ControlledEquation, coverage: Coverage, energies: list[EnergyBound]
) -> tuple[Maximum | None, list[Maximum], str | None]:
    """The best bound from the maximum principle, those that have it on both sides, and why there is
    none."""
    why = _no_maximum_principle(equation, coverage, energies)
    if why is not None:
        return None, [], why
    state: Any = equation.evaluated
    best, points = state.plain, equation.measure.points
    local = _local(equation.problem, points, state.control)
    evaluated = Evaluated(local, (best.lower + best.upper) / 2, (best.upper - best.lower) / 2)
    extremes = equation.pairs.extremes(points)
    if np.min(extremes.reaction) < 0:
        return (
            None,
            [],
            (
                f"c is negative for some control ({np.min(extremes.reaction):.4g}): the maximum "
                "principle does not apply"
            ),
        )
    if isinstance(coverage, ContinuumCoverage):
        root = coverage.smallest_root()
        if root is None or equation.problem.has_drift:
            return (
                None,
                [],
                (
                    "no bound of the largest error by the maximum principle: its constants are not "
                    "known for all controls of the continuum"
                ),
            )
        worst = np.minimum(root / coverage.scale(points), determinant_root(local.A))
        # Barriers need min -L^a w over the continuum: only ABP is left.
        known, unknown = (
            Side(equation, evaluated, np.maximum(-best.lower, 0.0), None),
            Side(equation, evaluated, np.maximum(best.upper, 0.0), extremes._replace(root=worst)),
        )
        first, second = [known.estimate()], [unknown.estimate()]
    else:
        first = maxima(Side(equation, evaluated, np.maximum(-best.lower, 0.0), None))
        second = maxima(Side(equation, evaluated, np.maximum(best.upper, 0.0), extremes))
    found = [_both(one, two) for one in first for two in second if one.theorem == two.theorem]
    top = _both(best_of(first), best_of(second))
    if not top.converged:
        return (
            None,
            [],
            (
                "the ABP norm did not converge: "
                f"{unresolved(equation.measure, max(norm.spread for norm in top.norms))}"
            ),
        )
    return (top, found, None) if math.isfinite(top.bound) else (None, [], no_maximum(best.size))


def _both(one: Maximum, two: Maximum) -> Maximum:
    """|v| is bounded by the larger one of the bounds of v and of -v."""
    first, second = sorted((one, two), key=lambda each: -each.bound)
    name = (
        first.theorem if first.theorem == second.theorem else f"{first.theorem}, {second.theorem}"
    )
    return Maximum(
        first.bound, name, np.maximum(one.pointwise, two.pointwise), (*first.norms, *second.norms)
    )


def _no_maximum_principle(
    equation: ControlledEquation, coverage: Coverage, energies: list[EnergyBound]
) -> str | None:
    """c ≥ 0 and hypothesis (H): two dimensions, or the Cordès condition for all controls, or
    coefficients that are continuous."""
    problem = equation.problem
    if not coverage.nonnegative_reaction()[0]:
        row = int(np.argmin(coverage.local.c))
        return (
            f"c is negative for some control ({coverage.local.c[row]:.4g}): the maximum principle "
            "does not apply"
        )
    if problem.domain.dimension > 2 and not energies:
        matrix = preconditioners(coverage.local)[-1]
        if not coverage.contraction(TraceSplit(), matrix).value < 1:
            everywhere = jnp.asarray(problem.controls)
            found = jump(
                lambda x: jnp.stack([problem.A(x, a) for a in everywhere[:LOOKED_AT]]),
                problem.domain,
            )
            if found is not None or len(everywhere) > LOOKED_AT or problem.maximiser is not None:
                what = found or f"{len(everywhere)} controls are too many to tell"
                return (
                    "no bound of the largest error: in three and more dimensions it needs the "
                    f"Cordès condition or a continuous A ({what})"
                )
    if problem.has_drift and not coverage.bounded_drift():
        return "no bound of the largest error: b could not be bounded over the whole domain"
    return None
