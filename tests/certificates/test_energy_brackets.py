"""The brackets of the energy theorems against functions whose norms are known."""

import itertools
import math

import numpy as np
import pytest
from random_coefficients import random_matrix

from cordes.certificates.theorems.energy import (
    Local,
    Tightened,
    TraceSplit,
    Triangle,
    Weighted,
    normalised,
)
from cordes.domains import Box


class Sines:
    """Σ c_k Π sin(k_i π (x_i - l_i)/ℓ_i) on a box, with all derivatives at the points of a rule
    that integrates their products exactly, up to rounding."""

    def __init__(self, box: Box, frequencies: np.ndarray, sizes: np.ndarray):
        self.x, self.weight = box.quadrature(2 * int(np.max(frequencies)) + 14)
        d = box.dimension
        waves = np.pi * frequencies / box.widths
        angles = (self.x - box.lower)[:, None, :] * waves
        sines, cosines = np.sin(angles), np.cos(angles)

        def product(orders: dict[int, int]) -> np.ndarray:
            """Σ c_k ∂ v_k, with the order of the derivative along each axis."""
            factors = np.ones(angles.shape[:2])
            for i in range(d):
                factors = (
                    factors
                    * {
                        0: sines[..., i],
                        1: waves[:, i] * cosines[..., i],
                        2: -(waves[:, i] ** 2) * sines[..., i],
                    }[orders.get(i, 0)]
                )
            return factors @ sizes

        self.value = product({})
        self.gradient = np.stack([product({i: 1}) for i in range(d)], axis=1)
        self.hessian = np.empty((len(self.x), d, d))
        for i, j in itertools.product(range(d), repeat=2):
            self.hessian[:, i, j] = product({i: 2} if i == j else {i: 1, j: 1})

    @property
    def laplacian(self) -> np.ndarray:
        return np.trace(self.hessian, axis1=1, axis2=2)

    def norm(self, values: np.ndarray) -> float:
        return math.sqrt(self.weight @ np.sum(values.reshape(len(values), -1) ** 2, axis=1))

    def applied(self, local: Local) -> np.ndarray:
        """A:D²v + b·∇v - cv."""
        A, b, c = local
        return (
            np.sum(A * self.hessian, axis=(1, 2))
            + np.sum(b * self.gradient, axis=1)
            - c * self.value
        )


def random_sines(rng: np.random.Generator, d: int) -> tuple[Box, Sines]:
    lower = rng.uniform(-1, 0, d)
    box = Box(lower, lower + rng.uniform(0.5, 2, d))
    count = int(rng.integers(1, 5))
    return box, Sines(box, rng.integers(1, 4, (count, d)), rng.standard_normal(count))


def box_eigenvalue(box: Box, matrix: np.ndarray) -> float:
    """λ₁(M) at least: the exact value for diagonal M, else λ_min(M) λ₁."""
    diagonal = (
        np.diag(matrix)
        if np.array_equal(matrix, np.diag(np.diag(matrix)))
        else np.full(len(matrix), np.linalg.eigvalsh(matrix)[0])
    )
    return math.pi**2 * float(np.sum(diagonal / box.widths**2))


def bracket(
    scheme, local: Local, matrix: np.ndarray, sines: Sines
) -> tuple[float, float, float] | None:
    """Lower bound, ‖M:D²v - λv‖ and upper bound; None where the theorem does not hold."""
    at = local.invariants(matrix)
    contraction = float(np.sum(np.max(scheme.defects(at), axis=0)))
    if contraction >= 1:
        return None
    norm = sines.norm(scheme.multiplier(at) * sines.applied(local))
    energy = sines.norm(np.sum(matrix * sines.hessian, axis=(1, 2)) - scheme.lambda_ * sines.value)
    return norm / (1 + contraction), energy, norm / (1 - contraction)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_brackets_hold_for_sine_series(d):
    """All theorems, constant and variable coefficients, with and without M; the closest bracket is
    nearly attained."""
    rng = np.random.default_rng([10, d])
    nearest, tried = np.inf, 0
    for _ in range(25):
        box, sines = random_sines(rng, d)
        n = len(sines.x)
        A = random_matrix(rng, d, 0.5)
        variable = (
            A
            * np.exp(rng.uniform(0, 0.5) * np.sin(sines.x @ rng.standard_normal(d)))[:, None, None]
        )
        matrix = np.diag(np.exp(rng.uniform(-0.3, 0.3, d))) if rng.random() < 0.5 else np.eye(d)
        eigenvalue = box_eigenvalue(box, matrix)
        drift = (
            0.4
            * math.sqrt(eigenvalue)
            * rng.random()
            * np.cos(sines.x + rng.uniform(0, 6, d))
            / math.sqrt(d)
        )
        reaction = rng.uniform(-0.2, 1.5) * eigenvalue * (1 + 0.3 * np.sin(sines.x[:, 0]))
        lambda_ = max(float(np.mean(reaction)), 0.0)
        shape = (1e-3, d / max(d - 1, 1), 0.3 * eigenvalue, 0.3 * (eigenvalue + lambda_) ** 2)
        plain, full = Local(variable, 0 * drift, 0 * reaction), Local(variable, drift, reaction)
        trials = [
            (TraceSplit(), plain),
            (Triangle(lambda_, eigenvalue), full),
            (Triangle(0.0, eigenvalue), Local(variable, drift, 0 * reaction)),
            (Weighted(lambda_, normalised(shape, lambda_, eigenvalue, d)), full),
            (Weighted(lambda_, normalised((0.2, 0.8, *shape[2:]), lambda_, eigenvalue, d)), full),
        ]
        rho = float(np.max(TraceSplit().defects(plain.invariants(matrix))))
        if 0 < rho < 1:
            R = rho**2 / 0.6
            trials.append((Tightened(0.4, math.sqrt(R / (1 + 0.4 * R)) * (1 + 1e-14)), plain))
        assert len(plain.c) == n
        for scheme, local in trials:
            found = bracket(scheme, local, matrix, sines)
            if found is not None:
                lower, energy, upper = found
                assert lower <= energy * (1 + 1e-10), (scheme, lower / energy)
                assert upper >= energy * (1 - 1e-10), (scheme, upper / energy)
                nearest, tried = min(nearest, upper / energy), tried + 1
    assert tried > 50
    assert nearest < 1.1


def test_trace_split_is_sharp():
    """A = diag(1, 9), sin(mπx) sin(πy): the upper bound is (m² + 9)/(m² + 1) of the truth, and with
    m and n exchanged so is the lower one."""
    box, A = Box([0, 0], [1, 1]), np.diag([1.0, 9.0])
    for m in (1, 4, 12):
        for frequencies, side in (([m, 1], 1), ([1, m], -1)):
            sines = Sines(box, np.array([frequencies]), np.ones(1))
            local = Local(
                np.tile(A, (len(sines.x), 1, 1)), np.zeros_like(sines.x), np.zeros(len(sines.x))
            )
            lower, energy, upper = bracket(TraceSplit(), local, np.eye(2), sines)  # pyright: ignore
            expected = (m**2 + 9) / (m**2 + 1) if side > 0 else (1 + 9 * m**2) / (9 * (1 + m**2))
            assert (upper if side > 0 else lower) / energy == pytest.approx(expected, rel=1e-9)
