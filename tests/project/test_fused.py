"""The loss and its gradient by hand, packed and in one kernel (interpreted), against automatic
differentiation of the plain loss in double precision."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import cordes
from cordes.ansatz.networks import MLP, Frozen, Inputs
from cordes.solvers.train import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "adam_kernel"))
from fused import Plan, available, fused_loss
from packed import matrix_of, packed_loss, shape_of, table_of

POINTS = 37


def case(activation, width=16, depth=3, dimension=2, dtype=jnp.float32):
    """A network with an interface among its inputs, so that their second derivatives count, and an
    expression with all its terms."""
    generator = np.random.default_rng(2)
    domain = cordes.Box([-1.0] * dimension, [1.5] * dimension)
    inputs = Inputs(domain, [lambda x: x[0] - 0.123 + x[1] ** 2])
    factor = generator.standard_normal((POINTS, dimension, dimension))
    frozen = Frozen(
        jax.jit(jax.vmap(inputs.jet))(jnp.asarray(domain.interior_points(POINTS, seed=5))),
        generator.standard_normal(POINTS),
        generator.standard_normal((POINTS, dimension)),
        factor @ np.swapaxes(factor, 1, 2) + np.eye(dimension),
    )
    network = MLP(inputs, width, depth, activation, seed=3, dtype=dtype)
    return network, *cast((frozen, jnp.asarray(generator.standard_normal(POINTS))), dtype)


def value_and_gradient(loss, network):
    """Three times a loss, so that a factor in front of it counts, and its gradient as one
    vector."""
    value, gradient = jax.jit(
        jax.value_and_grad(lambda parameters: 3 * loss(network.with_parameters(parameters)))
    )(network.parameters)
    return float(value), np.asarray(ravel_pytree(gradient)[0], float)


def truth(network, frozen, target):
    frozen, target, double = cast((frozen, target, network), jnp.float64)
    return value_and_gradient(lambda network: jnp.sum((network.rows(frozen) - target) ** 2), double)


def check(found, expected, tolerance):
    (value, gradient), (true_value, true_gradient) = found, expected
    assert abs(value - true_value) < tolerance * true_value
    assert np.max(np.abs(gradient - true_gradient)) < tolerance * np.max(np.abs(true_gradient))
    # Every entry counts, small ones too: a part of the gradient that is left out is not small
    # against itself.
    np.testing.assert_allclose(
        gradient,
        true_gradient,
        rtol=100 * tolerance,
        atol=tolerance * np.max(np.abs(true_gradient)),
    )


@pytest.mark.parametrize(
    ("activation", "dtype", "tolerance"),
    [("silu", jnp.float64, 1e-12), ("tanh", jnp.float64, 1e-12), ("sine", jnp.float32, 1e-5)],
)
def test_packed_loss_has_the_gradient_of_the_plain_one(activation, dtype, tolerance):
    network, frozen, target = case(activation, width=12, dtype=dtype)

    def loss(network):
        return packed_loss(matrix_of(network), table_of(frozen, target, dtype), shape_of(network))

    check(value_and_gradient(loss, network), truth(network, frozen, target), tolerance)


PLANS = [
    ("silu", 3, Plan(block=16, programs=2, piece=8)),
    ("tanh", 2, Plan(block=8, programs=4)),
    ("sine", 3, Plan(block=16, programs=264, joined=False, rolled=False, carried=True)),
]


@pytest.mark.parametrize(("activation", "depth", "plan"), PLANS)
def test_kernel_has_the_gradient_of_the_plain_loss(activation, depth, plan):
    """37 points are no multiple of any block, and two programs share three blocks unevenly."""
    network, frozen, target = case(activation, depth=depth)
    found = value_and_gradient(
        lambda network: fused_loss(network, frozen, target, interpret=True, plan=plan), network
    )
    check(found, truth(network, frozen, target), 1e-5)


def test_table_is_filled_up_with_points_that_add_nothing():
    network, frozen, target = case("silu")
    short, long = jax.jit(
        lambda: [table_of(frozen, target, jnp.float32, multiple) for multiple in (1, 64)]
    )()
    assert (short.shape[1], long.shape[1]) == (POINTS, 64)
    losses = jax.jit(
        lambda network, *tables: [
            packed_loss(matrix_of(network), table, shape_of(network)) for table in tables
        ]
    )
    values = [float(value) for value in losses(network, short, long)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"width": 12}, {"depth": 1}, {"dimension": 3}, {"dtype": jnp.float64}]
)
def test_what_does_not_fit_is_refused(wrong):
    network, frozen, target = case("silu", **wrong)
    assert not available(network, frozen)
    with pytest.raises(ValueError, match="fused loss needs"):
        fused_loss(network, frozen, target, interpret=True)
