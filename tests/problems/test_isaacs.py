"""Games: inf over opponents of sup over controls, against manufactured solutions, finite
differences of another kind, and wrong answers whose error is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graded_differences import GradedGrid, value_of_game

import cordes
from cordes.certificates.enclosed.controls import controlled_measure
from cordes.certificates.enclosed.refinement import CellBudget
from cordes.certificates.enclosed.weights import UNIT
from cordes.certificates.residual.candidate import FunctionCandidate
from cordes.errors import CoefficientError, FileError
from cordes.problems.controls.controlled import played, played_index
from cordes.problems.written.toml_file import problem_from_toml
from cordes.solutions.solution import NotThisKindError

SQUARE = cordes.Box([0, 0], [1, 1])
SIDES = (-1.0, 1.0)


def diffusion(x, a, o):
    return jnp.array([[1 + 0.3 * a, 0.3 * o], [0.3 * o, 1 - 0.3 * a]]) * (1 + 0.2 * a * o)


def exact(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1]) * (1 + 0.3 * x[0])


def slack(x, a, o):
    """A smooth table whose inf sup is zero, and whose sup inf is not."""
    against_first = (1 + a) / 2 * -(1 + x[0])
    return jnp.where(o < 0, against_first, (1 + a) / 2 * (0.5 + x[1]) - (1 - a) * x[0])


def costs(x, a, o):
    return jnp.trace(diffusion(x, a, o) @ jax.hessian(exact)(x)) - slack(x, a, o)


@pytest.fixture(scope="module")
def game():
    return cordes.Isaacs(SQUARE, SIDES, SIDES, diffusion, costs, exact=exact)


@pytest.fixture(scope="module")
def solution(game):
    return cordes.solve(game, features=300, progress=False, certify=False)


def test_a_manufactured_game_is_solved(solution):
    assert solution.error().linf <= 1e-9
    # Whoever plays (-1, -1) gets zero, and neither would change.
    np.testing.assert_array_equal(solution.policy([[0.3, 0.2], [0.7, 0.8]]), [-1, -1])
    np.testing.assert_array_equal(solution.opponent([[0.3, 0.2], [0.7, 0.8]]), [-1, -1])


def test_the_fixed_point_finds_the_same(game):
    """Which takes over where Newton's steps go round in circles."""
    options = {"features": 150, "progress": False, "certify": False}
    other = cordes.solve(game, outer="fixed-point", outer_steps=60, **options)
    assert any(step.get("contracting") for step in other.history)
    assert other.error().linf <= 1e-5


def test_players_in_another_order_are_another_game():
    """inf_o sup_a of the costs -ao is 1, sup_a inf_o is -1: Δu = -1 or 1 on a line."""
    line = cordes.Box([0], [1])
    problem = cordes.Isaacs(line, SIDES, SIDES, 1.0, lambda x, a, o: -a * o)
    found = cordes.solve(problem, features=60, progress=False, certify=False)
    np.testing.assert_allclose(found([[0.5]]), [0.125], atol=1e-9)


# An oracle that shares nothing with the package -------------------------------------------------


def rough_costs(x, a, o):
    return -2 - 0.8 * a * o + 1.5 * a * (x[0] - 0.5) + o * (x[1] - 0.4)


def differences(nodes):
    """The game by monotone differences."""
    line = np.linspace(0, 1, nodes)
    grid = GradedGrid(line, line)
    inside = grid.points[1:-1, 1:-1].reshape(-1, 2)
    inner = np.zeros(grid.shape, bool)
    inner[1:-1, 1:-1] = True
    inner = inner.ravel()
    shape = (nodes - 2, nodes - 2)
    operators, sources = [], []
    for o in SIDES:
        for a in SIDES:
            matrix = np.broadcast_to(np.asarray(diffusion(None, a, o)), (*shape, 2, 2))
            operator = grid.operator(matrix, np.zeros((*shape, 2)), np.zeros(shape))
            operators.append(operator.tocsr()[:, inner])
            sources.append(np.array([rough_costs(x, a, o) for x in inside], float))
    whole = np.zeros(grid.shape)
    whole[1:-1, 1:-1] = value_of_game(operators, np.stack(sources), 2).reshape(shape)
    return whole


