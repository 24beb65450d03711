"""Random attacks on the theorems for equations in time (TP, M1, KT) and on comparison with an
obstacle (O1), and how far the bounds are from the truth.

Each case in time draws a box in d = 1 or 2, a horizon, one to three controls with constant
coefficients (a few of them nearly isotropic, where the bounds are sharp) and an error v made of
sines in space with polynomials in time, v(0) = 0. The solution is u = 0, with f^a = s_a ≥ 0 and min
s_a = 0 attained by controls that switch; the answer is -v. Norms are Gauss sums of smooth
integrands. Each case of stopping has the solution ψ + h((x - b(t))⁺)² for an obstacle ψ.

`python benchmarks/time_battery.py [cases] [seed]` prints the distribution of bound/truth.
"""

import functools
import math
import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cordes.certificates.parabolic.choice import PilotInTime
from cordes.certificates.parabolic.operators import SeenInTime
from cordes.certificates.theorems import comparison, stopping
from cordes.certificates.theorems.energy import Local
from cordes.certificates.theorems.energy_in_time import Consequences
from cordes.domains import Box
from cordes.domains.constants import first_eigenvalue

SEED = 8_261
GAUSS, MODES, PILOT = {1: 36, 2: 18}, 3, 160
# Truth and bound are sums of the same rule.
ROUNDING = 1e-9
# Suprema over stretches of time are those of a grid, with what lies between its points.
PLACES, TIMES = {1: 241, 2: 31}, 121

Results = dict[str, tuple[float, float]]


