"""Certificates of potentials of a stopping curve (`ExercisePotential`), whose residual is known.

For every curve s the potential w solves w_t = Lw + h 1_{x < s(t)}, h = -F[p], on the whole line.
Where h ≥ 0 below the curve F[w] = 0 above it and F[w] = -h ≤ 0 below it, so that in O1 ϱ⁺ = 0, and
ϱ⁻ counts only where w > ψ + η below the curve. There w - p solves the equation without a source, so
that |w - p| is nowhere larger than on the curve: with η = sup |w - p|(s(t), t) nothing is left of
the integrals,

    u - w ≤ max(δ, e_b),    w - u ≤ max(η, e_b),

δ = sup (ψ - w)⁺, e_b the mismatch of w and g at the ends of the domain. All three are taken at
points: the level is `sampled`. The Gauss rules of the potential are compared with finer ones.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cordes.ansatz.networks.exercise_potential import GAUSS, ExercisePotential
from cordes.certificates.certificate import Certificate
from cordes.certificates.reason import Reason, Why
from cordes.certificates.residual.candidate import AbstractCandidate, AnswerCandidate
from cordes.certificates.theorem import Citation, Theorem
from cordes.problems.coefficients import sample
from cordes.problems.obstacle import Obstacle

# Times for each panel on the curve; times and places beside it; points elsewhere.
ON_CURVE, BESIDE, ELSEWHERE, SEED = 24, 12, 1 << 11, 5_550_012
EPSILON = float(np.finfo(float).eps)
# Units in the last place of the values that their computation costs.
ROUNDING = 64.0


def potential_of(candidate: AbstractCandidate) -> ExercisePotential | None:
    """The network of an answer, if it is a potential."""
    network = candidate.solution.network if isinstance(candidate, AnswerCandidate) else None
    return network if isinstance(network, ExercisePotential) else None


def certify_potential(problem: Obstacle, network: ExercisePotential) -> Certificate:
    stopping, side = network.stopping, network.side
    domain: Any = problem.domain
    t = domain.start + _times(network)
    curve = network.boundary(t)
    if not np.all(stopping.gain.at(side * curve) >= 0):
        sentence = "the curve reaches where stopping gains nothing"
        return Certificate(reasons=(Reason(Why.hypothesis, sentence),))
    on_curve = network.at(curve, t)
    matched = np.max(np.abs(on_curve - stopping.stopped.at(side * curve)))
    finer = np.max(np.abs(on_curve - network.at(curve, t, 2 * GAUSS)))
    x = _places(problem, network)
    psi, w = sample(problem.lower, x), network.value_at(x)  # pyright: ignore
    short = max(float(np.max(psi - w)), 0.0)
    finer = max(finer, float(np.max(np.abs(w - network.at(x[:, 0], x[:, 1], 2 * GAUSS)))))
    ends = np.array(domain.base.bounding_box)[:, 0]
    sides = np.array([[end, time] for end in ends for time in t])
    g = np.asarray(jax.vmap(problem.g)(jnp.asarray(sides)), float)
    missed = float(np.max(np.abs(network.value_at(sides) - g)))
    missed = max(missed, _missed_at_start(problem))
    largest = max(float(matched), short, missed)
    largest += 2 * finer + ROUNDING * EPSILON * float(np.max(np.abs(psi)))
    by = Citation(Theorem.O1, "class V")
    words = "no bounds of derivatives: comparison speaks of values alone"
    reasons = [Reason(Why.no_theorem, words)]
    if missed > max(float(matched), short):
        sentence = (
            f"most of the bound is that g and the answer differ by {missed:.2g} at the ends of"
        )
        sentence += " the domain: a wider one, or other values there, make it smaller"
        reasons.append(Reason(Why.boundary_gap, sentence, {"gap": missed}))
    return Certificate(
        L2=largest * math.sqrt(problem.domain.volume),
        rms=largest,
        Linf=largest,
        citation=by,
        maximum_citation=by,
        level="sampled",
        reasons=tuple(reasons),
        points=len(x) + len(t),
        citations={"L2": by, "Linf": by},
        alternatives={
            "on the curve": float(matched),
            "below the obstacle": short,
            "at the ends": missed,
            "of the integrals": finer,
        },
        classes={"V": "u is the continuous viscosity solution"},
    )


def _missed_at_start(problem: Obstacle) -> float:
    """How far the initial values are from the obstacle, with which the potential starts."""
    domain, initial = problem.clock.domain, problem.values.initial  # pyright: ignore
    x = domain.base.interior_points(ELSEWHERE, SEED, "sobol")
    z = np.column_stack([x, np.full(len(x), domain.start)])
    return float(np.max(np.abs(sample(initial, x) - sample(problem.lower, z))))  # pyright: ignore


def _times(network: ExercisePotential) -> np.ndarray:
    """Since the start, the same share of each panel, and before the first one."""
    edges = network.edges
    share = (np.arange(ON_CURVE) + 0.5) / ON_CURVE
    inner = edges[:-1, None] + (edges[1:] - edges[:-1])[:, None] * share
    first = edges[1] * 10.0 ** -np.arange(1.0, 8.0)
    return np.unique(np.append(np.concatenate([first, inner.ravel()]), edges[-1]))


def _places(problem: Obstacle, network: ExercisePotential) -> np.ndarray:
    """Points of the domain, denser towards the start, and on all scales beside the curve."""
    domain: Any = problem.domain
    x = domain.interior_points(ELSEWHERE, SEED, "sobol")
    share = (x[:, -1] - domain.start) / domain.length
    x[:, -1] = domain.start + domain.length * np.maximum(share, 1e-4) ** 3
    t = domain.start + _times(network)[::BESIDE]
    low, high = (corner[0] for corner in domain.base.bounding_box)
    steps = np.geomspace(1e-8, 0.5, 60) * (high - low)
    beside = network.boundary(t)[:, None] + np.concatenate([-steps, steps])
    points = np.column_stack([beside.ravel(), np.repeat(t, 2 * len(steps))])
    points = points[(points[:, 0] > low) & (points[:, 0] < high)]
    return np.concatenate([x, points])
