"""Constants that the certificates of optimal transport rest on: Poincaré, fluxes, integrals."""

import jax.numpy as jnp
import numpy as np
import pytest
from transport_maps import CUBE, DISK, INTERVAL, SQUARE

import cordes
from cordes.certificates.residual.norms import Quadrature, fixed_rule
from cordes.certificates.transport.bounds import Flux
from cordes.certificates.transport.map import integral
from cordes.certificates.transport.target import ball_zero, describe_target, uniform_poincare
from cordes.problems.transport import Transport


def test_neumann_eigenvalues_of_balls():
    assert ball_zero(2) == pytest.approx(1.841183781340659, rel=1e-10)
    assert ball_zero(3) == pytest.approx(2.081575977818101, rel=1e-10)
    assert ball_zero(2) < 1.8411837813406595


@pytest.mark.parametrize(
    ("domain", "tight"),
    [
        (cordes.Box([0, 0], [2, 1]), 1.0001),
        (cordes.Ball([1, 0], 0.7), 1.0001),
        (cordes.Ball([0, 0, 0], 1.3), 1.0001),
        (cordes.Ellipsoid([0, 0], [[1.5, 0.4], [0.4, 0.5]]), 1.2),
        (cordes.Polygon([[0, 0], [2, 0], [0.5, 1]]), 1.6),
    ],
)
def test_poincare_constants_of_uniform_densities(domain, tight):
    found = uniform_poincare(domain)
    assert (
        ritz(domain, lambda y: np.ones(len(y)))
        <= found
        <= tight * ritz(domain, lambda y: np.ones(len(y)))
    )


@pytest.mark.parametrize(
    "density",
    [
        lambda y: jnp.exp(2 * y[0]),
        lambda y: jnp.exp(-4 * jnp.sum(y**2)),
        lambda y: 1 + 0.9 * jnp.sin(6 * y[0]),
        lambda y: 0.2 + 8 * y[0] ** 2,
    ],
)
def test_poincare_constants_of_other_densities(density):
    problem = Transport(SQUARE, density, SQUARE, density)
    found = describe_target(problem)
    assert ritz(SQUARE, problem.target_density) <= found.poincare
    x = SQUARE.interior_points(4000, 8)
    assert found.smallest <= np.min(problem.target_density(x))
    assert found.largest >= np.max(problem.target_density(x))
    assert found.source in ("interval", "sampled")


def ritz(domain, density, degree=8):
    """√C_P from below: the best quotient of polynomials."""
    x, weight = domain.quadrature(30)
    weight = weight * density(x)
    flux = Flux(domain)
    flux.powers = flux.powers[np.sum(flux.powers, axis=1) <= degree]
    P, slopes = flux._polynomials(x)
    P, slopes = P[:, 1:] - weight @ P[:, 1:] / np.sum(weight), slopes[:, :, 1:]
    mass, stiffness = (
        P.T @ (weight[:, None] * P),
        sum(slope.T @ (weight[:, None] * slope) for slope in slopes),
    )
    return float(np.sqrt(np.max(np.linalg.eigvals(np.linalg.solve(stiffness, mass)).real)))


@pytest.mark.parametrize(
    "domain",
    [
        SQUARE,
        DISK,
        cordes.Polygon([[0, 0], [2, 0], [0.5, 1]]),
        CUBE,
        INTERVAL,
        cordes.Ellipsoid([0, 0], [[1.5, 0.4], [0.4, 0.5]]),
    ],
)
def test_fluxes_stay_inside_and_have_the_divergence_they_claim(domain):
    flux = Flux(domain)
    flux.coefficients = np.random.default_rng(3).standard_normal(
        flux.coefficients.shape
    ) / np.arange(1, flux.coefficients.shape[1] + 1)
    x, h = domain.interior_points(50, 4), 1e-5
    differences = sum(
        (flux(x + h * e)[0] - flux(x - h * e)[0])[:, i] / (2 * h)
        for i, e in enumerate(np.eye(domain.dimension))
    )
    _, divergence, rounding = flux(x)
    assert divergence == pytest.approx(differences, rel=1e-4, abs=1e-4)
    assert np.all(rounding > 0)
    edge, normals = domain.boundary_points(200, 5)
    assert np.max(np.abs(np.sum(flux(edge)[0] * normals, axis=1))) < 1e-10


def test_integrals_with_signs():
    x, weight = SQUARE.quadrature(10)
    low, high = integral(fixed_rule(x, weight), x[:, 0] + x[:, 1] ** 2 - 1, 1.0)
    assert low <= 1 / 12 - 1 + 1e-12
    assert high >= 1 / 12 - 1 - 1e-12
    assert isinstance(fixed_rule(x, weight), Quadrature)
