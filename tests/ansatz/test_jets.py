"""Jets written by hand against automatic differentiation and finite differences, and their promise
to be faster."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.ansatz.ansatz import Ansatz
from cordes.ansatz.networks import MLP, Frozen, Inputs, RandomFeatures
from cordes.ansatz.networks.activations import ACTIVATIONS, activation_jet
from cordes.ansatz.singular import SingularFunctions
from cordes.errors import OptionError
from cordes.jet import contract
from cordes.solvers.rows.system import System

POINTS = 9


def box(dimension):
    return cordes.Box([-1.0] * dimension, [1.5] * dimension)


def interfaces(dimension):
    """A flat one and a curved one."""
    return [lambda x: x[0] - 0.123, lambda x: jnp.sum(x**2) - 0.4 * dimension]


def spd(generator, count, dimension):
    factor = generator.standard_normal((count, dimension, dimension))
    return factor @ np.swapaxes(factor, 1, 2) + np.eye(dimension)


def network_of(kind, dimension, activation, depth):
    inputs = Inputs(box(dimension), interfaces(dimension), (2.25, 3.0))
    if kind == "mlp":
        return MLP(inputs, 7, depth, activation, seed=3)
    network = RandomFeatures(inputs, 11, 1.3, seed=3, activation=activation)
    return network.with_coefficients(np.random.default_rng(4).standard_normal(11))


CASES = [
    ("mlp", d, activation, depth)
    for d, activation, depth in [
        (1, "silu", 3),
        (2, "tanh", 2),
        (2, "silu", 1),
        (3, "sine", 2),
        (5, "tanh", 2),
    ]
]
CASES += [
    ("random", 1, "sine", 1),
    ("random", 2, "sine", 1),
    ("random", 3, "tanh", 1),
    ("random", 5, "silu", 1),
]


@pytest.mark.parametrize(("kind", "dimension", "activation", "depth"), CASES)
def test_jets_of_networks_are_those_of_automatic_differentiation(
    kind, dimension, activation, depth
):
    network = network_of(kind, dimension, activation, depth)
    x = jnp.asarray(box(dimension).interior_points(POINTS, seed=5))
    A = jnp.asarray(spd(np.random.default_rng(6), POINTS, dimension))

    def value(point):
        return network.value(point[None])[0]

    truth = [
        jax.jit(jax.vmap(derivative))(x)
        for derivative in (value, jax.grad(value), jax.hessian(value))
    ]
    for ours, theirs in zip(jax.jit(lambda x: network.jet(x))(x), truth, strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-10 * max(1.0, float(jnp.max(jnp.abs(theirs))))
        )
    assert float(jnp.max(jnp.abs(truth[2]))) > 1e-3
    operator = jax.jit(lambda x, A: network.operator_jet(x, A))(x, A)
    for ours, theirs in zip(operator, (truth[0], truth[1], contract(A, truth[2])), strict=True):
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-10 * max(1.0, float(jnp.max(jnp.abs(theirs))))
        )


@pytest.mark.parametrize(("kind", "depth"), [("mlp", 2), ("random", 1)])
def test_rows_are_features_times_coefficients_and_the_expression_of_the_jet(kind, depth):
    network = network_of(kind, 2, "sine", depth)
    generator = np.random.default_rng(8)
    x = jnp.asarray(box(2).interior_points(POINTS, seed=9))
    second = jnp.asarray(spd(generator, POINTS, 2))
    zeroth, first = (
        jnp.asarray(generator.standard_normal(POINTS)),
        jnp.asarray(generator.standard_normal((POINTS, 2))),
    )
    frozen = Frozen(jax.jit(jax.vmap(network.inputs.jet))(x), zeroth, first, second)
    rows, features = jax.jit(lambda frozen: (network.rows(frozen), network.row_features(frozen)))(
        frozen
    )
    np.testing.assert_allclose(features @ network.coefficients, rows, rtol=1e-12, atol=1e-12)
    jet = jax.jit(lambda x: network.jet(x))(x)
    np.testing.assert_allclose(
        zeroth * jet.value + jnp.sum(first * jet.gradient, 1) + contract(second, jet.hessian),
        rows,
        rtol=1e-11,
        atol=1e-11,
    )


def test_parts_of_a_network_hold_its_features_in_order():
    network = network_of("random", 2, "sine", 1)
    x = jnp.asarray(box(2).interior_points(POINTS, seed=9))
    parts = network.parts(4)
    assert [part.coefficients.shape[0] for part in parts] == [4, 4, 3]
    np.testing.assert_allclose(
        sum(np.asarray(part.value(x)) for part in parts), network.value(x), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activation_derivatives(name):
    s = jnp.linspace(-4.0, 4.0, 41)
    value, first, second = activation_jet(name)(s)

    def function(t):
        return activation_jet(name)(t)[0]

    np.testing.assert_allclose(
        value, {"silu": jax.nn.silu, "tanh": jnp.tanh, "sine": jnp.sin}[name](s), atol=1e-14
    )
    np.testing.assert_allclose(first, jax.vmap(jax.grad(function))(s), atol=1e-13)
    np.testing.assert_allclose(second, jax.vmap(jax.grad(jax.grad(function)))(s), atol=1e-13)


def test_unknown_activation_names_the_nearest():
    with pytest.raises(OptionError, match="tanh"):
        activation_jet("tahn")


def test_inputs_choose_what_a_network_sees():
    inputs = Inputs(box(2), interfaces(2), (2.25, 3.0))
    assert inputs.count == 8
    assert list(inputs.active("coordinates")) == [1, 1, 0, 0, 0, 0, 0, 0]
    assert list(inputs.active("interfaces")) == [1, 1, 1, 0, 0, 1, 0, 0]
    assert list(inputs.active("powers")) == [1] * 8


def fastest(functions, *arguments, times=6):
    """Best time of each compiled function, measured in turn so that a busy moment hits all."""
    compiled = [jax.jit(function) for function in functions]
    seconds = [[] for _ in compiled]
    for function in compiled:
        jax.block_until_ready(function(*arguments))
    for _ in range(times):
        for function, list_ in zip(compiled, seconds, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            list_.append(time.perf_counter() - start)
    return [min(list_) for list_ in seconds]


def test_jets_are_never_slower_than_automatic_differentiation():
    """Evaluated, and differentiated by the weights as a training step does."""
    network = MLP(Inputs(box(2)), 64, 4)
    x = jnp.asarray(box(2).interior_points(4000, seed=1))
    A = jnp.asarray(spd(np.random.default_rng(2), 4000, 2))
    frozen = Frozen(jax.vmap(network.inputs.jet)(x), jnp.zeros(4000), jnp.zeros((4000, 2)), A)

    def automatic(network, A):
        def value(point):
            return network.value(point[None])[0]

        return (
            jax.vmap(value)(x),
            jax.vmap(jax.grad(value))(x),
            contract(A, jax.vmap(jax.hessian(value))(x)),
        )

    def step(rows):
        return lambda network, A: jax.grad(
            lambda p: jnp.sum(rows(network.with_parameters(p), A) ** 2)
        )(network.parameters)

    ours, theirs = fastest([lambda network, A: network.operator_jet(x, A), automatic], network, A)
    assert ours <= theirs
    ours, theirs = fastest(
        [
            step(lambda network, A: network.rows(frozen)),
            step(lambda network, A: automatic(network, A)[2]),
        ],
        network,
        A,
        times=3,
    )
    assert ours <= theirs


# Ansatz -------------------------------------------------------------------------------------------


def test_ansatz_with_lift_on_the_disk():
    domain = cordes.Ball([0.2, -0.1], 1.5)

    def g(x):
        return jnp.exp(x[0]) * jnp.cos(2 * x[1])

    ansatz = Ansatz(domain, g)
    network = MLP(ansatz.inputs, 8, 2, "tanh", seed=1)
    x = domain.interior_points(POINTS, seed=2)
    jet = ansatz.jet(network, np.zeros(0), x)
    gradient, hessian = differences(lambda points: ansatz.value(network, np.zeros(0), points), x)
    np.testing.assert_allclose(jet.gradient, gradient, atol=1e-8 * np.max(np.abs(gradient)))
    np.testing.assert_allclose(jet.hessian, hessian, atol=1e-7 * np.max(np.abs(hessian)))
    np.testing.assert_allclose(
        ansatz.value(network, np.zeros(0), x), jet.value, rtol=1e-12, atol=1e-12
    )
    boundary, _ = domain.boundary_points(40, seed=3)
    np.testing.assert_allclose(
        ansatz.value(network, np.zeros(0), boundary), jax.vmap(g)(boundary), atol=1e-11
    )


def differences(function, x, step=1e-3):
    """Gradient (N, 2, …) and Hessian (N, 2, 2, …) by central differences of fourth order."""
    offsets, first = np.array([-2, -1, 1, 2]), np.array([1, -8, 8, -1]) / 12
    units = np.eye(2) * step
    gradient = np.stack(
        [
            sum(w * function(x + k * unit) for k, w in zip(offsets, first, strict=True)) / step
            for unit in units
        ],
        axis=1,
    )

    def slope(j):
        return lambda y: (
            sum(w * function(y + k * units[j]) for k, w in zip(offsets, first, strict=True)) / step
        )

    rows = [
        [
            sum(w * slope(j)(x + k * units[i]) for k, w in zip(offsets, first, strict=True)) / step
            for j in range(2)
        ]
        for i in range(2)
    ]
    return gradient, np.stack([np.stack(row, axis=1) for row in rows], axis=1)


@pytest.fixture(scope="module")
def rough():
    """The singular functions of a problem with corners, meeting points and a crossing, and points
    away from all of them and from the interfaces."""
    problem = cordes.gallery["ex4.4-discontinuous"]
    system = System(problem)
    x = problem.domain.interior_points(400, seed=7)
    gaps = np.min(
        np.linalg.norm(
            x[:, None] - np.array([point.location for point in system.singular_points]), axis=2
        ),
        axis=1,
    )
    return system, x[
        (gaps > 0.25) & np.all(np.abs(x) > 0.02, axis=1) & np.all(np.abs(x) < 0.98, axis=1)
    ][:12]


def test_rows_of_singular_functions_are_those_of_finite_differences(rough):
    system, x = rough
    functions: SingularFunctions = system.ansatz.singular
    assert len(x) == 12
    assert functions.count > 50
    generator = np.random.default_rng(10)
    zeroth, first, second = (
        generator.standard_normal(12),
        generator.standard_normal((12, 2)),
        spd(generator, 12, 2),
    )
    values = functions.values(x)
    gradient, hessian = differences(functions.values, x)
    expected = (
        zeroth[:, None] * values
        + np.einsum("ni,nik->nk", first, gradient)
        + np.einsum("nij,nijk->nk", second, hessian)
    )
    scale = np.max(np.abs(expected), axis=0) + 1
    np.testing.assert_allclose(
        functions.rows(x, zeroth, first, second) / scale, expected / scale, rtol=0, atol=1e-6
    )


def test_jet_of_the_whole_ansatz_with_singular_functions(rough):
    system, x = rough
    ansatz = system.ansatz
    network = MLP(ansatz.inputs, 6, 2, "tanh", seed=2)
    amplitudes = np.random.default_rng(11).standard_normal(ansatz.singular.count)
    jet = ansatz.jet(network, amplitudes, x)
    gradient, hessian = differences(lambda points: ansatz.value(network, amplitudes, points), x)
    np.testing.assert_allclose(jet.value, ansatz.value(network, amplitudes, x), rtol=1e-12)
    np.testing.assert_allclose(jet.gradient, gradient, atol=1e-7 * np.max(np.abs(gradient)))
    np.testing.assert_allclose(jet.hessian, hessian, atol=1e-6 * np.max(np.abs(hessian)))


def test_frozen_rows_are_the_equation_applied_to_the_ansatz(rough):
    system, x = rough
    ansatz = system.ansatz
    network = MLP(ansatz.inputs, 6, 2, "tanh", seed=2)
    generator = np.random.default_rng(12)
    amplitudes = generator.standard_normal(ansatz.singular.count)
    A, b, c, f, factor = (
        spd(generator, 12, 2),
        generator.standard_normal((12, 2)),
        generator.random(12),
        generator.random(12),
        1 + generator.random(12),
    )
    rows = ansatz.freeze(x, A, b, c, f, factor)
    jet = ansatz.jet(network, amplitudes, x)
    expected = factor * (
        np.sum(A * jet.hessian, axis=(1, 2)) + np.sum(b * jet.gradient, axis=1) - c * jet.value - f
    )
    residual = network.rows(rows.frozen) + rows.singular @ amplitudes - rows.target
    np.testing.assert_allclose(residual, expected, atol=1e-10 * np.max(np.abs(expected)))
