"""Transport: known maps, boundary conditions of all kinds of targets, masses, the inverse, the
cost, and what goes wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes import Ball, Box, Ellipsoid, Polygon, Result, Transport
from cordes.errors import CoefficientError, OptionError
from cordes.jet import Jet, jet_of
from cordes.problems.transport import MassError, mass

SQUARE = Box([0, 0], [1, 1])


def wavy_potential(x):
    return x @ x / 2 + 0.03 * jnp.cos(jnp.pi * x[0]) * jnp.cos(jnp.pi * x[1])


def wavy_target(y):
    return 1 + 0.5 * jnp.sin(2 * y[0] + y[1])


def pulled_back(potential, target):
    def source(x):
        _, gradient, hessian = jet_of(potential)(x)
        return target(gradient) * jnp.linalg.det(hessian)

    return source


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("transport-ellipses", 1e-8),
        ("transport-ellipses-nonuniform", 1e-6),
        ("transport-box", 1e-8),
    ],
)
def test_known_maps(solved, name, largest):
    solution = solved(name)
    assert solution.result is Result.converged_uncertified
    assert solution.error().linf <= largest
    assert abs(solution.facts["mass_defect"]) <= 1e-10
    assert solution.pushforward.rms <= 1e-8
    assert solution.pushforward.rim <= 1e-8


def test_three_dimensions(solved):
    assert solved("transport-box-3d", features=1000).error().linf <= 1e-6


def test_the_square_of_the_paper(solved):
    """Closed forms of the benchmark: the cost, the eigenvalues, the map; the identity is off by
    0.0099."""
    solution = solved("ex5.1-square")
    error = solution.error()
    assert error.linf <= 1e-10
    assert error.l2 <= 1e-11
    assert solution.cost == pytest.approx(3.8384033e-3, rel=1e-7)
    low, high = solution.pushforward.eigenvalues
    assert low == pytest.approx(0.74683, abs=2e-3)
    assert high == pytest.approx(1.24240, abs=2e-3)
    identity = cordes.Transport(solution.problem.domain, 1.0, exact=solution.problem.exact)
    assert cordes.solve(identity, certify=False).error().linf == pytest.approx(0.00992, abs=1e-4)


def test_epsilon_and_multiplier(solved):
    """ε is reported along the steps; without the multiplier the same map comes out."""
    solution = solved("transport-ellipses")
    assert all(0 < step["epsilon"] <= 1 for step in solution.history)
    assert solved("transport-ellipses", multiplier=False).error().linf <= 1e-8
    assert cordes.check(solution).epsilon == pytest.approx(
        solution.history[-1]["epsilon"], abs=1e-3
    )


def test_linearisation_is_that_of_the_equation():
    """The frozen operator is the derivative of ν(∇u) det D²u, and at a solution the frozen equation
    holds."""
    problem = Transport(
        SQUARE, pulled_back(wavy_potential, wavy_target), SQUARE, wavy_target, normalise=True
    )
    x = jnp.array([0.3, 0.6])
    jet, change = jet_of(wavy_potential)(x), jet_of(lambda x: jnp.sin(x[0] + 2 * x[1]))(x)
    A, b, c, f = problem.linearise(x, jet)
    assert c == 0
    assert jnp.sum(A * jet.hessian) + b @ jet.gradient == pytest.approx(float(f), rel=1e-9)
    slope = jax.jvp(lambda *parts: problem.residual(x, Jet(*parts)), tuple(jet), tuple(change))[1]
    assert jnp.sum(A * change.hessian) + b @ change.gradient == pytest.approx(
        float(slope), rel=1e-9
    )


def test_inverse_and_cost(solved):
    solution = solved("transport-ellipses")
    y = solution.problem.target_domain.interior_points(300, 1)
    x = solution.inverse(y)
    assert np.all(solution.problem.domain.contains(x, tolerance=1e-9))
    np.testing.assert_allclose(solution.map(x), y, atol=1e-11)
    assert solution.inverse(y.reshape(3, 100, 2)).shape == (3, 100, 2)
    with pytest.raises(OptionError, match="not in the image"):
        solution.inverse([5.0, 5.0])
    # Between uniform ellipses the cost is that of the linear map: trace of second moments.
    points, weights = solution.problem.domain.quadrature(40)
    moved = np.asarray(jax.vmap(solution.problem.exact)(points)) - points
    assert solution.cost == pytest.approx(
        np.sqrt(np.sum(weights * np.sum(moved**2, axis=1)) / np.sum(weights)), rel=1e-10
    )


def test_polygon_target(solved):
    """D²u jumps where the circle meets the corners: a moderate accuracy, whose image fills the
    polygon."""
    solution = solved("transport-disk-to-pentagon", features=500)
    target = solution.problem.target_domain
    assert solution.pushforward.rms < 0.1
    assert (
        np.mean(
            target.contains(
                solution.map(solution.problem.domain.interior_points(2000, 1)), tolerance=0.01
            )
        )
        == 1
    )


def test_box_to_polygon_and_back():
    """From a square to a diamond and to a disk: the condition on the boundary comes from facets or
    from a smooth function."""
    diamond = Polygon([[1, 0], [0, 1], [-1, 0], [0, -1]])
    solution = cordes.solve(
        Transport(Box([-1, -1], [1, 1]), 1.0, Ball([0, 0], 1)), features=250, certify=False
    )
    assert (
        np.max(
            np.linalg.norm(solution.map(solution.problem.domain.interior_points(500, 1)), axis=1)
        )
        <= 1.05
    )
    solution = cordes.solve(Transport(Ball([0, 0], 1), 1.0, diamond), features=250, certify=False)
    assert (
        np.max(
            np.sum(np.abs(solution.map(solution.problem.domain.interior_points(500, 1))), axis=1)
        )
        <= 1.05
    )


def test_continuation():
    """A density that spans three orders is reached in stages."""
    problem = Transport(
        SQUARE, lambda x: jnp.exp(-25 * jnp.sum((x - 0.4) ** 2)) + 1e-3, normalise=True
    )
    assert problem.spread > 100
    solution = cordes.solve(problem, features=500, certify=False)
    assert [step["share"] for step in solution.history if "share" in step][-1] == 0.75
    assert solution.pushforward.eigenvalues[0] > 0
    assert solution.pushforward.rms < 0.2


def test_save_and_plot(solved, tmp_path):
    solution = solved("transport-box")
    again = cordes.load(solution.save(tmp_path / "answer.cordes"))
    points = solution.problem.domain.interior_points(20, 2)
    np.testing.assert_array_equal(again.map(points), solution.map(points))
    solution.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 20_000


# Bad input ----------------------------------------------------------------------------------------


def test_masses_that_differ():
    with pytest.raises(MassError, match=r"source has 1, the target 2.*normalise=True"):
        Transport(SQUARE, 1.0, SQUARE, 2.0)
    problem = Transport(SQUARE, 1.0, SQUARE, 2.0, normalise=True)
    assert problem.target_density(np.full((1, 2), 0.5))[0] == pytest.approx(1.0)
    assert mass(lambda x: 1 + x[0], Ellipsoid([1, 0], [2, 1])) == pytest.approx(
        4 * np.pi, rel=1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": lambda x: x[0] - 0.5}, r"source is not positive: source\(.*\) = -"),
        (
            {"source": 1.0, "target": lambda y: jnp.where(y[0] > 0.9, 0.0, 1.0), "normalise": True},
            "target is not positive",
        ),
        ({"source": lambda x: jnp.log(x[0] - 0.5)}, "not finite"),
        ({"source": lambda x: x}, "shape"),
        ({"source": 1.0, "exact": lambda x: x[0]}, "exact"),
        (
            {"source": 1.0, "target_domain": Box([0, 0, 0], [1, 1, 1])},
            "2 dimensions, the target domain 3",
        ),
        ({"source": None}, "source is missing"),
    ],
)
def test_wrong_densities(arguments, message):
    with pytest.raises(CoefficientError, match=message):
        Transport(SQUARE, **arguments)


def test_nonconvex_target():
    with pytest.raises(cordes.CordesError, match="convex"):
        Transport(SQUARE, 1.0, Polygon([[0, 0], [2, 0], [1, 0.5], [2, 2], [0, 2]]))


def test_wrong_options():
    problem = cordes.gallery["transport-box"]
    with pytest.raises(OptionError):
        cordes.solve(problem, boundary="soft")
    with pytest.raises(OptionError, match="not for Transport"):
        cordes.solve(problem, form="convex")