class Error(NamedTuple):
    """v = Σ_k p_k(t) Π_i sin(n_ki π x_i/ℓ_i), p_k(0) = 0: numbers of waves (K, d), coefficients of
    the polynomials (K, P) from the first power on, lengths of the sides."""

    waves: np.ndarray
    powers: np.ndarray
    sides: np.ndarray

    def jet(self, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """v, v_t, ∇v, D²v at points (N, d) and times (N,)."""
        rate = self.waves * np.pi / self.sides
        n = np.arange(1, self.powers.shape[1] + 1)
        p = t[:, None] ** n @ self.powers.T
        slope = (n * t[:, None] ** (n - 1)) @ self.powers.T
        angle = rate * x[:, None, :]
        sine, cosine = np.sin(angle), np.cos(angle)
        d = x.shape[1]
        value, gradient = np.prod(sine, axis=2), np.zeros((*sine.shape[:2], d))
        hessian = np.zeros((*sine.shape[:2], d, d))
        for i in range(d):
            first = sine.copy()
            first[..., i] = rate[:, i] * cosine[..., i]
            gradient[..., i] = np.prod(first, axis=2)
            for j in range(d):
                second = first.copy()
                second[..., j] = rate[:, j] * cosine[..., j]
                if i == j:
                    second[..., i] = -(rate[:, i] ** 2) * sine[..., i]
                hessian[..., i, j] = np.prod(second, axis=2)
        return (
            np.sum(p * value, axis=1),
            np.sum(slope * value, axis=1),
            np.einsum("nk,nki->ni", p, gradient),
            np.einsum("nk,nkij->nij", p, hessian),
        )


class Case(NamedTuple):
    """The equation with its controls, (K, …), the potentials behind f, and the error."""

    error: Error
    length: float
    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    potentials: np.ndarray
    depth: float

    @property
    def domain(self) -> Box:
        return Box(np.zeros(len(self.error.sides)), self.error.sides)

    def defects(self, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """L^a w - f^a - w_t of w = -v, (N, K)."""
        v, v_t, gradient, hessian = self.error.jet(x, t)
        applied = np.einsum("kij,nij->nk", self.A, hessian) + gradient @ self.b.T
        z = np.column_stack([x, t])
        p = np.cos(z @ self.potentials[:, :-1].T + self.potentials[:, -1])
        f = self.depth * (p - np.min(p, axis=1, keepdims=True))
        return -(applied - v[:, None] * self.c) - f + v_t[:, None]


def draw(number: int, seed: int = SEED) -> Case:
    """The case with this number: always the same one."""
    rng = np.random.default_rng([seed, number])
    d = 1 + number % 2
    sides, length = np.exp(rng.uniform(-0.5, 0.5, d)), float(np.exp(rng.uniform(-3, 1)))
    K, sharp = int(rng.integers(1, 4)), rng.random() < 0.4
    waves = rng.integers(1, 4, (MODES, d)).astype(float)
    powers = rng.standard_normal((MODES, 3)) / length ** np.arange(1, 4)
    if sharp:
        waves[1:], powers[1:], K = waves[0], 0.0, 1 if rng.random() < 0.7 else K
        waves = np.ones_like(waves) if rng.random() < 0.5 else waves
    error = Error(waves, powers, sides)
    spread = 0.02 if sharp else rng.uniform(0.02, 0.5)
    size = np.exp(rng.uniform(-1, 1)) * np.exp(spread * rng.uniform(-1, 1, K))
    M = rng.standard_normal((K, d, d))
    M = M + np.swapaxes(M, 1, 2)
    M -= np.trace(M, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    M *= spread / np.maximum(np.linalg.norm(M, axis=(1, 2)), 1e-12)[:, None, None]
    terms = 0.0 if sharp else float(rng.random() < 0.5)
    scale = size * np.sqrt(first_eigenvalue(Box(np.zeros(d), sides)))
    b = terms * rng.uniform(-0.2, 0.2, (K, d)) * scale[:, None]
    c = terms * rng.uniform(-0.1, 0.4, K) * scale**2 / size
    potentials = rng.standard_normal((K, d + 2)) * 3
    depth = float(np.exp(rng.uniform(-3, 2))) if K > 1 else 0.0
    return Case(error, length, size[:, None, None] * (np.eye(d) + M), b, c, potentials, depth)


def rule(case: Case, until: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, times and weights of a Gauss rule from the start to a time."""
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS[len(case.error.sides)])
    nodes, weights = (nodes + 1) / 2, weights / 2
    d = len(case.error.sides)
    z = np.stack(np.meshgrid(*[nodes] * (d + 1), indexing="ij"), axis=-1).reshape(-1, d + 1)
    w = functools.reduce(np.multiply.outer, [weights] * (d + 1)).ravel()
    return z[:, :d] * case.error.sides, z[:, d] * until, w * until * np.prod(case.error.sides)


def energy_results(case: Case) -> Results:
    """TP with the best scheme: contraction is exact, since no coefficient depends on the point."""
    domain, K = case.domain, len(case.A)
    rng = np.random.default_rng(5)
    x = rng.random((PILOT, len(case.error.sides))) * case.error.sides
    t = rng.random(PILOT) * case.length
    local = Local(*(np.broadcast_to(part, (PILOT, *part.shape)) for part in case[2:5]))
    defect = case.defects(x, t)
    eigenvalue, identity = first_eigenvalue(domain), np.eye(domain.dimension)
    seen = SeenInTime(local, defect, np.zeros_like(defect))
    pilot = PilotInTime(seen, t, identity, eigenvalue, case.length, True)
    best = pilot.trials()[0]
    if not best.contraction < 1:
        return {}
    scheme, s = best.scheme, best.contraction
    at = Local(case.A, case.b, case.c).invariants(identity)
    g = scheme.multiplier(at).reshape(K)
    x, t, w = rule(case, case.length)
    scaled = np.max(g * case.defects(x, t), axis=1)
    norm = math.sqrt(w @ (scaled * np.exp(-scheme.shift * t)) ** 2)
    known = Consequences(scheme, s, eigenvalue, case.length, 1.0)
    v, v_t, gradient, hessian = case.error.jet(x, t)
    found = {
        "L2": (known.L2(norm), _norm(w, v)),
        "H1": (known.H1(norm), _norm(w, gradient)),
        "H2": (known.H2(norm), _norm(w, hessian)),
    }
    if scheme.shift == 0:
        laplacian = np.trace(hessian, axis1=1, axis2=2)
        whole = _norm(w, scheme.omega * v_t - laplacian + scheme.lambda_ * v)
        found["energy"] = (known.energy(norm), whole)
        found["lower"] = (whole, norm / (1 + s))
    return found | _at_end(case, known, norm)


def _at_end(case: Case, known: Consequences, norm: float) -> Results:
    sides = case.error.sides
    x, _, w = rule(case, 1.0)
    v, _, gradient, _ = case.error.jet(x, np.full(len(x), case.length))
    slope, square = _norm(w, gradient), _norm(w, v)
    found = {
        "N at end": (
            known.at_end(norm),
            math.hypot(slope, math.sqrt(known.scheme.lambda_) * square),
        ),
        "L2 at end": (known.L2_at_end(norm), square),
    }
    if len(sides) == 1:
        grid = np.linspace(0, sides[0], 400)[:, None]
        top = max(
            float(np.max(np.abs(case.error.jet(grid, np.full(400, time))[0])))
            for time in np.linspace(0, case.length, 40)
        )
        found["largest"] = (known.largest(known.highest(norm), float(sides[0])), top)
    return found


def _norm(w: np.ndarray, values: np.ndarray) -> float:
    return math.sqrt(w @ np.sum(values.reshape(len(values), -1) ** 2, axis=1))


def comparison_results(case: Case, swapped: bool = False) -> Results:
    """M1 on both sides, and KT; `swapped` is a mistake that must be noticed."""
    d = len(case.error.sides)
    axis = [np.linspace(0, side, PLACES[d]) for side in case.error.sides]
    places = np.stack(np.meshgrid(*axis, indexing="ij"), axis=-1).reshape(-1, d)
    times = np.linspace(0, case.length, TIMES)
    residual, errors = [], []
    for time in times:
        at = np.full(len(places), time)
        residual.append(np.max(case.defects(places, at), axis=1))
        errors.append(case.error.jet(places, at)[0])
    F = np.array(residual).reshape(TIMES, *[PLACES[d]] * d)
    margin = sum(float(np.max(np.abs(np.diff(F, axis=k)))) for k in range(d + 1))
    flat = F.reshape(TIMES, -1)
    above, below = np.max(flat, axis=1) + margin, np.max(-flat, axis=1) + margin
    above, below = (np.maximum(np.maximum(r[1:], r[:-1]), 0.0) for r in (above, below))
    profile = comparison.ProfileInTime(times, *((below, above) if swapped else (above, below)))
    path = comparison.course(profile, float(np.min(case.c)), comparison.Comparison(0.0, 0.0))
    v = np.array(errors)
    found = {"M1 above": (path.at_times.above.max(), float(np.max(v)))}
    found["M1 below"] = (path.at_times.below.max(), float(np.max(-v)))
    if np.min(case.c) >= 0:
        x, t, w = rule(case, case.length)
        size = (w @ np.abs(np.max(case.defects(x, t), axis=1)) ** (d + 1)) ** (1 / (d + 1))
        least = float(np.min(np.linalg.det(case.A))) ** (1 / (d + 1))
        constant = comparison.krylov_tso_constant(case.domain)
        found["KT"] = (constant * size / least, float(np.max(np.abs(v))))
    return found


def stopping_results(number: int, seed: int = SEED, eta: float | None = None) -> Results:
    """O1 in one dimension and time, 1 to 3 controls; with `eta` this one and not the best."""
    rng = np.random.default_rng([seed, number, 1])
    x, t = (part.ravel() for part in np.meshgrid(np.linspace(-1, 1, 161), np.linspace(0, 1, 81)))
    K, h, c0 = int(rng.integers(1, 4)), rng.uniform(0.2, 2), rng.choice([0.0, 0.5, -0.5])
    A, b, c = rng.uniform(0, 2, K), rng.uniform(-1, 1, K), c0 + rng.uniform(0, 1, K)
    middle, speed = rng.uniform(-0.4, 0.4), rng.uniform(-0.4, 0.4)
    psi, psi_x, psi_xx = 0.5 - x**2, -2 * x, -2.0
    beyond = np.maximum(x - middle - speed * t, 0.0)
    u = psi + h * beyond**2
    u_x, u_t = psi_x + 2 * h * beyond, -2 * h * speed * beyond
    u_xx = psi_xx + 2 * h * (beyond > 0)
    k = rng.uniform(0, 1, (K, 1)) * (1 + np.cos(rng.uniform(0, 6, (K, 1)) + 3 * x * t))
    k = k - np.min(k, axis=0) + np.where(beyond > 0, 0.0, rng.uniform(0, 2))
    Lu = A[:, None] * u_xx + b[:, None] * u_x - c[:, None] * u
    f = Lu - u_t + k
    size, m, q = 10.0 ** rng.uniform(-8, 0), rng.integers(1, 4), rng.uniform(-3, 3)
    wave = np.sin(m * np.pi * (x + 1) / 2 + q * t)
    v = size * t * (1 - x**2) * wave
    slope = (
        size
        * t
        * (-2 * x * wave + (1 - x**2) * m * np.pi / 2 * np.cos(m * np.pi * (x + 1) / 2 + q * t))
    )
    curve = m * np.pi / 2
    v_xx = (
        size
        * t
        * (
            -2 * wave
            - 4 * x * curve * np.cos(m * np.pi * (x + 1) / 2 + q * t)
            - (1 - x**2) * curve**2 * wave
        )
    )
    v_t = v / np.maximum(t, 1e-300) + size * t * (1 - x**2) * q * np.cos(
        m * np.pi * (x + 1) / 2 + q * t
    )
    v_t = np.where(t > 0, v_t, size * (1 - x**2) * wave)
    Lw = Lu - A[:, None] * v_xx - b[:, None] * slope + c[:, None] * v
    rho, w = np.max(Lw - f, axis=0) - (u_t - v_t), u - v
    sides = (
        stopping.ComparisonSide(
            np.maximum(rho, 0), np.full(len(x), 1e300), max(float(np.max(psi - w)), 0.0)
        ),
        stopping.ComparisonSide(np.maximum(-rho, 0), w - psi, 0.0),
    )
    if eta is not None:
        keep = sides[1].distance > eta
        sides = (
            sides[0],
            stopping.ComparisonSide(sides[1].residual * keep, np.full(len(x), 1e300), eta),
        )
    # One supremum for all times: nothing lies between stretches.
    found = stopping.in_time(*sides, t, np.array([0.0, 1.0]), float(np.min(c)))
    return {
        "O1 above": (float(found.bounds.above), float(np.max(v))),
        "O1 below": (float(found.bounds.below), float(np.max(-v))),
    }


def results_of(number: int, seed: int = SEED) -> Results:
    case = draw(number, seed)
    return energy_results(case) | comparison_results(case) | stopping_results(number, seed)


def run(numbers: Iterable[int], seed: int = SEED) -> list[tuple[int, Results]]:
    return [(number, results_of(number, seed)) for number in numbers]


def violations(results: list[tuple[int, Results]]) -> list[tuple[int, str, float, float]]:
    """Bounds below the truth: the case, which, and both."""
    return [
        (number, name, bound, truth)
        for number, found in results
        for name, (bound, truth) in found.items()
        if not bound >= truth * (1 - ROUNDING)
    ]


def smallest_ratios(results: list[tuple[int, Results]]) -> dict[str, tuple[float, float, int]]:
    """Of each bound: the smallest and the median ratio to the truth, and how many there are."""
    ratios: dict[str, list[float]] = {}
    for _, found in results:
        for name, (bound, truth) in found.items():
            if truth > 0:
                ratios.setdefault(name, []).append(bound / truth)
    return {name: (min(all_), float(np.median(all_)), len(all_)) for name, all_ in ratios.items()}


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else SEED
    results = run(range(cases), seed)
    for name, (least, median, count) in smallest_ratios(results).items():
        print(f"{name:10} {count:6d} cases, smallest bound/truth {least:.6g}, median {median:.4g}")
    print(f"violations: {violations(results)}")


if __name__ == "__main__":
    main()