@pytest.fixture(scope="module")
def played_costs():
    """The values of 17 × 17 points: 33 and 65 nodes, extrapolated."""
    coarse, fine = differences(33)[::2, ::2], differences(65)[::4, ::4]
    return fine + (fine - coarse) / 3


def test_a_game_against_finite_differences(played_costs):
    problem = cordes.Isaacs(SQUARE, SIDES, SIDES, diffusion, rough_costs)
    found = cordes.solve(problem, features=400, progress=False, certify=False)
    line = np.linspace(0, 1, 17)
    values = found(np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1))
    assert np.max(np.abs(values - played_costs)) <= 2e-3 * np.max(np.abs(played_costs))
    # All four pairs are played somewhere.
    inside = SQUARE.interior_points(400, seed=1)
    pairs = np.column_stack([found.policy(inside), found.opponent(inside)])
    assert len(np.unique(pairs, axis=0)) >= 3


# Bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-6, 0.3])
def test_bounds_of_wrong_answers_hold(game, size):
    """The error is known; where it is large, other pairs are best than for the solution."""

    def error(x):
        return size * jnp.prod(x * (1 - x)) * jnp.cos(3 * x[0] + x[1])

    found = cordes.certify(game, lambda x: exact(x) - error(x))
    x = SQUARE.interior_points(4000, seed=3)
    jet = jax.vmap(lambda y: (error(y), jax.grad(error)(y), jax.hessian(error)(y)))
    v, gradient, hessian = (np.asarray(part) for part in jet(jnp.asarray(x)))
    laplace = np.sqrt(np.mean((hessian[:, 0, 0] + hessian[:, 1, 1]) ** 2))
    assert found.Linf >= np.max(np.abs(v))
    assert found.rms >= np.sqrt(np.mean(v**2))
    assert 0.99 * np.sqrt(np.mean(np.sum(gradient**2, axis=1))) <= found.H1
    assert 0.99 * np.sqrt(np.mean(np.sum(hessian**2, axis=(1, 2)))) <= found.H2
    low, high = found.energy
    assert found.lambda_ == 0
    assert 0.99 * low <= laplace <= 1.01 * high
    # Neither is the bound one of something else.
    assert found.Linf <= 200 * np.max(np.abs(v))


def test_the_residual_of_a_game_is_enclosed(game):
    """Cells know ‖min max p‖ from both sides, where pairs take turns."""

    def answer(x):
        return exact(x) * (1 + 0.2 * jnp.sin(5 * x[0]))

    measure = controlled_measure(game, FunctionCandidate(game, answer), [UNIT], CellBudget())
    norm = measure.norm_of(UNIT)
    x = (np.arange(200) + 0.5) / 200
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)

    def residual(y):
        hessian = jax.hessian(answer)(y)
        table = [
            [jnp.trace(diffusion(y, a, o) @ hessian) - costs(y, a, o) for a in SIDES] for o in SIDES
        ]
        return jnp.min(jnp.max(jnp.array(table), axis=1))

    values = np.asarray(jax.jit(jax.vmap(residual))(points))
    truth = float(np.sqrt(np.mean(values**2)))
    assert norm.lower <= truth * (1 + 1e-3)
    assert truth * (1 - 1e-3) <= norm.upper <= 1.1 * truth


def test_what_is_played_is_inf_sup():
    table = np.array([[1.0, 3.0, -2.0], [2.0, 0.0, 2.5]]).ravel()
    assert played(table, 2) == 2.5
    assert played(table, 1) == 3.0
    assert played_index(jnp.asarray(table), 2) == 5
    assert np.isnan(played(np.where(table == 0, np.nan, table), 2))


# In time, in files, and what is refused -----------------------------------------------------------


