"""Functions for kinks of boundary values: what they solve, and what answers become with them."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.graded_differences import GradedGrid, solve_controlled

import cordes
from cordes.ansatz.build import _fronts, kinks_of, plain_ansatz
from cordes.ansatz.singular.kinks import best_sectors, kinked
from cordes.jet import jet_of

SQUARE = cordes.Box([-1, -1], [1, 1])
CONTROLS = np.array([[sigma, rho] for sigma in (0.15, 0.3) for rho in (-0.5, 0.5)])


def variable(x):
    return jnp.array([[2.0, x[0] / 2], [x[0] / 2, 1.0]])


def linear(domain=SQUARE, A=variable, g=lambda x: jnp.abs(x[0]), **others):
    return cordes.Linear(domain, A, 0.0, g=g, **others)


def uncertain_volatility(low, high):
    """Two assets whose volatility and correlation the worst case chooses."""
    return cordes.HJB(
        cordes.Box([low, low], [high, high]),
        CONTROLS,
        A=lambda x, a: (
            0.5
            * a[0] ** 2
            * jnp.array([[x[0] ** 2, a[1] * x[0] * x[1]], [a[1] * x[0] * x[1], x[1] ** 2]])
        ),
        b=lambda x, a: 0.05 * x,
        c=0.05,
        f=0.0,
        g=lambda x: jnp.maximum(jnp.maximum(x[0], x[1]) - 100, 0),
    )


def volatility_by_differences(low, high, cells):
    """The same by monotone differences on a geometric grid with 80, 100 and 120 among its nodes:
    u and the best control at (100, 100) and (120, 80)."""
    stops = [low, 80, 100, 120, high]
    counts = [round(cells * np.log(b / a) / np.log(high / low)) for a, b in pairwise(stops)]
    pieces = [
        a * (b / a) ** (np.arange(n) / n) for (a, b), n in zip(pairwise(stops), counts, strict=True)
    ]
    nodes = np.append(np.concatenate(pieces), high)
    grid = GradedGrid(nodes, nodes)
    x = grid.points[1:-1, 1:-1]
    square = x[..., :, None] * x[..., None, :]
    equations = [
        (
            0.5 * sigma**2 * square * np.array([[1, rho], [rho, 1]]),
            0.05 * x,
            np.full(x.shape[:2], 0.05),
            np.zeros(x.shape[:2]),
        )
        for sigma, rho in CONTROLS
    ]
    g = np.maximum(np.max(grid.points, axis=-1) - 100, 0)
    u, best = solve_controlled(grid, equations, g)
    low_node, middle, high_node = np.cumsum(counts)[:3]
    places = [(middle, middle), (high_node, low_node)]
    return np.array([u[i, j] for i, j in places]), [best[i - 1, j - 1] for i, j in places]


DOMAINS = {
    "square": (SQUARE, lambda x: jnp.abs(x[0] - 0.2) * jnp.cos(x[1])),
    "triangle": (
        cordes.Polygon([[0, 0], [1, 0], [0.3, 1]]),
        lambda x: jnp.maximum(x[0] - x[1] - 0.3, 0) + x[1] ** 2,
    ),
    "disk": (cordes.Ball([0.1, 0.2], 0.7), lambda x: jnp.abs(x[0] - 0.2) + jnp.exp(x[1])),
    "ellipse": (cordes.Ellipsoid([0, 0], [[1, 0.2], [0.0, 0.5]]), lambda x: jnp.abs(x[0])),
}


@pytest.mark.long
@pytest.mark.parametrize("case", list(DOMAINS))
def test_the_lift_takes_the_boundary_values_and_has_no_kink_inside(case):
    domain, g = DOMAINS[case]
    lift = plain_ansatz(linear(domain, np.eye(2), g), True, "coordinates").lift
    points, _ = domain.boundary_points(300, seed=3)
    values = jax.jit(jax.vmap(lift))(points)
    np.testing.assert_allclose(values, jax.vmap(g)(points), atol=2e-12)
    # Across lines inside the slopes change by what second derivatives explain.
    slope = jax.jit(jax.vmap(jax.grad(lift)))
    starts = domain.interior_points(4000, seed=4)
    starts = starts[domain.contains(starts, tolerance=-0.05)]
    step = 1e-4 * np.random.default_rng(5).standard_normal(starts.shape)
    change = np.linalg.norm(np.asarray(slope(starts + step)) - slope(starts), axis=1)
    assert np.max(change / np.linalg.norm(step, axis=1)) < 200


def test_the_first_function_solves_the_frozen_equation():
    problem = linear()
    function = kinked(kinks_of(problem), 2.0)
    jets, kink = jax.jit(jax.vmap(jet_of(function))), np.array([0.0, -1.0])
    A = np.asarray(variable(kink))
    for r in (1e-2, 1e-4, 1e-6):
        angle = np.linspace(0.1, np.pi - 0.1, 7)
        x = kink + r * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        hessian = np.asarray(jets(x).hessian)
        assert np.max(np.abs(hessian)) > 0.1 / r
        assert np.max(np.abs(np.sum(A * hessian, axis=(1, 2)))) < 1.0


def test_the_derivatives_in_closed_form_are_those_of_the_formula():
    problem = linear(g=lambda x: jnp.abs(x[0] - 0.1) * jnp.exp(x[0]) + jnp.maximum(x[1], 0))
    function = kinked(kinks_of(problem), 2.0)
    jets, x, step = jax.jit(jax.vmap(jet_of(function))), SQUARE.interior_points(20, seed=6), 1e-5
    here = jets(x)
    for e in np.eye(2):
        ahead, behind = (jets(x + s * step * e) for s in (1, -1))
        np.testing.assert_allclose(
            (ahead.value - behind.value) / (2 * step), here.gradient @ e, atol=1e-8
        )
        np.testing.assert_allclose(
            (ahead.gradient - behind.gradient) / (2 * step), here.hessian @ e, rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_the_first_function_of_several_controls_solves_the_best_one(seed, sense):
    generator = np.random.default_rng(seed)
    roots = generator.standard_normal((4, 2, 2))
    matrices = roots @ np.swapaxes(roots, 1, 2) + 0.3 * np.eye(2)
    jump = generator.choice([-1.0, 1.0])
    problem = cordes.HJB(
        SQUARE,
        np.arange(4.0)[:, None],
        A=lambda x, a: jnp.asarray(matrices)[a[0].astype(int)],
        f=0.0,
        g=lambda x: jump * jnp.abs(x[0]),
        sense="sup" if sense > 0 else "inf",
    )
    parts = kinks_of(problem)
    lift = kinked(parts, 2.0)
    angle, r = np.linspace(0.01, np.pi - 0.01, 300), 1e-3
    x = np.array([0.0, -1.0]) + r * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    hessian = np.asarray(jax.jit(jax.vmap(jet_of(lift)))(jnp.asarray(x)).hessian)
    # The kink on the other side adds something bounded.
    values = sense * np.max(sense * np.einsum("aij,nij->na", matrices, hessian), axis=1)
    assert np.max(np.abs(values)) < 20 < 0.1 * np.max(np.abs(hessian))


def test_sectors_of_one_control_are_none():
    sectors = best_sectors(np.array([np.eye(2), 3 * np.eye(2)]), 1.0, 1.0)
    assert len(sectors.matrices) == 1


def test_a_curved_jump_of_A_at_a_kink_is_refused_before_long_work():
    def A(x):
        return jnp.where(x[0] > 0.3 * (x[1] ** 2 - 1), 2.0, 1.0) * jnp.eye(2)

    with pytest.raises(cordes.CordesError, match=r"A jumps at x = .*where g has a kink"):
        cordes.solve(linear(A=A))


@pytest.mark.long
def test_a_straight_jump_of_A_at_a_kink_is_found():
    """A is a number times the identity and f = 0: the jump changes nothing."""
    jumping = linear(A=lambda x: jnp.where(x[0] > 0, 2.0, 1.0) * jnp.eye(2))
    solution, plain = cordes.solve(jumping), cordes.solve(linear(A=np.eye(2)))
    x = SQUARE.interior_points(500, seed=3)
    np.testing.assert_allclose(solution(x), plain(x), rtol=0, atol=1e-12)


# Solves -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_absolute_value_as_boundary_values():
    """u(0, 0) by finite differences on graded grids, extrapolated: 0.82507381."""
    solution = cordes.solve(linear())
    assert solution.result.value == "converged"
    assert abs(float(solution(np.zeros(2))) - 0.82507381) < 1e-8
    assert solution.certificate.Linf < 1e-4
    # The reflected point, by symmetry.
    x = SQUARE.interior_points(50, seed=9)
    assert np.max(np.abs(solution(x) - solution(x * [-1, 1]))) < 2 * solution.certificate.Linf


@pytest.mark.long
@pytest.mark.parametrize("case", ["identity", "variable", "triangle"])
def test_manufactured_answers_with_a_kink(case):
    """u = (1 + 0.3x) Im(w log w) + cos(x + 2y): f is then bounded and discontinuous at the kink."""
    A = variable if case != "identity" else lambda x: jnp.eye(2)
    domain = SQUARE if case != "triangle" else cordes.Polygon([[0, 0], [1, 0], [0.3, 1]])
    place, tangent = (
        (np.array([0.65, 0.5]), np.array([-0.7, 1]) / np.sqrt(1.49))
        if case == "triangle"
        else (np.array([0.3, -1.0]), np.array([1.0, 0.0]))
    )
    frame = np.array([tangent, [-tangent[1], tangent[0]]])
    (a11, a12), (_, a22) = frame @ np.asarray(A(place)) @ frame.T
    root = (-a12 + 1j * np.sqrt(a11 * a22 - a12**2)) / a22

    def exact(x):
        X, Y = frame @ (x - place)
        real, imaginary = X + root.real * Y, root.imag * Y
        square = real**2 + imaginary**2
        zero = square == 0
        logarithm = 0.5 * jnp.log(jnp.where(zero, 1.0, square))
        angle = jnp.pi / 2 - jnp.arctan2(jnp.where(zero, 1.0, real), imaginary)
        singular = imaginary * logarithm + real * angle
        return (1 + 0.3 * x[0]) * singular + jnp.cos(x[0] + 2 * x[1])

    problem = cordes.Linear(
        domain, A, lambda x: jnp.sum(A(x) * jax.hessian(exact)(x)), g=exact, exact=exact
    )
    solution = cordes.solve(problem)
    assert solution.error().linf < 1e-8
    assert solution.certificate.Linf is None or solution.certificate.Linf > solution.error().linf


@pytest.mark.long
def test_harmonic_functions_in_a_disk():
    """Against Poisson's integral, by the Fourier series of the boundary values."""

    def g(x):
        return jnp.abs(x[0] - 0.2)

    solution = cordes.solve(linear(cordes.Ball([0.0, 0.0], 1.0), np.eye(2), g))
    angle = 2 * np.pi * np.arange(1 << 16) / (1 << 16)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    series = np.fft.rfft(np.asarray(jax.vmap(g)(circle))) / len(angle)
    x = 0.9 * cordes.Ball([0.0, 0.0], 1.0).interior_points(100, seed=7)
    powers = (x[:, 0] + 1j * x[:, 1])[:, None] ** np.arange(1, 1500)
    truth = series[0].real + 2 * np.real(powers @ series[1:1500])
    assert np.max(np.abs(solution(x) - truth)) < min(2e-5, solution.certificate.Linf)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The Cordès condition is violated")
