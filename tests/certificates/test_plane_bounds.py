"""Domains that are not convex: answers against what is known of them, and bounds against errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.plane.network import Expansion, Functions
from cordes.ansatz.plane.powers import PLAIN, Center, Powers
from cordes.certificates.plane.singularities import singular_inside
from cordes.errors import OptionError

L_SHAPE = cordes.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
VARYING = lambda x: jnp.array([[1 + 0.5 * jnp.sin(3 * x[0]), 0.3], [0.3, 1.0]])  # noqa: E731


def plate():
    """The square (−.5, .5)² with four round holes."""
    domain = cordes.Box([-0.5, -0.5], [0.5, 0.5])
    for center in ([-0.3, -0.3], [0.3, -0.3], [0.3, 0.3], [-0.3, 0.3]):
        domain = domain - cordes.Ball(center, 0.1)
    return domain


def test_an_l_shape_has_the_published_digits():
    """Trefethen's value of Δu = 0, u = x₁², at (.99, .99): 1.0267919261."""
    problem = cordes.Linear(L_SHAPE, np.eye(2), 0.0, g=lambda x: x[0] ** 2)
    solution = cordes.solve(problem)
    assert solution.converged
    certificate = solution.certificate
    assert abs(solution([0.99, 0.99]) - 1.0267919261) < 6e-11
    assert certificate.Linf <= 1e-8
    assert certificate.levels["Linf"] == "quadrature"
    assert certificate.H2 is None
    assert "not convex" in certificate.reason


@pytest.mark.long
def test_a_plate_with_four_holes():
    on_square = lambda x: jnp.where(jnp.max(jnp.abs(x)) > 0.4999, 1.0, 0.0)  # noqa: E731
    solution = cordes.solve(cordes.Linear(plate(), np.eye(2), 0.0, g=on_square), tol=1e-9)
    found = solution([[0.0, 0.0], [0.4, 0.0]])
    assert np.max(np.abs(found - [0.2335849223108, 0.6351273586249])) < 1e-10
    assert solution.converged
    assert solution.certificate.Linf <= 1e-8


def test_an_annulus_against_the_exact_solution():
    domain = cordes.Ball([0, 0], 1) - cordes.Ball([0, 0], 0.4)
    exact = lambda x: jnp.log(jnp.sum(x**2)) / (2 * jnp.log(0.4))  # noqa: E731
    inner = lambda x: jnp.where(jnp.sum(x**2) < 0.5, 1.0, 0.0)  # noqa: E731
    solution = cordes.solve(cordes.Linear(domain, np.eye(2), 0.0, g=inner, exact=exact))
    assert solution.error().linf <= solution.certificate.Linf < 1e-9


SMOOTH = {
    "sines": lambda x: jnp.sin(2 * x[0] + x[1]) * jnp.exp(x[1] / 2),
    "a fraction": lambda x: 1 / (3 + x[0] - 0.5 * x[1]),
}
EQUATIONS = {
    "Laplace": (np.eye(2), None, None),
    "aniso": (np.array([[2.0, 0.7], [0.7, 0.5]]), None, None),
    "varying": (VARYING, None, None),
    "drift": (np.eye(2), lambda x: jnp.array([1.0 + x[1], -2.0]), None),
    "reaction": (VARYING, None, lambda x: 1 + x[0] ** 2),
}


def manufactured(domain, exact, equation):
    """The problem whose solution is known."""
    A, b, c = equation

    def f(x):
        matrix = A(x) if callable(A) else jnp.asarray(A)
        value = jnp.sum(matrix * jax.hessian(exact)(x))
        value = value if b is None else value + b(x) @ jax.grad(exact)(x)
        return value if c is None else value - c(x) * exact(x)

    return cordes.Linear(domain, A, f, b=b, c=c, g=exact, exact=exact)


@pytest.mark.long
@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("levels", [1, 2])
def test_bounds_lie_above_the_error_of_coarse_answers(equation, levels):
    exact = SMOOTH["sines" if levels == 1 else "a fraction"]
    problem = manufactured(L_SHAPE, exact, EQUATIONS[equation])
    solution = cordes.solve(problem, levels=levels)
    error, certificate = solution.error(), solution.certificate
    assert error.linf > 0
    assert certificate.Linf >= error.linf
    assert certificate.rms >= error.l2


def test_a_wrong_function_is_bounded_by_its_own_mismatch():
    """v = −1 on the boundary and c = 1: the error inside is larger than without a positive part."""
    problem = cordes.Linear(L_SHAPE, np.eye(2), -1.0, c=1.0, g=0.0)
    certificate = cordes.certify(problem, lambda x: 1.0 + 0 * x[0])
    # u lies between 0 and 1: the answer 1 is wrong by one on the boundary.
    assert certificate.Linf >= 1.0