def test_a_game_with_a_horizon():
    def u(x, t):
        return jnp.sin(jnp.pi * x[0]) * jnp.exp(-t) * (1 + 0.2 * t * x[0])

    def f(x, t, a, o):
        second = jax.hessian(u)(x, t)[0, 0]
        return (1 + 0.4 * a + 0.2 * o) * second - jax.grad(u, argnums=1)(x, t) - slack(x + t, a, o)

    def slack(x, a, o):
        return jnp.where(o < 0, -(1 + a) * x[0], a + 1.0)

    problem = cordes.Isaacs(
        cordes.Box([0], [1]),
        SIDES,
        SIDES,
        lambda x, t, a, o: (1 + 0.4 * a + 0.2 * o) * jnp.eye(1),
        f,
        horizon=0.5,
        initial=lambda x: u(x, 0.0),
        exact=u,
    )
    found = cordes.solve(problem, features=120, progress=False, certify=False)
    assert found.error().linf <= 1e-6
    assert found.policy([0.3], 0.2) == found.opponent([0.3], 0.2) == -1
    # Another pair is best where u_xx is far from that of the solution.
    bounds = cordes.certify(problem, lambda x, t: u(x, t) + 0.1 * t * x[0] * (1 - x[0]))
    assert 0.0125 <= bounds.Linf <= 0.25
    assert 0.1 * np.sqrt(1 / 30 / 12) <= bounds.rms <= 0.1


def test_a_game_with_an_obstacle():
    """½u'' + 1 = 0 below Ψ = 0.2, which parabolas touch at √0.2 from both ends."""
    line = cordes.Box([0], [1])
    pennies = cordes.Isaacs(line, SIDES, SIDES, 0.5, lambda x, a, o: -a * o)
    found = cordes.solve(cordes.Obstacle(pennies, above=0.2), features=100, progress=False)
    x = np.linspace(0, 1, 201)
    truth = 0.2 - np.maximum(np.sqrt(0.2) - np.minimum(x, 1 - x), 0.0) ** 2
    error = np.max(np.abs(found(x[:, None]) - truth))
    assert error <= min(5e-3, found.certificate.Linf)
    assert found.exercise([0.5])
    assert not found.exercise([0.2])


TEXT = """
schema = 2
kind = "isaacs"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 1]
[equation]
controls = [-1, 1]
opponents = [[-1, 0], [1, 2]]
A = [["1 + 0.3*a", "0.1*o1"], ["0.1*o1", "1 - 0.3*a"]]
f = "-1 - a*o1 + x1*o2"
"""


def test_a_game_in_a_file():
    problem = problem_from_toml(TEXT)
    assert isinstance(problem, cordes.Isaacs)
    x, pair = jnp.array([0.3, 0.2]), jnp.asarray(problem.controls)[3]
    np.testing.assert_array_equal(pair, [1, 1, 2])
    np.testing.assert_allclose(problem.A(x, pair), [[1.3, 0.1], [0.1, 0.7]])
    np.testing.assert_allclose(problem.f(x, pair), -1 - 1 + 0.6)
    with pytest.raises(FileError, match="opponents is missing"):
        problem_from_toml(TEXT.replace("opponents = [[-1, 0], [1, 2]]", ""))


def test_what_is_no_game_is_refused(solution):
    with pytest.raises(CoefficientError, match="opponents is empty"):
        cordes.Isaacs(SQUARE, SIDES, [], 1.0, 1.0)
    with pytest.raises(CoefficientError, match="1600 pairs"):
        cordes.Isaacs(SQUARE, range(40), range(40), 1.0, 1.0)
    single = cordes.HJB(SQUARE, SIDES, np.eye(2), 1.0)
    plain = cordes.solve(single, features=20, progress=False, certify=False)
    with pytest.raises(NotThisKindError, match="games are Isaacs"):
        plain.opponent([0.5, 0.5])
    assert "2 controls against 2" in repr(solution.problem)