def test_a_payoff_of_two_assets():
    """Four digits and the policy, against monotone differences on two grids."""
    low, high = 60, 140
    (coarse, _), (fine, best) = (volatility_by_differences(low, high, n) for n in (60, 120))
    assert np.max(np.abs(fine - coarse)) < 2e-3
    solution = cordes.solve(uncertain_volatility(low, high))
    places = np.array([[100.0, 100.0], [120.0, 80.0]])
    assert np.max(np.abs(solution(places) / fine - 1)) < 1e-4
    np.testing.assert_allclose(solution.policy(places), CONTROLS[best])
    assert solution.certificate.Linf is None or solution.certificate.Linf > 1e-3


@pytest.mark.long
def test_a_wrong_control_at_a_kink_is_noticed(monkeypatch):
    """With A of the second control alone the residual grows like 1/r, which no points see."""
    problem = cordes.HJB(
        SQUARE,
        [[-0.3], [0.3]],
        A=lambda x, a: jnp.array([[1.0, a[0]], [a[0], 1.0]]),
        f=0.0,
        g=lambda x: jnp.abs(x[0]),
    )
    right = cordes.solve(problem, features=250)
    assert right.certificate.Linf is not None
    monkeypatch.setattr(
        "cordes.ansatz.singular.kinks.best_sectors",
        lambda matrices, *_: best_sectors(matrices[1:], 1.0, 1.0),
    )
    wrong = cordes.solve(problem.replace(name="wrong"), features=250)
    assert wrong.certificate.Linf is None
    assert "1/r" in wrong.certificate.reason


