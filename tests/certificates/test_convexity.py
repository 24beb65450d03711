"""The convexity that certificates of the Monge–Ampère equation rest on: lost, shifted, searched for
and proved."""

import jax.numpy as jnp
import numpy as np
import pytest
from monge_ampere_cases import DISK, NOWHERE, SMOOTH, SQUARE, certified, hidden, mode, perturbed

import cordes
from cordes.certificates.monge_ampere import certify as module
from cordes.certificates.monge_ampere.sides import DeterminantSides
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.certificates.residual.convexity import (
    Convexity,
    edge_points,
    least_of_matrices,
    proved,
    smallest_eigenvalue,
)
from cordes.certificates.residual.norms import Norm
from cordes.formulas.intervals import Interval


def test_without_convexity_the_theorem_is_false():
    """u = (|x|² - 1)/2 and w = -u have the same determinant and the same boundary values."""
    problem = cordes.MongeAmpere(DISK, 1.0, 0.0)
    certificate = certified(problem, lambda x: (1 - jnp.sum(x**2)) / 2)
    assert certificate.Linf is None
    assert certificate.reason.startswith("convexity lost: D²w has the eigenvalue -1 at x = ")


def test_the_same_hidden_in_a_larger_answer():
    """With an affine function added the range of w is large and the bound is given: it must
    hold."""
    problem = cordes.MongeAmpere(DISK, 1.0, lambda x: 10 * x[0])
    certificate = certified(problem, lambda x: 10 * x[0] + (1 - jnp.sum(x**2)) / 2)
    assert certificate.theorem == "T4 with shift"
    assert 1 <= certificate.Linf <= 1.6
    assert "eigenvalue -1" in certificate.reason


def test_the_shift_is_sharp():
    """f = 0, u = 10 x₁, w = u + t(1 - |x|²)/2: made convex, w is affine, so that the bound of w - u
    is t(1 - |x|²)/2, which is the truth."""
    problem, t = cordes.MongeAmpere(DISK, 0.0, lambda x: 10 * x[0]), 0.3
    certificate = certified(problem, lambda x: 10 * x[0] + t * (1 - jnp.sum(x**2)) / 2)
    assert t / 2 <= certificate.Linf <= 1.03 * t / 2
    points = DISK.interior_points(200, 4)
    square = np.sum(points**2, axis=1)
    assert np.all(certificate.picture.bound(points) >= t * (1 - square) / 2)
    assert certificate.picture.bound(points) == pytest.approx(
        t / 2 * np.maximum(square, 1 - square), rel=0.03
    )


def test_the_shift_belongs_to_its_side():
    """u - w ≤ δ|x - c|²/2 + …, w - u ≤ δ(R² - |x - c|²)/2 + …: at the centre the lower side has the
    whole shift, at the edge the upper one."""
    points = np.array([[0.0, 0.0], [0.6, 0.0], [0.999999, 0.0]])
    factor = (1 - np.sum(points**2, axis=1)) ** 0.75 / np.sqrt(np.pi)
    for above, below in ((2.0, 0.0), (0.0, 2.0), (0.3, 0.5)):
        sides = DeterminantSides(Norm(0, above), Norm(0, below), 0.4, np.zeros(2), 1.0, 0.0)
        upper = 0.2 * np.sum(points**2, axis=1) + above * factor
        lower = 0.2 * (1 - np.sum(points**2, axis=1)) + below * factor
        assert sides.pointwise(DISK, points) == pytest.approx(np.maximum(upper, lower), rel=1e-9)
        assert sides.largest(DISK) == pytest.approx(
            0.2 + max(above, below) / np.sqrt(np.pi), rel=1e-9
        )


def test_convexity_just_lost():
    """A mode whose size is near the breaking point: the shift takes over without a gap."""
    found = [certified(SMOOTH, perturbed(t, mode(2, 2))) for t in (0.02, 0.0252, 0.03)]
    assert [certificate.theorem for certificate in found] == ["T4", "T4", "T4 with shift"]
    assert all(
        t <= certificate.Linf <= 10 * t
        for t, certificate in zip((0.02, 0.0252, 0.03), found, strict=True)
    )


def dent(width, depth, point=(0.437, 0.5613)):
    """A narrow dent that vanishes to rounding on the boundary; its second derivatives have the size
    depth/width²."""

    def function(x):
        square = jnp.sum((x - jnp.asarray(point)) ** 2)
        return (
            16 * x[0] * (1 - x[0]) * x[1] * (1 - x[1]) * depth * jnp.exp(-square / (2 * width**2))
        )

    return function


