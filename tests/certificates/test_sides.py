"""Conditions on the sides of any domain of the plane: answers whose derivatives are known, bounds
against errors, corners between values and fluxes, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.plane.centers import Exponents, inverse_root
from cordes.domains.plane.loops import Corner
from cordes.domains.plane.sides import SidePoints
from cordes.problems.boundary_conditions import by_piece, piece_names
from cordes.problems.written.toml_file import problem_from_toml
from cordes.reports.pages.equation import equation

L_SHAPE = cordes.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
RING = cordes.Ball([0, 0], 1) - cordes.Ball([0, 0], 0.4)
PENTAGON = cordes.Polygon([[np.cos(t), np.sin(t)] for t in 2 * np.pi * np.arange(5) / 5])
VARYING = lambda x: jnp.array([[1 + 0.5 * jnp.sin(3 * x[0]), 0.3], [0.3, 1.0]])  # noqa: E731


def exact(x):
    return jnp.exp(x[0]) * jnp.sin(2 * x[1] + 0.3)


def flux(normal, kappa=0.0):
    """∂ₙu + κu of the exact solution; `normal` is a vector or a function."""
    n = normal if callable(normal) else lambda x: jnp.asarray(normal, float)
    return cordes.Robin(kappa, lambda x: jax.grad(exact)(x) @ n(x) + kappa * exact(x))


def solved(domain, boundary, A, c, **options):
    def f(x):
        matrix = A(x) if callable(A) else jnp.asarray(A)
        return jnp.sum(matrix * jax.hessian(exact)(x)) - c * exact(x)

    problem = cordes.Linear(domain, A, f, c=c, boundary=boundary, exact=exact)
    return cordes.solve(problem, progress=False, **options)


INWARDS = lambda x: -x / jnp.linalg.norm(x)  # noqa: E731
OUTWARDS = lambda x: x / jnp.linalg.norm(x)  # noqa: E731
TRAPEZOID = cordes.Polygon([(0, 0), (2, 0), (1.5, 1), (0, 1)])
CASES = {
    "insulated hole": (
        RING,
        {"outer": cordes.Dirichlet(exact), "hole 1": flux(INWARDS)},
        np.eye(2),
        0.0,
    ),
    "fluxes alone": (RING, {"outer": flux(OUTWARDS, 2.0), "hole 1": flux(INWARDS)}, VARYING, 1.0),
    # Convex, and no value anywhere: κ > 0 holds u.
    "disc": (cordes.Ball([0, 0], 1), flux(OUTWARDS, 2.0), VARYING, 0.0),
    "a convex polygon": (
        TRAPEZOID,
        {
            "side 1": cordes.Dirichlet(exact),
            "side 2": cordes.Dirichlet(exact),
            "side 3": flux([0, 1], 1.0),
            "side 4": flux([-1, 0]),
        },
        VARYING,
        0.0,
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("levels", [1, 2])
def test_bounds_lie_above_the_error(name, levels):
    solution = solved(*CASES[name], levels=levels)
    error, certificate = solution.error(), solution.certificate
    if name == "a convex polygon":
        # 116.6° between a value and a flux.
        assert certificate.Linf is None
        assert "116.6°" in certificate.reason
    else:
        assert error.linf <= certificate.Linf < 1e4 * error.linf
        assert error.l2 <= certificate.rms
        assert certificate.H2 is None
    assert levels == 1 or error.linf < 1e-4


def test_a_condition_that_is_missed_is_counted():
    """u = 1 fulfils Δu = 0 and the values, and misses the flux 1 on the inner circle: the error
    there is .4 ln 2.5 = .3665."""
    boundary = {"outer": cordes.Dirichlet(1.0), "hole 1": cordes.Neumann(1.0)}
    problem = cordes.Linear(RING, np.eye(2), 0.0, boundary=boundary)
    certificate = cordes.certify(problem, lambda x: 1.0 + 0 * x[0])
    assert 0.4 * np.log(2.5) <= certificate.Linf < 0.8


def test_a_wall_that_insulates_half_of_a_corner():
    """r^{1/3} sin(θ/3) at the re-entrant corner of an L-shape, where a value meets a flux."""

    def singular(x):
        y = x - 1.0
        angle = jnp.mod(jnp.arctan2(y[1], y[0]) - jnp.pi / 2, 2 * jnp.pi)
        return jnp.sum(y**2) ** (1 / 6) * jnp.sin(angle / 3)

    boundary = {"outer": cordes.Dirichlet(singular), "side 3": cordes.Neumann()}
    problem = cordes.Linear(L_SHAPE, np.eye(2), 0.0, boundary=boundary, exact=singular)
    solution = cordes.solve(problem, progress=False, levels=2)
    assert solution.error().linf < 1e-12
    assert solution.certificate.Linf is None
    assert "270°" in solution.certificate.reason


def test_exponents_of_corners():
    """Between two values or two fluxes kπ/ω, between a value and a flux (k − 1/2)π/ω; in H², where
    that is possible, none below one."""
    ahead, back = np.array([1.0, 0.0]), np.array([0.0, -1.0])

    def first(given, A, ahead=ahead, back=back):
        root = inverse_root(A)
        sides = root @ ahead, root @ back
        angles = [np.arctan2(side[1], side[0]) for side in sides]
        turned = (angles[1] - angles[0]) % (2 * np.pi)
        angle = np.arctan2(back[1], back[0]) - np.arctan2(ahead[1], ahead[0])
        corner = Corner(np.zeros(2), ahead, back, angle % (2 * np.pi), given)
        return Exponents.of(corner, root, turned).up_to(2.1)

    def near(wanted):
        return pytest.approx(wanted, abs=1e-12)

    identity = np.eye(2)
    assert first((True, True), identity) == near([2 / 3, 4 / 3, 2])
    assert first((False, False), identity) == near([2 / 3, 4 / 3, 2])
    assert first((True, False), identity) == near([1 / 3, 1, 5 / 3])
    assert first((False, True), identity) == near([1 / 3, 1, 5 / 3])
    convex = {"ahead": np.array([1.0, 0.0]), "back": np.array([0.0, 1.0])}
    assert first((True, False), identity, **convex) == near([1])
    # A slanted matrix: the normal derivative is an oblique one for the Laplacian.
    slanted = first((False, False), np.array([[1.0, 0.5], [0.5, 1.0]]), **convex)
    assert 1 < slanted[0] < 2


def test_names_of_sides():
    plate = cordes.Box([0, 0], [1, 1]) - cordes.Ball([0.5, 0.5], 0.2)
    assert piece_names(L_SHAPE) == [f"side {k}" for k in range(1, 7)]
    assert {"outer", "outer 4", "hole 1"} <= set(piece_names(plate))
    hot, cold = cordes.Dirichlet(1.0), cordes.Dirichlet(0.0)
    given = {"outer": cordes.Neumann(), "outer 2": hot, "outer 4": cold, "hole 1": cold}
    assert by_piece(plate, given)["outer 2"] is hot
    problem = cordes.Linear(plate, np.eye(2), 0.0, boundary=given)
    # The side that is called outer 2 is the right one, and its data are found at its points.
    arcs = problem.domain.arcs
    points = SidePoints.on(arcs, [np.array([0.5])] * len(arcs))
    values = problem.g.on(points)
    assert np.allclose(points.x[1], [1.0, 0.5])
    assert values[1] == 1.0
    assert np.array_equal(jax.vmap(problem.g)(points.x), values)
    # The points of a circle are its own.
    assert arcs[1].kappa is None
    assert arcs[0].kappa == 0.0


def test_values_by_sides():
    """The slab: u = x₁ between two given values, insulated elsewhere."""
    boundary = {"side 4": cordes.Dirichlet(0.0), "side 2": cordes.Dirichlet(2.0)}
    domain = cordes.Polygon([(0, 0), (2, 0), (2, 1), (0, 1)])
    insulated = {**boundary, "outer": cordes.Neumann()}
    problem = cordes.Linear(domain, np.eye(2), 0.0, boundary=insulated, exact=lambda x: x[0])
    solution = cordes.solve(problem, progress=False, levels=1)
    assert solution.error().linf <= solution.certificate.Linf < 1e-10


@pytest.mark.parametrize(
    ("domain", "boundary", "words"),
    [
        (L_SHAPE, cordes.Neumann(), "known up to a constant"),
        (L_SHAPE, {"side 1": cordes.Neumann()}, "says nothing about 'side 2'"),
        (L_SHAPE, cordes.Periodic(), "is for boxes"),
        (L_SHAPE, {"side 9": cordes.Neumann()}, "side 9"),
        (RING, {"outer": cordes.Dirichlet(1.0)}, "says nothing about 'hole 1'"),
        (
            L_SHAPE,
            {"side 1": cordes.Dirichlet(1.0), "outer": cordes.Dirichlet(0.0)},
            r"jump at x = \[",
        ),
        (L_SHAPE, {"side 1": cordes.Neumann(jnp.nan), "outer": cordes.Dirichlet()}, "finite"),
    ],
)
def test_refused(domain, boundary, words):
    with pytest.raises(cordes.CordesError, match=words):
        cordes.Linear(domain, np.eye(2), 0.0, boundary=boundary)


def test_a_pentagon_with_convection_has_no_energy_bound():
    """With κ = 0 beside 5 ‖D²v‖ exceeds ‖Δv‖ by 5 %: control problems are refused there, and linear
    ones have a bound of the largest error alone."""
    sides = {"side 1": cordes.Neumann(), "outer": cordes.Robin(5.0)}
    problem = cordes.Linear(PENTAGON, np.eye(2), 1.0, boundary=sides)
    certificate = cordes.solve(problem, progress=False, levels=1).certificate
    assert certificate.Linf is not None
    assert certificate.H2 is None
    with pytest.raises(cordes.CoefficientError, match="κ = 0 beside 5"):
        cordes.HJB(PENTAGON, [1.0, 2.0], lambda x, a: a * jnp.eye(2), f=1.0, boundary=sides)


def test_answers_are_kept(tmp_path):
    boundary = {"outer": cordes.Dirichlet(1.0), "hole 1": cordes.Robin(2.0, 0.0)}
    problem = cordes.Linear(RING, np.eye(2), 1.0, boundary=boundary)
    solution = cordes.solve(problem, progress=False, levels=1, certify=False)
    again = cordes.load(solution.save(tmp_path / "answer.cordes"), problem)
    points = RING.interior_points(50)
    assert np.array_equal(again(points), solution(points))
    other = problem.replace(boundary={**boundary, "hole 1": cordes.Robin(3.0, 0.0)})
    with pytest.raises(cordes.FileError, match=r"R\(3\)"):
        cordes.load(tmp_path / "answer.cordes", other)


FILE = """
schema = 2
kind = "linear"
[domain]
type = "difference"
of = [{type = "box", lower = [0, 0], upper = [1, 1]},
      {type = "ball", center = ["1/2", "1/2"], radius = 0.2}]
[boundary]
outer = {type = "neumann"}
"outer 4" = {type = "dirichlet", g = "x2"}
"hole 1" = {type = "robin", kappa = 2, h = 1}
[equation]
A = [[1, 0], [0, 1]]
f = 1
"""


def test_sides_in_files_and_reports():
    problem = problem_from_toml(FILE, "plate")
    kappas = {(arc.piece, arc.kappa) for arc in problem.domain.arcs}
    assert kappas == {("outer", 0.0), ("outer", None), ("hole 1", 2.0)}
    page = equation(problem).headline.replace("\xa0", " ")
    assert "on outer 1, outer 2 and outer 3" in page
    assert "on hole 1" in page
    halves = {"boundary 1": cordes.Neumann(), "boundary 2": cordes.Dirichlet(1.0)}
    disc = cordes.Linear(cordes.Ball([0, 0], 1), np.eye(2), 1.0, boundary=halves)
    # Where a value becomes a flux on a smooth side there is a corner of 180°.
    assert [corner.angle for corner in disc.domain.corners] == pytest.approx([np.pi, np.pi])
