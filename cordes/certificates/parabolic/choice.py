"""Which parameters the energy theorem gets: found from an answer at pilot points, which serve for
nothing else. Whatever the search finds, the weights are made small enough exactly, and the
contraction is a supremum over all of space and time."""

import math
from typing import NamedTuple

import numpy as np

from cordes.certificates.parabolic.operators import SeenInTime
from cordes.certificates.theorems.energy import (
    Invariants,
    Local,
    bounded_exponential,
    nelder_mead,
)
from cordes.certificates.theorems.energy_in_time import (
    Consequences,
    SchemeInTime,
    normalised_in_time,
    time_root,
)
from cordes.problems.evolution import best_rate

EVALUATIONS, TOLERANCE, STEP = 400, 1e-3, 0.6
# A contraction that counts as none.
NEARLY_ONE = 0.999
# The most pairs of points and controls that a search looks at.
MOST_PAIRS = 4000
# Exponents of the factor that grows in time.
MOST_GROWTH = 60.0
# Prices of what is hard to bound in cells.
STEEP, NEAR = 0.01, 0.5


class TrialInTime(NamedTuple):
    """A scheme in the coordinates of M, with the bound of ‖v‖ that it promises."""

    scheme: SchemeInTime
    matrix: np.ndarray
    eigenvalue: float
    contraction: float
    promise: float


