"""Pointwise constants: against integrals of Green's function, slow minimisation, extremal
functions, and random attacks on the inequalities."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.special
from numpy.polynomial import polynomial
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

from cordes.certificates.theorems.pointwise import (
    drift_factor,
    exponential_barrier,
    exponential_barrier_constant,
    green_constant,
)
from cordes.domains import Ball, Box, Polygon
from cordes.domains.constants import circumscribed
from cordes.domains.polar import largest_polar_factor, polar_factor
from cordes.errors import OptionError

# Domains with the coefficients of a polynomial that is positive inside and zero on the boundary.
PARABOLA = np.array([1.0, 0.0, -1.0])
DISK = np.zeros((3, 3))
DISK[0, 0], DISK[2, 0], DISK[0, 2] = 1, -1, -1
SPHERE = np.zeros((3, 3, 3))
SPHERE[0, 0, 0], SPHERE[2, 0, 0], SPHERE[0, 2, 0], SPHERE[0, 0, 2] = 1, -1, -1, -1
TRIANGLE = np.zeros((3, 3))
TRIANGLE[1, 1], TRIANGLE[2, 1], TRIANGLE[1, 2] = 1, -1, -1
SHAPES = {
    "interval": (Box([-1], [1]), PARABOLA),
    "square": (Box([-1, -1], [1, 1]), np.multiply.outer(PARABOLA, PARABOLA)),
    "triangle": (Polygon([[0, 0], [1, 0], [0, 1]]), TRIANGLE),
    "disk": (Ball([0, 0], 1), DISK),
    "cube": (
        Box([-1] * 3, [1] * 3),
        np.multiply.outer(np.multiply.outer(PARABOLA, PARABOLA), PARABOLA),
    ),
    "ball": (Ball([0] * 3, 1), SPHERE),
}
BOXES = ("interval", "square", "cube")


def evaluate(coefficients, points):
    return {1: polynomial.polyval, 2: polynomial.polyval2d, 3: polynomial.polyval3d}[
        points.shape[1]
    ](*points.T, coefficients)


class Attack:
    """A random v = D · polynomial on a domain with its gradient and Hessian at the points of a
    Gauss rule."""

    def __init__(self, name, seed, degree=4):
        self.domain, distance = SHAPES[name]
        self.generator = np.random.default_rng(seed)
        d = self.dimension = self.domain.dimension
        self.points, self.weights = self.domain.quadrature({1: 60, 2: 24, 3: 10}[d])
        coefficients = self.generator.standard_normal((degree + 1,) * d) * 0.7 ** np.sum(
            np.indices((degree + 1,) * d), axis=0
        )
        coefficients[(0,) * d] = 2 * self.generator.standard_normal()
        v = scipy.signal.convolve(distance, coefficients, method="direct")
        slopes = [polynomial.polyder(v, axis=i) for i in range(d)]
        self.value = evaluate(v, self.points)
        self.gradient = np.stack([evaluate(slope, self.points) for slope in slopes], axis=1)
        self.hessian = np.stack(
            [
                np.stack(
                    [evaluate(polynomial.polyder(slope, axis=j), self.points) for j in range(d)],
                    axis=1,
                )
                for slope in slopes
            ],
            axis=1,
        )

    def norm(self, values, power):
        return float(self.weights @ np.abs(values) ** power) ** (1 / power)

    def matrices(self, spread):
        """Random A at each point, or one that makes A:D²v small: its eigenvectors are those of D²v,
        weighted against the large eigenvalues."""
        if self.generator.random() < 0.5:
            factor = np.eye(self.dimension) + spread * self.generator.standard_normal(
                (len(self.points), self.dimension, self.dimension)
            )
            return factor @ np.swapaxes(factor, 1, 2) + 0.05 * np.eye(self.dimension)
        values, vectors = np.linalg.eigh(self.hessian)
        return (vectors / (np.abs(values) + 0.05)[:, None]) @ np.swapaxes(vectors, 1, 2)

    def matrix(self):
        factor = np.eye(self.dimension) + 0.7 * self.generator.standard_normal(
            (self.dimension, self.dimension)
        )
        return factor @ factor.T + 0.05 * np.eye(self.dimension)


# Green's function


def green(*arguments) -> float:
    constant = green_constant(*arguments)
    assert constant is not None
    return constant


def test_green_constants_of_the_theory():
    assert green(2, 1.0) == pytest.approx(0.112540, abs=1e-6)
    assert green(2, 9.0) == pytest.approx(3 / (2 * math.sqrt(2) * math.pi), rel=3e-12)
    assert green(3, 1.0) == pytest.approx(0.128278, abs=1e-6)
    assert green_constant(4, 1.0) is None
    assert green(2, 1.0) > 1 / (2 * math.sqrt(2) * math.pi)


@pytest.mark.parametrize("k", [0.0, 1e-3, 0.05, 0.117, 0.118, 1.0, 8.0, 3000.0])
def test_green_constant_of_the_interval_is_exact(k):
    """M = m: Green's function of −mv'' + λv, λ = mk², integrated at the midpoint, where it is
    largest."""
    length, m = 1.7, 0.6

    def square(x):
        def kernel(y):
            left, right = min(x, y), length - max(x, y)
            if k == 0:
                return left * right / (m * length)
            # sinh(ka) sinh(kb) / sinh(kℓ) without overflow.
            return (
                math.exp(-k * abs(x - y))
                * math.expm1(-2 * k * left)
                * math.expm1(-2 * k * right)
                / (-2 * m * k * math.expm1(-2 * k * length))
            )

        reach = min(length / 2, 40 / k) if k else length / 2
        return sum(
            quad(lambda y: kernel(y) ** 2, a, b, epsabs=0, epsrel=1e-12)[0]
            for a, b in ((x - reach, x), (x, x + reach))
        )

    constant = green(1, length, np.array([[m]]), m * k**2)
    assert constant == pytest.approx(math.sqrt(square(length / 2)), rel=1e-9)
    assert constant > math.sqrt(square(length / 2)) * (1 - 1e-11)


def test_green_constant_of_the_ball_is_attained_at_its_centre():
    disk = quad(
        lambda r: 2 * math.pi * r * (math.log(1 / r) / (2 * math.pi)) ** 2,
        0,
        1,
        epsabs=0,
        epsrel=1e-11,
    )[0]
    assert green(2, math.pi) == pytest.approx(math.sqrt(disk), rel=1e-9)
    ball = quad(
        lambda r: 4 * math.pi * r**2 * ((1 / r - 1) / (4 * math.pi)) ** 2,
        0,
        1,
        epsabs=0,
        epsrel=1e-11,
    )[0]
    assert green(3, 4 / 3 * math.pi) == pytest.approx(math.sqrt(ball), rel=1e-9)


@pytest.mark.parametrize("k", [0.1, 1.0, 4.0, 20.0])
def test_green_constants_with_reaction(k):
    """Above Green's function of −Δ + k² on the unit ball at its centre, and near it for small and
    for large k."""

    def disk(r):
        inner, outer = scipy.special.i0(k * r), scipy.special.k0(k * r)
        return (
            2
            * math.pi
            * r
            * ((outer - inner * scipy.special.k0(k) / scipy.special.i0(k)) / (2 * math.pi)) ** 2
        )

    truths = [
        math.sqrt(quad(disk, 0, 1, epsabs=0, epsrel=1e-10)[0]),
        math.sqrt(
            quad(
                lambda r: (
                    4 * math.pi * (math.sinh(k * (1 - r)) / (4 * math.pi * math.sinh(k))) ** 2
                ),
                0,
                1,
            )[0]
        ),
    ]
    for dimension, volume, truth in zip((2, 3), (math.pi, 4 / 3 * math.pi), truths, strict=True):
        constant = green(dimension, volume, None, k**2)
        assert truth <= constant <= truth * (1.4 if 0.5 < k < 10 else 1.01)
        assert constant <= green(dimension, volume)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_green_constant_under_a_linear_map(dimension):
    """x = Fy carries −Δ + λ to −M:D² + λ with M = FFᵀ, volumes and squared norms by det F."""
    factor = np.random.default_rng(0).standard_normal((dimension, dimension)) + np.eye(dimension)
    stretch = abs(np.linalg.det(factor))
    for lambda_ in (0.0, 0.5, 100.0):
        expected = green(dimension, 2.0, None, lambda_) / math.sqrt(stretch)
        assert green(dimension, 2.0 * stretch, factor @ factor.T, lambda_) == pytest.approx(
            expected, rel=1e-10
        )


@pytest.mark.parametrize("name", SHAPES)
def test_green_bound_under_attack(name):
    for seed in range(25):
        attack = Attack(name, seed)
        for matrix, lambda_ in itertools.product((None, attack.matrix()), (0.0, 3.0, 300.0)):
            form = np.eye(attack.dimension) if matrix is None else matrix
            residual = np.einsum("ij,nij->n", form, attack.hessian) - lambda_ * attack.value
            bound = green(attack.dimension, attack.domain.volume, matrix, lambda_) * attack.norm(
                residual, 2
            )
            assert np.max(np.abs(attack.value)) <= bound


# The maximum principle of Aleksandrov, Bakelman and Pucci


@pytest.mark.parametrize("name", SHAPES)
def test_polar_bound_under_attack(name):
    for seed in range(40):
        attack = Attack(name, seed)
        A = attack.matrices(0.5)
        c = attack.generator.random(len(attack.points)) * attack.generator.choice([0.0, 5.0])
        residual = np.einsum("nij,nij->n", A, attack.hessian) - c * attack.value
        scaled = residual / np.linalg.det(A) ** (1 / attack.dimension)
        factors = polar_factor(attack.domain, attack.points)
        assert np.all(
            attack.value <= factors * attack.norm(np.minimum(scaled, 0), attack.dimension)
        )
        assert np.all(
            -attack.value <= factors * attack.norm(np.maximum(scaled, 0), attack.dimension)
        )
        assert np.all(factors <= largest_polar_factor(attack.domain) * (1 + 1e-14))


@pytest.mark.parametrize("name", ["interval", "square", "disk", "ball"])
def test_drift_bound_under_attack(name):
    """Random drift, and drift along ∇v that cancels most of A:D²v."""
    for seed in range(40):
        attack = Attack(name, seed)
        A = attack.matrices(0.5)
        second = np.einsum("nij,nij->n", A, attack.hessian)
        b = attack.generator.standard_normal(attack.gradient.shape) * attack.generator.choice(
            [1.0, 5.0]
        )
        if seed % 2:
            squares = np.sum(attack.gradient**2, axis=1)
            b = (-0.9 * second / (squares + 0.1 * np.mean(squares)))[:, None] * attack.gradient
        residual = second + np.sum(b * attack.gradient, axis=1)
        scale = np.linalg.det(A) ** (1 / attack.dimension)
        factor = drift_factor(
            attack.dimension, attack.norm(np.linalg.norm(b, axis=1) / scale, attack.dimension)
        )
        bound = circumscribed(attack.domain)[1] * factor
        assert np.max(attack.value) <= bound * attack.norm(
            np.minimum(residual, 0) / scale, attack.dimension
        )
        assert np.max(-attack.value) <= bound * attack.norm(
            np.maximum(residual, 0) / scale, attack.dimension
        )


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("mu", [0.05, 0.5, 5.0])
def test_drift_factor_is_sharp(dimension, mu):
    """Rounded cones v with A proportional to the inverse of D²v and b parallel to ∇v, chosen so
    that every inequality of the proof is an equality."""
    ratios = []
    for rounding in (1e-2, 1e-3):
        # Points that are dense near the tip, where the curvature is.
        t, weights = np.polynomial.legendre.leggauss(400)
        s = (t + 1) / 2 * math.log1p(1 / rounding)
        r, weights = (
            rounding * np.expm1(s),
            weights / 2 * math.log1p(1 / rounding) * rounding * np.exp(s),
        )
        root = np.sqrt(r**2 + rounding**2)
        top = math.sqrt(1 + rounding**2) - rounding
        slope, curvature = r / root, rounding**2 / root**3
        d = dimension
        # −A:D²v = d det(−D²v)^{1/d} for det A = 1; D²v has the eigenvalue v'' once and v'/r d − 1
        # times.
        second = d * (curvature * (slope / r) ** (d - 1)) ** (1 / d)
        measure = (
            weights
            * r ** (d - 1)
            * (2.0 if d == 1 else d * math.pi ** (d / 2) / math.gamma(d / 2 + 1))
        )
        # The part of it that is r, the rest being |b||∇v|; in one dimension, where d' is infinite,
        # all or nothing.
        share = (
            np.where(slope <= mu, 1.0, 0.0) if d == 1 else 1 / (1 + (slope / mu) ** (d / (d - 1)))
        )
        residual, drift = second * share, second * (1 - share) / slope
        norms = [float(measure @ values**d) ** (1 / d) for values in (residual, drift)]
        ratios.append(drift_factor(d, norms[1]) * norms[0] / top)
    assert 1 <= ratios[1] < ratios[0]
    assert ratios[1] < 1.03


def slow_drift_factor(d, B):
    """The infimum over ν as it stands, with the integral by quadrature and its inverse by a
    root."""
    volume, power = math.pi ** (d / 2) / math.gamma(d / 2 + 1), d / (d - 1)

    def integral(T):
        return quad(
            lambda t: t ** (d - 1) / (1 + t**power) ** (d - 1), 0, T, epsabs=0, epsrel=1e-11
        )[0]

    def factor(logarithm):
        nu = math.exp(logarithm)
        root: Any = brentq(
            lambda T: integral(T) - (nu**d + B**d) / (d ** (d + 1) * volume), 1e-9, 1e6, xtol=1e-12
        )
        return root / nu

    return minimize_scalar(factor, bounds=(-2, 4), method="bounded", options={"xatol": 1e-7}).fun


@pytest.mark.parametrize(("dimension", "drift"), [(2, 2.0), (3, 0.5), (3, 6.0), (4, 3.0), (6, 5.0)])
def test_drift_factor_is_the_infimum(dimension, drift):
    assert drift_factor(dimension, drift) == pytest.approx(
        slow_drift_factor(dimension, drift), rel=1e-9
    )


def test_drift_factor_in_two_dimensions():
    for drift in (1e-6, 1e-3, 0.1, 1.0, 5.0, 20.0):
        q = -scipy.special.lambertw(-math.exp(-1 - drift**2 / (4 * math.pi))).real
        assert drift_factor(2, drift) == pytest.approx(
            q**-0.5 / (2 * math.sqrt(math.pi)), rel=1e-7 if drift < 0.01 else 1e-10
        )
    # Without cancellation for small drift: q = 1 − δ with δ²/2 + δ³/3 + … = β.
    assert drift_factor(2, 1e-6) == pytest.approx(
        (1 + 1e-6 / math.sqrt(8 * math.pi)) / (2 * math.sqrt(math.pi)), rel=3e-12
    )


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 50, 200])
def test_drift_factor_at_the_ends(dimension):
    """Without drift 1/(d ω_d^{1/d}); it grows with the drift, and is infinite where it
    overflows."""
    logarithm = dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    start = math.exp(-logarithm / dimension) / dimension
    assert drift_factor(dimension, 0.0) == pytest.approx(start, rel=3e-12)
    assert drift_factor(dimension, 0.0) > start
    drifts = [0.0, 1e-300, 1e-9, 1e-3, 0.1, 1.0, 3.0, 10.0, 20.0, 1e5, 1e300, math.inf]
    factors = [drift_factor(dimension, drift) for drift in drifts]
    assert factors == sorted(factors)
    assert drift_factor(dimension, 1e-3) > drift_factor(dimension, 0.0)
    assert math.isfinite(drift_factor(dimension, 10.0))
    assert drift_factor(dimension, 1e5) == math.inf


def test_drift_factor_in_high_dimension_solves_its_equation():
    """The first terms of Σ_{k≥d} Wᵏ/k, more of them than the function itself takes."""
    for dimension, drift in ((20, 5.0), (20, 20.0), (100, 30.0), (200, 40.0)):
        W = 1 - (drift_factor(dimension, drift) / drift_factor(dimension, 0.0)) ** (
            -dimension / (dimension - 1)
        )
        terms = np.arange(dimension, 20000)
        volume = math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1)
        beta = (drift / dimension) ** dimension / ((dimension - 1) * volume)
        assert float(np.sum(W**terms / terms)) == pytest.approx(beta, rel=1e-7)


# The barrier


@pytest.mark.parametrize("drift", [0.0, 1e-9, 0.3, 1.9, 2.1, 30.0])
def test_barrier_solves_its_equation(drift):
    width, smallest = 1.6, 0.8
    barrier = exponential_barrier(width, smallest, drift)
    s = np.linspace(-width / 2, width / 2, 401)
    w, first, second = barrier(s)
    assert np.allclose(
        smallest * second + drift * np.abs(first), -1, rtol=0, atol=1e-13 * np.max(np.abs(second))
    )
    assert np.all(w >= 0)
    assert w[0] == w[-1] == pytest.approx(0, abs=2e-12 * w[200])
    assert np.array_equal(w, barrier(-s)[0])
    # Slopes by central differences, curvature from slopes.
    step = 1e-5
    inside = s[(np.abs(s) < width / 2 - step) & (np.abs(s) > 2 * step)]
    ahead, here, behind = barrier(inside + step), barrier(inside), barrier(inside - step)
    assert np.allclose((ahead[0] - behind[0]) / (2 * step), here[1], rtol=1e-6, atol=1e-10 * w[200])
    assert np.allclose((ahead[1] - behind[1]) / (2 * step), here[2], rtol=1e-6)
    assert exponential_barrier_constant(width, smallest, drift) == pytest.approx(w[200], rel=1e-14)


def test_barrier_constant():
    assert exponential_barrier_constant(2.0, 3.0, 0.0) == pytest.approx(4 / 24, rel=3e-12)
    for drift in (1.0, 2.999, 3.001, 10.0, 200.0):
        kappa = drift * 2.0 / 6.0
        assert exponential_barrier_constant(2.0, 3.0, drift) == pytest.approx(
            3 / drift**2 * (math.exp(kappa) - 1 - kappa), rel=1e-11
        )
    # The first two terms of the series, exact where the formula above cancels.
    assert exponential_barrier_constant(2.0, 3.0, 1e-5) == pytest.approx(
        1 / 3 * (1 / 2 + 1e-5 / 18), rel=3e-12
    )
    assert exponential_barrier_constant(2.0, 1e-4, 1.0) == math.inf
    w, first, second = exponential_barrier(2.0, 1e-4, 1.0)(np.array([0.0, 0.5]))
    assert np.all(np.isinf(w))
    assert np.all(first == 0)
    assert np.all(second == -1e4)


@pytest.mark.parametrize("name", BOXES)
def test_barrier_bound_under_attack(name):
    """|v| ≤ w sup |r|/(−Lw) with the barrier of the first coordinate; −Lw is at least 1."""
    for seed in range(30):
        attack = Attack(name, seed)
        A = attack.matrices(0.5)
        b = attack.generator.standard_normal(attack.gradient.shape) * attack.generator.choice(
            [0.0, 1.0, 5.0]
        )
        if seed % 2:
            b = np.sign(attack.points) * np.abs(b)
        c = attack.generator.random(len(attack.points)) * attack.generator.choice([0.0, 5.0])
        residual = (
            np.einsum("nij,nij->n", A, attack.hessian)
            + np.sum(b * attack.gradient, axis=1)
            - c * attack.value
        )
        smallest, drift = float(np.min(A[:, 0, 0])), float(np.max(np.abs(b[:, 0])))
        w, first, second = exponential_barrier(2.0, smallest, drift)(attack.points[:, 0])
        lifted = -(A[:, 0, 0] * second + b[:, 0] * first - c * w)
        assert np.all(lifted >= 1 - 1e-12)
        bound = w * np.max(np.abs(residual) / lifted)
        assert np.all(np.abs(attack.value) <= bound)
        assert np.max(bound) <= exponential_barrier_constant(2.0, smallest, drift) * np.max(
            np.abs(residual)
        ) * (1 + 1e-11)


def test_bad_numbers_are_refused():
    with pytest.raises(OptionError, match="λ ≥ 0"):
        green(2, 1.0, None, -1.0)
    with pytest.raises(OptionError, match="volume > 0"):
        green(2, 0.0)
    with pytest.raises(OptionError, match="norm of the drift"):
        drift_factor(2, math.nan)
    with pytest.raises(OptionError, match="ellipticity > 0"):
        exponential_barrier(1.0, 0.0, 1.0)
