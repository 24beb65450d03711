"""Cells: the tree, the windows, the columns of rich cells and the function that they make, against
automatic differentiation, finite differences and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.cells.jets import as_rows, quotient, times
from cordes.ansatz.cells.levels import levels_of
from cordes.ansatz.cells.tree import UNITS, locate, start_tree, valid
from cordes.ansatz.cells.windows import REACH, make_windows, smoothstep
from cordes.jet import jet_of

UNIT = np.zeros(2), np.ones(2)


def random_tree(seed, steps=6):
    """Cells of any shape: halved here and there along one axis or both."""
    generator = np.random.default_rng(seed)
    tree = start_tree([[-1.0, 0.3, 2.0], [0.5, 0.9]], 1)
    for _ in range(steps):
        tree, _ = tree.split(generator.uniform(size=(tree.count, 2)) < 0.3)
    return tree


@pytest.mark.parametrize("seed", range(5))
def test_a_point_is_in_the_cell_that_is_found_for_it(seed):
    tree = random_tree(seed)
    lower, upper = tree.boxes
    x = tree.lower + (tree.upper - tree.lower) * np.random.default_rng(seed).uniform(size=(500, 2))
    found = locate(tree.path(), x)
    assert np.all((lower[found] <= x) & (x <= upper[found]))
    assert np.sum(np.prod(upper - lower, axis=1)) == pytest.approx(3 * 0.4, rel=1e-14)
    assert valid(tree.lines, tree.cells)


def test_cells_that_do_not_tile_the_box_are_noticed():
    tree = random_tree(1)
    lines, cells = tree.lines, tree.cells
    assert not valid(lines, cells[1:])
    assert not valid(lines, np.concatenate([cells[:1], cells]))
    moved = cells.copy()
    moved[0, 0, 1] -= UNITS // 64
    assert not valid(lines, moved)
    assert not valid(lines, np.zeros((0, 2, 2), int))


def test_children_know_their_parents():
    tree = random_tree(2)
    marks = np.random.default_rng(0).uniform(size=(tree.count, 2)) < 0.5
    children, parents = tree.split(marks)
    low, high = tree.boxes
    lower, upper = children.boxes
    assert np.all((low[parents] <= lower) & (upper <= high[parents]))
    assert np.array_equal(np.bincount(parents), 2 ** np.sum(marks, axis=1))


def test_a_smoothstep_has_the_derivatives_that_it_says():
    t = jnp.linspace(-0.5, 1.5, 41)
    value, first, second = smoothstep(np.asarray(t))
    plain = lambda s: smoothstep(s, jnp).value  # noqa: E731
    np.testing.assert_allclose(value, jax.vmap(plain)(t), atol=1e-15)
    inside = (t > 0.001) & (t < 0.999)
    np.testing.assert_allclose(first[inside], jax.vmap(jax.grad(plain))(t)[inside], atol=1e-13)
    bend = jax.vmap(jax.grad(jax.grad(plain)))(t)[inside]
    np.testing.assert_allclose(second[inside], bend, atol=1e-12)
    assert abs(second[0]) == abs(second[-1]) == 0


def test_windows_reach_no_further_than_the_shorter_neighbour_allows():
    tree = random_tree(3)
    windows, (lower, upper) = make_windows(tree, np.zeros(tree.count, bool)), tree.boxes
    sides = (upper - lower)[:, (0, 0, 1, 1)]
    assert np.all(np.isinf(windows.reach) == tree.outer)
    inner = ~tree.outer
    assert np.all(windows.reach[inner] <= REACH * sides[inner] * (1 + 1e-15))
    assert np.all(windows.members[:, 0] == np.arange(tree.count))


def _one(x):
    return jnp.sin(jnp.sum(x)) * x[0] ** 2


def _other(x):
    return 2 + jnp.prod(jnp.cos(x))


def _product(x):
    return _one(x) * _other(x)


def _ratio(x):
    return _one(x) / _other(x)


def test_products_and_quotients_have_the_derivatives_that_they_say():
    """Against automatic differentiation, in one to three dimensions."""
    for d in (1, 2, 3):
        x = np.random.default_rng(d).uniform(0.2, 0.8, (5, d))
        a, b = (as_rows(jax.vmap(jet_of(f))(x)) for f in (_one, _other))
        product = as_rows(jax.vmap(jet_of(_product))(x))
        ratio = as_rows(jax.vmap(jet_of(_ratio))(x))
        np.testing.assert_allclose(times(a, b), product, atol=1e-13)
        np.testing.assert_allclose(quotient(a, b), ratio, atol=1e-13)


@pytest.mark.parametrize(
    "domain",
    [
        cordes.Box([0, 1], [2, 3]),
        cordes.Polygon([[0, 0], [2, 0], [1, 1.5]]),
        cordes.Ellipsoid([0.3, 0.1], [2, 1]),
        cordes.Ball([0, 0, 1], 2),
    ],
)
def test_levels_vanish_on_the_boundary_and_are_positive_inside(domain):
    levels = levels_of(domain)
    boundary, _ = domain.boundary_points(50, 0)
    inside = domain.interior_points(50)
    on = np.min(np.abs([level.rows(boundary)[0] for level in levels]), axis=0)
    assert np.max(on) < 1e-14
    for level in levels:
        rows = level.rows(inside)
        assert np.min(rows[0]) > 0
        np.testing.assert_allclose(rows, as_rows(jax.vmap(jet_of(level))(inside)), atol=1e-13)


def bent(x):
    """A jumps across a circle that cuts cells, and corners have singular functions."""
    return jnp.where(x @ x < 0.3, jnp.array([[2.0, 0.4], [0.4, 1.0]]), jnp.eye(2))


@pytest.fixture(scope="module")
def answer():
    problem = cordes.Linear(
        cordes.Box([-1, -1], [1, 1]),
        bent,
        lambda x: jnp.cos(3 * x[0]),
        g=lambda x: x[0] * jnp.exp(x[1]),
        interfaces=[lambda x: x @ x - 0.3],
    )
    return cordes.solve(problem, method="cells", cells=16, certify=False)


def test_derivatives_are_those_of_the_function_in_a_trace(answer):
    """In cells of all kinds and between them; JAX evaluates another program than NumPy does."""
    network = answer.network
    assert len(network.rich.numbers) > 0
    assert np.any(network.rich.interfaces)
    x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    lower, upper = network.boxes
    x = np.concatenate([x, upper[:20] - 0.01 * (upper - lower)[:20]])
    jet = answer.jet(x)
    traced = jax.vmap(jet_of(lambda point: answer(point)))(x)
    size = np.max(np.abs(jet.hessian))
    np.testing.assert_allclose(jet.value, traced.value, atol=1e-12)
    np.testing.assert_allclose(jet.gradient, traced.gradient, atol=1e-11)
    np.testing.assert_allclose(jet.hessian, traced.hessian, atol=1e-9 * size)


def test_boundary_values_are_exact(answer):
    x, _ = answer.problem.domain.boundary_points(500, 1)
    g = jax.vmap(answer.problem.g)(jnp.asarray(x))
    assert np.max(np.abs(answer(x) - g)) < 1e-13


def test_sizes_are_those_of_terms(answer):
    """They bound the value, and are not much larger where nothing cancels."""
    x = np.random.default_rng(1).uniform(-1, 1, (200, 2))
    A, b, c, _ = answer.problem.coefficients(x)
    applied, sizes = answer.network.applied(x, A, b, c)
    assert np.all(np.abs(applied) <= sizes * (1 + 1e-12))
    jet = answer.network.jet_at(x)
    np.testing.assert_allclose(applied, np.sum(A * jet.hessian, axis=(1, 2)), rtol=1e-9, atol=1e-9)


def test_columns_of_singular_functions_have_their_mixed_derivative():
    """By finite differences: rows for single derivatives need symmetric matrices."""
    problem = cordes.Linear(cordes.Box([-1, -1], [1, 1]), 1.0, 1.0)
    solution = cordes.solve(problem, method="cells", cells=60, certify=False)
    network = solution.network
    row = int(np.flatnonzero(np.any(network.rich.points, axis=1))[0])
    place, columns, step = network.places[row], network.columns, 1e-5
    x = place.lower + (place.upper - place.lower) * np.array([[0.3, 0.4], [0.7, 0.2]])
    shift = np.array([0.0, step])
    ahead, behind = columns.at(place, x + shift), columns.at(place, x - shift)
    here = columns.at(place, x)
    assert here.shape[2] == columns.count(place)
    for derivative, of in ((2, 0), (4, 1), (5, 2)):
        slope = (ahead[of] - behind[of]) / (2 * step)
        scale = np.max(np.abs(here[derivative]), axis=0) + 1.0
        assert np.max(np.abs(slope - here[derivative]) / scale) < 1e-5