def test_a_narrow_dip_of_convexity_is_found_by_intervals():
    width = 2e-3
    certificate = certified(SMOOTH, perturbed(1.0, dent(width, 3 * width**2)))
    assert certificate.theorem == "T4 with shift"
    assert certificate.epsilon_source == "interval"
    assert certificate.Linf >= 3 * width**2


@pytest.mark.parametrize("width", [0.01, 0.03])
def test_a_narrow_dip_of_convexity_is_found_by_the_search(width):
    points = SQUARE.interior_points(1024, 9, "sobol")
    candidate = hidden(perturbed(1.0, dent(width, 3 * width**2)))
    found = smallest_eigenvalue(SQUARE, lambda x: candidate.jet(x).hessian, points)
    exact = smallest_eigenvalue(
        SQUARE,
        lambda x: candidate.jet(x).hessian,
        np.array([[0.437, 0.5613]]) + width * (points - 0.5),
    )
    assert found.source == "sampled"
    assert found.smallest == pytest.approx(exact.smallest, abs=0.02)
    assert exact.smallest < -0.5
    assert found.lower <= found.smallest


def test_the_points_of_the_norms_are_looked_at_too():
    """A search that has seen nothing is corrected by the points of the quadrature."""
    candidate = hidden(perturbed(0.03, mode(2, 2)))
    attempt = module._Attempt(SMOOTH, candidate)
    attempt._search = lambda: Convexity(0.5, np.array([0.5, 0.5]), "sampled", 0.5)
    certificate = attempt.certificate(NOWHERE, 0.99, 0.0)
    assert certificate.theorem == "T4 with shift"
    assert certificate.Linf >= 0.03


def test_the_corner_is_looked_at():
    """An eigenvalue that is negative near one corner only."""
    assert np.min(np.linalg.norm(edge_points(cordes.Box([0] * 3, [1] * 3)) - 1, axis=1)) < 1e-8
    matrix = np.diag([1.0, 2.0])

    def hessian(x):
        return matrix - 1.5 * np.exp(-np.sum((x - 1) ** 2, axis=1) / 1e-6)[:, None, None] * np.eye(
            2
        )

    found = smallest_eigenvalue(SQUARE, hessian, SQUARE.interior_points(64, 1))
    assert found.smallest == pytest.approx(-0.5, abs=1e-6)


def test_a_hessian_that_is_no_number():
    found = smallest_eigenvalue(
        SQUARE,
        lambda x: np.where(x[:, :1, None] > 0.5, np.nan, np.eye(2)),
        SQUARE.interior_points(64, 1),
    )
    assert found.smallest == -np.inf
    assert found.point[0] > 0.5


@pytest.mark.parametrize("d", [1, 2, 3])
def test_eigenvalues_of_interval_matrices(d):
    rng = np.random.default_rng(d)
    middle = rng.standard_normal((50, d, d))
    middle = middle + np.swapaxes(middle, 1, 2)
    radius = rng.uniform(0, 1, (50, d, d))
    radius = np.minimum(radius, np.swapaxes(radius, 1, 2))
    bound = least_of_matrices(Interval(middle - radius, middle + radius))
    least = np.full(50, np.inf)
    for _ in range(300):
        change = rng.choice([-1.0, 1.0], (50, d, d))
        change = np.triu(change) + np.swapaxes(np.triu(change, 1), 1, 2)
        least = np.minimum(least, np.linalg.eigvalsh(middle + radius * change)[:, 0])
    # All corners of the box of matrices are met: the bound is attained.
    assert np.all(bound <= least)
    assert bound == pytest.approx(least, abs=1e-9)


def test_the_proof_is_a_lower_bound():
    function = perturbed(0.02, mode(3, 2))
    candidate = FunctionCandidate(SMOOTH, function)

    def values(x):
        return np.linalg.eigvalsh(candidate.jet(x).hessian)[:, 0]

    points = SQUARE.interior_points(20_000, 8)
    known = smallest_eigenvalue(SQUARE, lambda x: candidate.jet(x).hessian, points[:1000])
    found = proved(SQUARE, function, values, known)
    assert found.source == "interval"
    assert found.lower <= np.min(values(points))
    assert found.lower == pytest.approx(found.smallest, rel=0.03)