class PilotInTime:
    """The operators at pilot points in the coordinates of M, and what they give of the answer."""

    def __init__(
        self,
        seen: SeenInTime,
        times: np.ndarray,
        matrix: np.ndarray,
        eigenvalue: float,
        length: float,
        still: bool,
    ):
        """`times` are those of the points since the start of the slab."""
        count = seen.defect.shape[1]
        step = max(1, len(times) * count // MOST_PAIRS)
        self.defect, self.times = seen.defect[::step], times[::step]
        flat = Local(*(part[::step].reshape(-1, *part.shape[2:]) for part in seen.local))
        self.at: Invariants = flat.invariants(matrix)
        # The worst pairs of all points decide about the contraction.
        whole = Local(*(part.reshape(-1, *part.shape[2:]) for part in seen.local))
        at = whole.invariants(matrix)
        ratios = (at.deviation / at.trace, at.drift / at.trace, at.trace, -at.trace)
        ratios = (*ratios, at.reaction, -at.reaction)
        worst = np.unique(np.concatenate([np.argsort(-each)[:20] for each in ratios]))
        self.worst = Invariants(at.dimension, *(part[worst] for part in at[1:]))
        self.matrix, self.eigenvalue, self.length, self.still = matrix, eigenvalue, length, still
        self.drift = bool(np.any(at.drift > 0))
        self.reaction = bool(np.any(at.reaction != 0))
        # Of the matrices after the change of variables.
        self.rate = best_rate(whole.whitened(matrix).A)

    def contraction(self, scheme: SchemeInTime) -> float:
        return max(float(np.max(scheme.defects(part))) for part in (self.at, self.worst))

    def norm(self, scheme: SchemeInTime) -> float:
        """‖F_g‖ up to the volume."""
        g = scheme.multiplier(self.at).reshape(self.defect.shape)
        size = np.max(g * self.defect, axis=1) * np.exp(-scheme.shift * self.times)
        return math.sqrt(float(np.mean(size**2)))

    def promise(self, scheme: SchemeInTime, contraction: float) -> float:
        if not contraction < 1:
            return math.inf
        smallest = float(np.linalg.eigvalsh(self.matrix)[0])
        start = 0.0 if self.still else 1e-300
        known = Consequences(scheme, contraction, self.eigenvalue, self.length, smallest, start)
        return known.L2(max(self.norm(scheme), 1e-290))

    def scheme(self, theta: np.ndarray, constant: bool) -> SchemeInTime:
        """From ω, β, α₂, α₁, α₀, λ as logarithms, the share of α_t in ω², and μ."""
        omega, beta, second, first, zeroth, lambda_ = (
            bounded_exponential(value) for value in theta[:6]
        )
        d = self.at.dimension
        if d == 1:
            second = 0.0
        if not self.drift:
            first = 0.0
        share = 0.0 if constant else 1 / (1 + bounded_exponential(-theta[6]))
        # Without drift and reaction nothing is gained from them.
        plain = not (self.drift or self.reaction)
        shift = 0.0 if plain else float(np.clip(theta[7], -MOST_GROWTH, MOST_GROWTH)) / self.length
        if plain:
            lambda_ = zeroth = 0.0
        alpha = share * omega**2 * (1 - 1e-12)
        gain = time_root(self.length, self.still)
        weights = normalised_in_time(
            (beta, second, first, zeroth), omega, lambda_, alpha, self.eigenvalue, d, gain
        )
        return SchemeInTime(omega, lambda_, alpha, weights, shift)

    def starts(self) -> list[tuple[np.ndarray, bool]]:
        """Logarithms near the choice of Smears and Süli, near a small λ, and with a constant
        multiplier."""
        d, omega = self.at.dimension, 1 / self.rate
        reaction = float(np.median(np.abs(self.at.reaction)))
        drift = float(np.median(self.at.drift)) ** 2 * omega
        # Where constants fulfil the conditions the time alone gives a scale.
        first = self.eigenvalue or omega / self.length
        guess = max(omega * reaction + omega * drift, 1e-3 * first)
        small = 0.1 * (first + guess) ** 2
        middle = 2 / (float(np.max(self.worst.trace)) / d + float(np.min(self.worst.trace)) / d)
        # As the shift grows, drift counts less and less, and the trace twice.
        fast = float(np.max(self.worst.drift**2 / self.worst.trace)) + max(
            -float(np.min(self.worst.reaction)), 0.0
        )
        shifted = [
            (
                np.array(
                    [
                        *np.log([middle, 1 / d, 1.0, 2 * middle * mu, (middle * mu) ** 2]),
                        math.log(middle * mu),
                        0.0,
                        mu * self.length,
                    ]
                ),
                constant,
            )
            for mu in (2 * fast, 10 * fast)
            for constant in (False, True)
            if self.drift or self.reaction
        ]
        return [
            *shifted,
            (np.array([*np.log([omega, 1 / d, 1.0, 2 * guess, guess**2, guess]), 6.0, 0.0]), False),
            (
                np.array([*np.log([omega, 0.1, 1.0, 0.3 * first, small, guess]), 1.0, 0.0]),
                False,
            ),
            (np.array([*np.log([middle, 1 / d, 1.0, 2 * guess, guess**2, guess]), 0.0, 0.0]), True),
        ]

    def trials(self) -> list[TrialInTime]:
        """The best schemes from all starts, the most promising first."""
        found = []
        for start, constant in self.starts():

            def objective(theta: np.ndarray, constant: bool = constant) -> float:
                scheme = self.scheme(theta, constant)
                s = self.contraction(scheme)
                if not s < NEARLY_ONE:
                    return 1e3 + min(s, 1e3)
                return math.log(max(self.promise(scheme, s), 1e-300)) + steepness(scheme, s)

            best = nelder_mead(objective, start, STEP, EVALUATIONS, TOLERANCE)
            # The search may start from the best there is: a contraction of zero.
            theta = min((start, best), key=objective)
            scheme = self.scheme(theta, constant)
            s = self.contraction(scheme)
            found.append(
                TrialInTime(scheme, self.matrix, self.eigenvalue, s, self.promise(scheme, s))
            )
        return sorted(found, key=lambda trial: (trial.promise, trial.contraction))


def steepness(scheme: SchemeInTime, contraction: float) -> float:
    """What a search pays, as a logarithm, for a Q that is hard to bound in cells: near one, or with
    small weights, which make it steep."""
    shares = (scheme.alpha / scheme.omega**2, scheme.weights[0])
    small = sum(STEEP / share for share in shares if share > 0)
    return small - NEAR * math.log(1 - contraction)