def test_a_factor_that_is_too_small_is_seen():
    """A battery that can fail: with a tenth of the bound there are errors above it."""
    problem = manufactured(L_SHAPE, SMOOTH["sines"], EQUATIONS["Laplace"])
    solution = cordes.solve(problem, levels=1)
    assert solution.error().linf > solution.certificate.Linf / 10


def test_negative_reaction_gives_no_bound():
    problem = cordes.Linear(L_SHAPE, np.eye(2), 1.0, c=-1.0)
    certificate = cordes.solve(problem, levels=1).certificate
    assert certificate.Linf is None
    assert "maximum principle" in certificate.reason


@pytest.mark.parametrize(
    ("point", "p", "inverse", "word"),
    [
        ([0.5, 0.5], -1.0, 0.0, "pole"),
        # The branch cut from the re-entrant corner through the domain.
        ([1.0, 1.0], 2 / 3, 0.0, "cut"),
    ],
)
def test_poles_and_cuts_inside_are_refused(point, p, inverse, word):
    problem = cordes.Linear(L_SHAPE, np.eye(2), 0.0, g=lambda x: x[0])
    solution = cordes.solve(problem, levels=1)
    functions = solution.network.functions
    center = Center(np.array(point), np.eye(2), inverse, np.eye(2))
    more = Powers(center, np.array([p]), np.zeros(1), np.array([PLAIN]))
    wrong = Functions(functions.polynomials, [*functions.powers, more])
    network = Expansion(solution.network.inputs, wrong)
    assert word in str(singular_inside(L_SHAPE, network))
    assert singular_inside(L_SHAPE, solution.network) is None


def test_a_frozen_exponent_of_two_thirds_is_none_of_the_functions():
    """With a₁₂ ≠ 0 the re-entrant exponent is .71105, not 2/3."""
    problem = cordes.Linear(L_SHAPE, VARYING, 0.0, g=lambda x: x[0] ** 2)
    network = cordes.solve(problem, levels=1, certify=False).network
    corner = next(each for each in network.functions.powers if np.all(each.center.point == 1.0))
    assert min(corner.p[corner.p > 0]) == pytest.approx(0.71105, abs=1e-5)


def test_answers_are_kept(tmp_path):
    problem = cordes.Linear(L_SHAPE, np.eye(2), 1.0)
    solution = cordes.solve(problem, levels=1, certify=False)
    again = cordes.load(solution.save(tmp_path / "answer.cordes"), problem)
    points = L_SHAPE.interior_points(50)
    assert np.array_equal(again(points), solution(points))
    assert np.array_equal(again.hessian(points), solution.hessian(points))


@pytest.mark.long
def test_derivatives_are_those_of_the_values():
    solution = cordes.solve(cordes.Linear(plate(), np.eye(2), 1.0), levels=1, certify=False)
    x = plate().interior_points(20)
    value = lambda point: solution(point[None])[0]  # noqa: E731
    slope, bend = jax.vmap(jax.grad(value))(x), jax.vmap(jax.hessian(value))(x)
    assert np.allclose(solution.gradient(x), slope, atol=1e-7, rtol=1e-7)
    assert np.allclose(solution.hessian(x), bend, atol=1e-5, rtol=1e-5)


def test_methods_for_convex_domains_are_refused():
    problem = cordes.Linear(L_SHAPE, np.eye(2), 1.0)
    for method in ("least-squares", "adam", "cells", "gauss-newton"):
        with pytest.raises(OptionError, match="not convex"):
            cordes.solve(problem, method=method)
    square = cordes.Linear(cordes.Box([0, 0], [1, 1]), np.eye(2), 1.0)
    with pytest.raises(OptionError, match="not convex"):
        cordes.solve(square, method="expansions")


def test_interfaces_are_refused():
    problem = cordes.Linear(
        L_SHAPE, np.eye(2), lambda x: jnp.sign(x[0] - 0.5), interfaces=[lambda x: x[0] - 0.5]
    )
    with pytest.raises(OptionError, match="interface"):
        cordes.solve(problem)


@pytest.mark.parametrize("radius", [0.4, 0.9])
def test_a_barrier_follows_thin_rings(radius):
    """u of Δu = −1 on a ring against the answer 0: N1 says .458 and .218, the torsion function
    of the ring, (1 − r²)/4 − (1 − ρ²) ln r/(4 ln ρ), has the maxima .0460 and .00125."""
    ring = cordes.Ball([0, 0], 1) - cordes.Ball([0, 0], radius)
    certificate = cordes.certify(cordes.Linear(ring, np.eye(2), -1.0), lambda x: 0 * x[0])
    r = np.linspace(radius, 1, 4001)
    truth = (1 - r**2) / 4 - (1 - radius**2) / 4 * np.log(r) / np.log(radius)
    assert np.max(truth) <= certificate.Linf < 1.1 * np.max(truth)
    assert certificate.maximum_theorem == "barrier (torsion)"
    assert certificate.alternatives["ABP"] > 9 * certificate.Linf
