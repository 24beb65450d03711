"""Bounds of the largest error that do not grow with the drift.

`Green with drift`: A and b are constant. |v| lies below the solution with c = 0, the right-hand
side -|r| and the whole space around, whose Green's function is known.

`Talenti`: the drift has no sinks. With m > 0 the equation times m is div(mA∇v) + β·∇v - cmv = mr,
β = m(b - div A) - A∇m, where div A has the entries Σ_j ∂_j a_ij. Integrated over a set {v > t}, t >
0,

    ∫_{v=t} m A∇v·∇v/|∇v| = -∫_{v>t} (m r + c m v + (v - t) div β) ≤ ∫_{v>t} m|r|,

if c ≥ 0 and cm + div β ≥ 0: the drift is gone, and what is left is Talenti's rearrangement. With A
≥ θM and m ≥ 1, sup v ≤ C ‖m r‖/θ with the constant C of Green's function for M. Here m = exp(k(s -
min s)) with s = e·x; then div β/m = div b - div div A + k e·(b - 2 div A) - k² e·Ae. What cm + div
β lacks, δm at most, is moved to the right-hand side, where it costs δ ‖m‖ sup|v|.

`interpolated`: let sup v ≤ F ‖w e‖ in L^p whenever Lv ≥ -e, and Lψ ≤ -1. Then for any K > 0
v ≤ Kψ + F ‖w(|r| - K)⁺‖, and (|r| - K)⁺ ≤ (q-1)^{q-1} q^{-q} |r|^q K^{1-q}. With the best K,

    sup v ≤ (sup ψ)^{1-1/q} F^{1/q} ‖w^{1/q} r‖ in L^{pq},    q ≥ 1.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cordes.certificates.enclosed.weights import UNIT, Weight, exponential, over_root
from cordes.certificates.residual.norms import Norm, Quadrature
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.certificates.theorems.barriers.traversal import SLACK, Field, cells_of
from cordes.certificates.theorems.contraction import AbstractCoverage
from cordes.certificates.theorems.maximum import (
    Maximum,
    MaximumPrinciple,
    best_of,
    determinant_root,
)
from cordes.certificates.theorems.pointwise import drifting_green_constant, green_constant
from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import UnsupportedOperation, enclose
from cordes.formulas.regularity import jump, kink
from cordes.problems.linear import Linear

# Powers q of the interpolation.
POWERS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
# What a weight lacks may take all but this share.
LEAST_REST = 0.1
# k times the width of the domain along e.
STEEPNESS = np.concatenate([[0.0], np.geomspace(0.05, 8.0, 23)])


class Estimate(NamedTuple):
    """sup v ≤ `factor` · ‖weight e‖ in L^power whenever Lv ≥ -e; `formula` is the weight as one."""

    cited: Citation
    factor: float
    weight: np.ndarray
    power: int
    formula: Weight | None = None


class Sources(NamedTuple):
    """Limits over cells: c + div b - div div A at least, b - 2 div A with its radius, A at most."""

    divergence: np.ndarray
    drift: np.ndarray
    radius: np.ndarray
    largest: np.ndarray


def drift_bounds(
    problem: Linear, principle: MaximumPrinciple, coverage: AbstractCoverage
) -> list[Maximum]:
    """What is known of equations with drift beside the bounds that all equations have."""
    if not (problem.has_drift and isinstance(principle.measure, Quadrature)):
        return []
    found = estimates(problem, principle, coverage)
    return [interpolated(principle, each) for each in found]


def estimates(
    problem: Linear, principle: MaximumPrinciple, coverage: AbstractCoverage
) -> list[Estimate]:
    local = [local_abp(principle)] if principle.traversals else []
    return [*_green(principle, coverage), *_talenti(problem, principle, coverage), *local]


def local_abp(principle: MaximumPrinciple) -> Estimate:
    return Estimate(
        Citation(Theorem.ABP, "interpolated").with_(Modifier.drift),
        principle.factor,
        1 / principle.operators.root,
        principle.dimension,
        over_root(determinant_root),
    )


def interpolated(principle: MaximumPrinciple, estimate: Estimate) -> Maximum:
    """The best power; q = 1 alone where there is no ψ."""
    size, found = principle.size, []
    for q in POWERS if principle.traversals else POWERS[:1]:
        norm = principle.measure.norm(estimate.weight ** (1 / q) * size, q * estimate.power)
        peak = principle.traversals[0].peak ** (1 - 1 / q) if q > 1 else 1.0
        bound = peak * estimate.factor ** (1 / q) * norm.upper
        found.append(Maximum(bound, estimate.cited, np.full(len(size), bound), (norm,)))
    return best_of([*found, *_enclosed(principle, estimate, found[0].norms[0])])


def _enclosed(principle: MaximumPrinciple, estimate: Estimate, seen: Norm) -> Iterator[Maximum]:
    """The estimate itself, without interpolation, where its norm is enclosed."""
    if estimate.formula is None or principle.enclosed is None:
        return
    norm = principle.enclosed(estimate.formula, estimate.power, seen)
    if norm is not None:
        bound = estimate.factor * norm.upper
        yield Maximum(bound, estimate.cited, np.full(len(principle.size), bound), (norm,))


def _green(principle: MaximumPrinciple, coverage: AbstractCoverage) -> Iterator[Estimate]:
    (A, b, c), d = principle.evaluated.local, principle.dimension
    if coverage.constant and d <= 3:
        lambda_ = max(float(np.min(c)), 0.0)
        factor = drifting_green_constant(principle.domain, A[0], b[0], lambda_)
        yield Estimate(Citation(Theorem.drift), factor, np.ones(len(A)), 2, UNIT)


def _talenti(
    problem: Linear, principle: MaximumPrinciple, coverage: AbstractCoverage
) -> Iterator[Estimate]:
    sources, domain = _sources(problem, coverage), problem.domain
    if sources is None:
        return
    matrix = np.mean(coverage.local.A, axis=0)
    constant = green_constant(domain.dimension, domain.volume, matrix)
    ellipticity = _ellipticity(principle.field, matrix)
    if constant is None or not ellipticity > 0:
        return
    size, measure = principle.size, principle.measure
    found = []
    for e in (sign * row for row in np.eye(domain.dimension) for sign in (1.0, -1.0)):
        found += _weighted(domain, sources, e, constant / ellipticity, measure.points)
        if np.all(sources.divergence >= 0):
            # Without a weight nothing is lacking.
            break
    if found:
        yield min(found, key=lambda each: each.factor * measure.norm(each.weight * size).upper)


def _weighted(
    domain: AbstractDomain, sources: Sources, e: np.ndarray, constant: float, x: np.ndarray
) -> list[Estimate]:
    """What the weights exp(k(s - min s)), s = e·x, give, as far as they lack little."""
    low, high = domain.bounding_box
    width, start = float((high - low) @ np.abs(e)), float(np.min([low @ e, high @ e]))
    drift = sources.drift @ e - sources.radius @ np.abs(e)
    second = np.einsum("i,nij,j->n", np.abs(e), sources.largest, np.abs(e))
    found = []
    for k in STEEPNESS / width:
        # No more than c + div β/m.
        left = sources.divergence + k * drift - k**2 * second
        least = float(np.min(np.where(np.isnan(left), -np.inf, left)))
        lacking, top = max(-least, 0.0) * (1 + SLACK), math.exp(k * width)
        rest = 1 - lacking * constant * top * math.sqrt(domain.volume)
        if rest > LEAST_REST:
            weight = np.exp(k * np.maximum(x @ e - start, 0.0))
            factor = constant / rest * (1 + SLACK)
            formula = exponential(float(k), e, start)
            found.append(Estimate(Citation(Theorem.talenti), factor, weight, 2, formula))
        if lacking == 0:
            break
    return found


def _ellipticity(field: Field | None, matrix: np.ndarray) -> float:
    """θ with A ≥ θM over the whole domain; 0 where that is not known."""
    if field is None:
        return 0.0
    ball = field.ball.whitened(matrix)
    radius = np.linalg.norm(ball.radius.A, axis=(1, 2))
    return float(np.min(np.linalg.eigvalsh(ball.middle.A)[:, 0] - radius)) * (1 - SLACK)


def _sources(problem: Linear, coverage: AbstractCoverage) -> Sources | None:
    """None where b may jump, where A may have kinks, or where the formulas have no enclosure."""
    cells = cells_of(problem.domain)
    if cells is None or not (coverage.constant or coverage.enclosed):
        return None

    def at(x: Any) -> tuple:
        def divergence_of_rows(x: Any) -> Any:
            return jnp.trace(jax.jacfwd(problem.A)(x), axis1=1, axis2=2)

        def reduced(x: Any) -> Any:
            return problem.b(x) - (0.0 if problem.constant_A else divergence_of_rows(x))

        rows = jnp.zeros(len(x)) if problem.constant_A else divergence_of_rows(x)
        divergence = jnp.trace(jax.jacfwd(reduced)(x)) + problem.c(x)
        return divergence, problem.b(x) - 2 * rows, problem.A(x)

    smooth_A = problem.constant_A or kink(problem.A, problem.domain) is None
    if not smooth_A or jump(problem.b, problem.domain) is not None:
        return None
    try:
        pieces = enclose(at)(*cells)
    except UnsupportedOperation:
        return None
    found = []
    for divergence, drift, A in pieces:
        middle = drift.lower / 2 + drift.upper / 2
        largest = np.maximum(np.abs(A.lower), np.abs(A.upper))
        found.append((divergence.lower, middle, (drift.upper - middle) * (1 + SLACK), largest))
    return Sources(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
