"""Least squares: with frozen hidden weights a linear equation is one rank-revealing solve.

The number and the frequency of the features grow until the residual on fresh points meets the tolerance, reaches rounding level, or stops falling.
At each size a few candidates compete on fresh points: the frequency reached so far, a higher one, and (first stage) which inputs the features see.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.linalg

from cordes.ansatz import Rows
from cordes.networks.random_features import RandomFeatures
from cordes.results import Result
from cordes.solvers.answer import Answer
from cordes.solvers.progress import Progress
from cordes.solvers.system import Clock, System, feature_matrix

# Columns whose pivot is below this share of the largest are dropped. Lower keeps rounding noise, higher loses digits.
RANK_TOLERANCE = 1e-14
# A fresh residual below this share of the target's size is rounding.
ROUNDING = 2e-12
OVERSAMPLING = 2.5
FIRST_FREQUENCIES = (1.0, 2.0, 4.0)
GROWTH = 1.6


class Candidate(NamedTuple):
    """One fitted network with its residual on fresh points."""

    network: RandomFeatures
    amplitudes: np.ndarray
    residual: float
    frequency: float
    inputs: str


def solve_rank_revealing(matrix: np.ndarray, target: np.ndarray, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
    """Least squares with columns scaled to length one and a numerically dependent remainder left out.

    QR without Q (the target rides along as the last column), then a column-pivoted QR of the small triangle, whose minimum-norm solution is a third
    of the price of a singular value decomposition and as accurate here.
    """
    count = matrix.shape[1]
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    triangle = np.linalg.qr(np.concatenate([matrix / size, target[:, None]], axis=1), mode="r")
    right = triangle[:count, count]
    q, r, order = scipy.linalg.qr(triangle[:count, :count], pivoting=True, mode="economic", check_finite=False)
    pivots = np.abs(np.diag(r))
    rank = int(np.sum(pivots > tolerance * pivots[0]))
    solution = np.zeros(count)
    solution[order[:rank]] = scipy.linalg.solve_triangular(r[:rank, :rank], q[:, :rank].T @ right, check_finite=False)
    return solution / size


def fit(system: System, rows: Rows, fresh: Rows, width: int, frequency: float, inputs: str, seed: int, activation: str) -> Candidate:
    """Solve for the coefficients of one random network and judge it on fresh points."""
    network = RandomFeatures(system.ansatz.inputs, width, frequency, seed, system.ansatz.inputs.active(inputs), activation)
    solution = solve_rank_revealing(feature_matrix(network, rows), np.asarray(rows.target))
    residual = float(np.linalg.norm(feature_matrix(network, fresh) @ solution - np.asarray(fresh.target)))
    return Candidate(network.with_parameters(jnp.asarray(solution[:width])), solution[width:], residual, frequency, inputs)


def stage_widths(dimension: int, features: int | None) -> list[int]:
    """Sizes of the stages; `features` is the largest."""
    largest = features or {1: 400, 2: 1000, 3: 1600}.get(dimension, 3000)
    widths = [largest]
    while widths[0] > 300:
        widths.insert(0, int(widths[0] / 2))
    return widths


def solve_least_squares(
    system: System,
    tol: float | None,
    seed: int,
    clock: Clock,
    progress: Progress,
    features: int | None = None,
    frequency: float | None = None,
    activation: str = "sine",
) -> Answer:
    """Grow until the residual on fresh points is at most `tol`, or stops falling."""
    best: Candidate | None = None
    history: list[dict] = []
    result, points = Result.converged, 0
    scale = 1.0
    fresh = None
    try:
        for width in (widths := stage_widths(system.domain.dimension, features)):
            while True:
                collocation = system.points(int(OVERSAMPLING * width), seed)
                rows = system.rows(collocation)
                if fresh is None:
                    fresh = system.rows(system.fresh_points(seed))
                    scale = max(float(np.linalg.norm(fresh.target)), 1e-300)
                before = best.residual if best else np.inf
                for choice in _candidates(system, best, frequency, first=width == widths[0]):
                    candidate = fit(system, rows, fresh, width, *choice, seed, activation)
                    if best is None or candidate.residual < best.residual:
                        best, points = candidate, len(collocation.x)
                    progress.update(features=width, residual=best.residual, seconds=clock.seconds)
                    if _done(best, tol, scale) or clock.over:
                        break
                assert best is not None
                history.append({"features": width, "singular": system.ansatz.singular.count, "frequency": best.frequency, "residual": best.residual})
                stalled = best.residual > 0.5 * before
                if _done(best, tol, scale) or clock.over or not stalled or not (tol is not None and system.enrich()):
                    break
                # Growing the features alone does not help any more: more singular functions do, and the same width is tried again.
                fresh, best_before = None, best
                best = best_before._replace(residual=np.inf)
            if _done(best, tol, scale) or clock.over or stalled:
                break
    except KeyboardInterrupt:
        if best is None:
            raise
        result = Result.interrupted
    assert best is not None
    if result is not Result.interrupted:
        result = _verdict(best, tol, scale, clock)
    return Answer(best.network, jnp.asarray(best.amplitudes), result, best.residual, points, history)


def _done(best: Candidate, tol: float | None, scale: float) -> bool:
    return best.residual <= ROUNDING * scale or (tol is not None and best.residual <= tol)


def _candidates(system: System, best: Candidate | None, frequency: float | None, first: bool) -> list[tuple[float, str]]:
    """Frequencies and inputs that compete at one size."""
    if best is None or first:
        choices = ["interfaces", "powers", "coordinates"] if system.problem.interfaces else ["coordinates"]
        frequencies = FIRST_FREQUENCIES if frequency is None else (frequency,)
        return [(f, choice) for choice in choices for f in frequencies]
    if frequency is not None:
        return [(frequency, best.inputs)]
    return [(best.frequency * GROWTH, best.inputs), (best.frequency, best.inputs)]


def _verdict(best: Candidate, tol: float | None, scale: float, clock: Clock) -> Result:
    if not np.isfinite(best.residual):
        return Result.nonfinite
    if _done(best, tol, scale):
        return Result.converged
    if clock.over:
        return Result.time_out
    if tol is not None:
        return Result.tolerance_not_reached
    return Result.converged if best.residual <= 1e-3 * scale else Result.stagnated
