"""Whether f of det D²u = f has a finite integral, as the theorem needs, so far as points show."""

import numpy as np

from cordes.certificates.reason import NoBoundError, Why
from cordes.certificates.residual.convexity import descend, inside
from cordes.certificates.residual.norms import Measure
from cordes.problems.monge_ampere import MongeAmpere
from cordes.runtime.plain import show

SEARCH_SEED = 5_550_203
# A pole of f is suspected where f exceeds its mean so much; of an integrable one the largest values
# have less than this share of those before.
SUSPECT, POLE_SHARE, POLE_ROUNDS = 1e3, 0.5, 120
# The sets of the largest values: points in each, their number, each a tenth of the last one, random
# steps, and how far apart those compared are.
TAIL_POINTS, TAIL_LEVELS, TAIL_MOVES, TAIL_SPAN = 2048, 12, 12, 5


def check_density(problem: MongeAmpere, measure: Measure, f: np.ndarray) -> None:
    """f must have a finite integral: looked at through n and 2n points, and through its largest
    values, since a logarithm grows too slowly for them."""
    domain, norm = problem.domain, measure.norm(f, 1.0)
    if not norm.converged:
        raise NoBoundError(
            Why.not_a_density,
            "f may not be a density: n and 2n points per direction give integrals of f that "
            f"differ by {100 * norm.spread:.2g} %; declare the interface if f jumps. A pole "
            "whose integral is infinite has no bound.",
            spread=norm.spread,
        )
    mean = norm.upper / domain.volume
    top, (start, end) = np.argsort(-f)[:4], domain.bounding_box

    def negative(x: np.ndarray) -> np.ndarray:
        return -np.nan_to_num(problem.source_density(x), nan=0.0, posinf=np.inf)

    pole, value = descend(
        domain,
        negative,
        measure.points[top],
        -f[top],
        0.1 * float(np.max(end - start)),
        POLE_ROUNDS,
    )
    best = int(np.argmin(value))
    if -value[best] > SUSPECT * mean and _infinite_tail(problem, mean):
        raise NoBoundError(
            Why.not_a_density,
            "f is not a density: its integral over any neighbourhood of x = "
            f"{show(pole[best])} is infinite, as far as its largest values show; the theorem "
            "needs an integrable f",
            point=pole[best],
        )


def _infinite_tail(problem: MongeAmpere, mean: float) -> bool:
    """Whether the largest values of f keep their share of the integral: around poles, lines and
    surfaces alike.

    Points are moved into the sets f > t whose volumes are a tenth of one another, t being the
    quantile: those above it are copied and walk at random within the set, in steps of all
    lengths and along differences of two of them, which have the shape of the set. t times the
    volume is the share of values near t in the integral, which falls with the volume where the
    integral is finite.
    """
    domain, rng = problem.domain, np.random.default_rng(SEARCH_SEED)
    lower, upper = domain.bounding_box
    size = float(np.max(upper - lower))

    def density(points: np.ndarray) -> np.ndarray:
        return np.nan_to_num(
            np.asarray(problem.source_density(points), dtype=np.float64),
            nan=0.0,
            posinf=np.finfo(np.float64).max,
        )

    x = domain.interior_points(TAIL_POINTS, SEARCH_SEED)
    f, levels = density(x), []
    for _ in range(TAIL_LEVELS):
        order = np.argsort(-f, kind="stable")[: len(x) // 10]
        levels.append(float(f[order[-1]]))
        x, f = np.tile(x[order], (10, 1)), np.tile(f[order], 10)
        for move in range(TAIL_MOVES):
            if move % 2:
                length = 10.0 ** rng.uniform(-2.0, 0.0, (len(x), 1))
                tries = x + length * (x[rng.permutation(len(x))] - x[rng.permutation(len(x))])
            else:
                length = size * 10.0 ** rng.uniform(-1.0 - TAIL_LEVELS, 0.0, (len(x), 1))
                tries = x + length * rng.standard_normal(x.shape)
            f_tries = np.where(domain.contains(tries), density(inside(domain, tries)), -1.0)
            better = f_tries >= levels[-1]
            x, f = np.where(better[:, None], tries, x), np.where(better, f_tries, f)
    shares = np.array(levels) * 10.0 ** -np.arange(1.0, TAIL_LEVELS + 1)
    return levels[-1] > SUSPECT * mean and shares[-1] > POLE_SHARE * shares[-1 - TAIL_SPAN]
