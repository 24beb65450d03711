"""The constant matrix M of T1d: that it is found, and that the corollaries with M hold."""

import math

import numpy as np
import pytest

from cordes.certificates.equation import EnergyBound
from cordes.certificates.residual.norms import Norm
from cordes.certificates.theorems.contraction import Contraction
from cordes.certificates.theorems.energy import Local, TraceSplit, Triangle
from cordes.certificates.theorems.preconditioner import anisotropy, preconditioners
from cordes.domains import Box
from cordes.domains.constants import first_eigenvalue
from cordes.problems.condition import epsilon_at


def without_lower_order(A: np.ndarray) -> Local:
    return Local(A, np.zeros(A.shape[:2]), np.zeros(len(A)))


def rotated(axes: np.ndarray, large: float = 10.0) -> Local:
    """I + (large - 1) nnᵀ for unit vectors n."""
    return without_lower_order(np.eye(3) + (large - 1) * axes[:, :, None] * axes[:, None])


def candidates(local: Local) -> list[np.ndarray]:
    d = local.A.shape[-1]
    return preconditioners(local, Box([0] * d, [1] * d))


@pytest.mark.parametrize("d", [2, 3, 4])
def test_every_constant_matrix_is_brought_to_the_identity(d):
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d)) + np.eye(d)
    A = root @ root.T + 0.05 * np.eye(d)
    identity, found = candidates(without_lower_order(np.tile(A, (20, 1, 1))))
    assert np.array_equal(identity, np.eye(d))
    assert found == pytest.approx(A / np.linalg.det(A) ** (1 / d), rel=1e-4, abs=1e-4)
    assert np.linalg.det(found) == pytest.approx(1.0, rel=1e-10)
    assert anisotropy(without_lower_order(A[None]), found) < 1e-4


def test_diagonal_ten_one_one_is_rescued():
    """It fails the Cordès condition in three dimensions, and has ε = 1 with M = A."""
    local = without_lower_order(np.tile(np.diag([10.0, 1.0, 1.0]), (5, 1, 1)))
    assert np.all(epsilon_at(*local, None) < 0)
    plain, found = candidates(local)
    assert anisotropy(local, plain) > 1
    assert anisotropy(local, found) < 1e-6


def test_rotation_about_a_fixed_axis_is_rescued():
    """About e₃ the matrix M = diag(1, 1, 11/101) gives ε = 0.198; the one that is found is as
    good."""
    angle = np.linspace(0, math.pi, 60, endpoint=False)
    local = rotated(np.stack([np.cos(angle), np.sin(angle), np.zeros(60)], axis=1))
    best = np.diag([1.0, 1.0, 11 / 101])
    rho = math.sqrt(2 * (1 - 0.198) / (2 + 0.198))
    assert anisotropy(local, best) == pytest.approx(rho, abs=2e-3)
    plain, found = candidates(local)
    assert anisotropy(local, plain) >= 1
    assert anisotropy(local, found) <= rho + 2e-3
    # Whatever the search finds cannot be better than the optimum.
    assert anisotropy(local, found) >= rho - 2e-3


def test_an_axis_that_covers_the_sphere_is_not_rescued():
    rng = np.random.default_rng(0)
    axes = rng.standard_normal((400, 3))
    local = rotated(axes / np.linalg.norm(axes, axis=1, keepdims=True))
    assert min(anisotropy(local, matrix) for matrix in candidates(local)) >= 1


def test_the_identity_alone_where_nothing_is_gained():
    rng = np.random.default_rng(1)
    near = without_lower_order(
        np.eye(3) * rng.uniform(1, 9, 30)[:, None, None] + 0.01 * np.diag([1.0, -1.0, 0.0])
    )
    symmetric = without_lower_order(np.array([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])]))
    one = without_lower_order(rng.uniform(1, 5, (30, 1, 1)))
    for local in (near, symmetric, one):
        matrices = candidates(local)
        assert len(matrices) == 1
        assert np.array_equal(matrices[0], np.eye(local.A.shape[-1]))


def test_many_points_are_thinned_without_losing_the_worst():
    """One point in 2000 decides about the supremum."""
    A = np.tile(np.diag([1.0, 3.0]), (2000, 1, 1))
    A[1234] = np.diag([1.0, 30.0])
    local = without_lower_order(A)
    _, found = candidates(local)
    # The best diagonal M balances 3 and 30: ρ' = (√10 - 1)/(√10 + 1).
    assert anisotropy(local, found) == pytest.approx(
        (math.sqrt(10) - 1) / (math.sqrt(10) + 1), abs=5e-3
    )