@pytest.mark.long
def test_what_cannot_be_followed_is_never_converged():
    with pytest.warns(UserWarning, match="g has a kink"):
        problem = cordes.Linear(
            cordes.Box([-1] * 3, [1] * 3), np.eye(3), 0.0, g=lambda x: jnp.abs(x[0])
        )
    solution = cordes.solve(problem, features=200)
    assert solution.result.value == "not_certifiable"
    assert solution.certificate.rms is None
    assert "kink" in solution.certificate.reason


@pytest.mark.long
def test_an_answer_with_kinks_can_be_kept(tmp_path):
    problem = linear()
    solution = cordes.solve(problem, features=200)
    path = tmp_path / "answer.cordes"
    solution.save(path)
    again = cordes.load(path, problem)
    x = SQUARE.interior_points(50)
    np.testing.assert_array_equal(again(x), solution(x))


@pytest.mark.long
def test_a_kink_of_initial_values_is_the_same_where_it_is_compiled():
    """The way to the kink x1 = 0 goes along A n, also of a matrix that is computed."""
    A = 0.01 * jnp.array([[2.0, 1.0], [1.0, 2.0]])

    def payoff(x):
        return jnp.maximum(1 - jnp.exp(x[0]), 0.0)

    problem = cordes.Parabolic(
        cordes.Box([-1, -1], [1, 1]),
        1.0,
        A=lambda x, t: A * jnp.exp(0 * x[0]),
        f=0.0,
        g=lambda x, t: payoff(x),
        initial=payoff,
    )
    (front,) = _fronts(problem).fronts
    # Which side is which is free.
    np.testing.assert_allclose(np.abs(front._direction), [1.0, 0.5])
    x = jnp.array([0.3, -0.2])
    found, told = jax.jit(front.distance)(x), front.distance(x)
    np.testing.assert_allclose(found, told, rtol=1e-12)
    # Of a constant matrix, x1/√(n·A n).
    np.testing.assert_allclose(abs(found[0]), 0.3 / np.sqrt(0.02), rtol=1e-12)