def test_beyond_four_dimensions_the_matrix_is_diagonal_or_the_mean():
    rng = np.random.default_rng(2)
    stretch = np.exp(rng.uniform(-1, 1, 6))
    fields = np.eye(6) + 0.05 * rng.standard_normal((50, 6, 6))
    fields = (fields + np.swapaxes(fields, 1, 2)) / 2
    local = without_lower_order(np.sqrt(stretch)[:, None] * fields * np.sqrt(stretch))
    plain, found = candidates(local)
    assert anisotropy(local, found) < 0.6 < anisotropy(local, plain)
    assert np.linalg.det(found) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("d", [2, 3])
def test_corollaries_with_a_matrix(d):
    """From E = ‖M:D²v - λv‖, known exactly, to ‖v‖, ‖∇v‖, ‖D²v‖ and the maximum, for products of
    sines in a box; the eigenfunction of a diagonal M makes the first one sharp."""
    rng = np.random.default_rng([3, d])
    sharpest = np.inf
    for trial in range(30):
        widths = rng.uniform(0.5, 2, d)
        box = Box(np.zeros(d), widths)
        root = rng.standard_normal((d, d)) * (trial % 3 > 0)
        matrix = np.diag(rng.uniform(0.2, 3, d)) + root @ root.T
        frequency = rng.integers(1, 4, d) if trial > 2 else np.ones(d)
        wave = np.pi * frequency / widths
        x, weight = box.quadrature(24)
        sines, cosines = np.sin(x * wave), np.cos(x * wave)
        value = np.prod(sines, axis=1)
        others = np.stack([np.prod(np.delete(sines, i, axis=1), axis=1) for i in range(d)], axis=1)
        gradient = wave * cosines * others
        hessian = np.empty((len(x), d, d))
        for i in range(d):
            for j in range(d):
                rest = np.prod(np.delete(sines, [i, j], axis=1), axis=1)
                hessian[:, i, j] = (
                    -(wave[i] ** 2) * value
                    if i == j
                    else wave[i] * wave[j] * cosines[:, i] * cosines[:, j] * rest
                )

        def norm(values, weight=weight):
            return math.sqrt(weight @ np.sum(values.reshape(len(values), -1) ** 2, axis=1))

        eigenvalue = first_eigenvalue(box, matrix)
        for lambda_ in (0.0, 0.5 * eigenvalue, 3 * eigenvalue):
            energy = norm(np.sum(matrix * hessian, axis=(1, 2)) - lambda_ * value)
            scheme = TraceSplit() if lambda_ == 0 else Triangle(lambda_, eigenvalue)
            bound = EnergyBound(
                scheme,
                matrix,
                Contraction(0.0, "analytic", np.zeros(d)),
                Norm(energy, energy),
                eigenvalue,
            )
            assert bound.lower == bound.upper == energy
            assert norm(value) * (1 - 1e-9) <= bound.L2
            assert norm(gradient) * (1 - 1e-9) <= bound.H1
            assert bound.H2 is not None
            assert norm(hessian) * (1 - 1e-9) <= bound.H2
            assert bound.Linf(box) is not None
            assert bound.Linf(box) >= np.max(np.abs(value))
            sharpest = min(sharpest, bound.L2 / norm(value))
    assert sharpest < 1 + 1e-9


def test_bounds_grow_with_the_contraction_and_names_tell_the_matrix():
    norm, d = Norm(1.0, 2.0), 2
    plain = EnergyBound(
        TraceSplit(), np.eye(d), Contraction(0.5, "interval", np.zeros(d)), norm, 4.0
    )
    assert (plain.lower, plain.upper) == (1 / 1.5, 4.0)
    assert (plain.L2, plain.H1, plain.H2) == (1.0, 2.0, 4.0)
    assert plain.constant * norm.upper == plain.L2
    assert str(plain.theorem) == "T1b"
    stretched = plain._replace(matrix=np.diag([0.25, 4.0]))
    assert str(stretched.theorem) == "T1b with T1d"
    assert (stretched.L2, stretched.H1, stretched.H2) == (1.0, 4.0, 16.0)
