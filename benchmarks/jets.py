"""Derivatives of a network in several ways: `python benchmarks/jets.py [--dimensions 2 3 5 10]
[--points N] [--precision float32] [--json PATH]`.

Three tasks for the paper's network (4 layers of 64, SiLU), with a full matrix A(x) at every point:

    operator      (u, ∇u, A:D²u)
    expression    A:D²u + b·∇u - cu, one number for each point: what a solver needs
    hessian       (u, ∇u, D²u)

each evaluated (`forward`) and together with the gradient by the weights of the sum of squares of
what it returns (`gradient`). The ways:

    cordes        jets written by hand, one pass through the layers
    directional   the same for many dimensions, where A is diagonal plus rank one (expressions
    alone)
    hessian       jax.hessian for each point, contracted with A
    jvp of grad   forward over reverse: a derivative of the gradient along each coordinate,
    contracted at once
    jvp of jvp    forward over forward, along the columns of the Cholesky factor of A, Σ (v·∇)² =
    A:D²
    jet           jax.experimental.jet, Taylor series of second order along the same columns; for
    Hessians along eᵢ and eᵢ + eⱼ
    folx          forward Laplacian of y ↦ u(x + Ly), A = LLᵀ, whose gradient is Lᵀ∇u (folx has no
    full Hessian)

All start from the same weights and points; `deviation` is the largest difference from jax.hessian
over the largest value. Seconds are medians without compilation, which is shown apart; `ratio` is
seconds over those of cordes. A package that is not installed is reported as missing.
"""

import argparse
import importlib.util
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from measuring import begin, compiled, say, seconds_of, table, write_json

import cordes
from cordes.ansatz.networks.directional import Directional, Factored, directional_rows
from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.mlp import MLP
from cordes.ansatz.networks.network import LARGEST_HESSIAN, Frozen
from cordes.jet import contract

WIDTH, DEPTH = 64, 4
TASKS = ("operator", "expression", "hessian")


class Data(NamedTuple):
    """Points (N, d), matrices (N, d, d), their Cholesky factors L, L⁻ᵀ, the same matrices as
    diagonal plus rank one, b (N, d) and c (N,)."""

    x: Array
    A: Array
    factor: Array
    back: Array
    diagonal: Array
    column: Array
    b: Array
    c: Array


def make_data(d: int, points: int, dtype: Any, seed: int = 0) -> Data:
    """A = 2I + xxᵀ + 0.3 diag(sin 3x), b = x, c = 3 at random points of the cube."""
    x = np.random.default_rng(seed).uniform(-1, 1, (points, d))
    diagonal = 2 + 0.3 * np.sin(3 * x)
    A = diagonal[:, :, None] * np.eye(d) + x[:, :, None] * x[:, None]
    factor = np.linalg.cholesky(A)
    back = np.swapaxes(np.linalg.inv(factor), 1, 2)
    parts = (x, A, factor, back, diagonal, x[:, :, None], x, np.full(points, 3.0))
    return Data(*(jnp.asarray(part, dtype) for part in parts))


def make_network(d: int, dtype: Any, seed: int = 0, width: int = WIDTH, depth: int = DEPTH) -> MLP:
    return MLP(Inputs(cordes.Box([-1] * d, [1] * d)), width, depth, "silu", seed, "uniform", dtype)


def plain_value(parameters: Any, x: Array) -> Array:
    """The network at one point as one would write it for automatic differentiation."""
    layers, coefficients = parameters
    hidden = x
    for weight, bias in layers:
        hidden = jax.nn.silu(hidden @ weight + bias)
    return hidden @ coefficients


# Ways: functions of the parameters and of one point with its data, returning the operator triple or


def by_hessian(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    value, gradient = jax.value_and_grad(plain_value, 1)(parameters, data.x)
    return value, gradient, jax.hessian(plain_value, 1)(parameters, data.x)


def by_jvp_of_grad(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    value, gradient = jax.value_and_grad(plain_value, 1)(parameters, data.x)

    def along(direction: Array, row: Array) -> Array:
        return (
            row
            @ jax.jvp(lambda x: jax.grad(plain_value, 1)(parameters, x), (data.x,), (direction,))[1]
        )

    return (
        value,
        gradient,
        jnp.sum(jax.vmap(along)(jnp.eye(len(data.x), dtype=data.x.dtype), data.A)),
    )


def _gradient(data: Data, along: Array) -> Array:
    """∇u from its products Lᵀ∇u with the columns of L. L and L⁻ᵀ are given: factorising A is not a
    part of what is measured."""
    return data.back @ along


def by_jvp_of_jvp(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    def along(direction: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        first = lambda x: jax.jvp(lambda y: plain_value(parameters, y), (x,), (direction,))  # noqa: E731
        return jax.jvp(first, (data.x,), (direction,))  # pyright: ignore[reportReturnType]

    (value, first), (_, second) = jax.vmap(along)(data.factor.T)
    return value[0], _gradient(data, first), jnp.sum(second)


def by_jet(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    value, first, second = _series(parameters, data.x, data.factor.T)
    return value, _gradient(data, first), jnp.sum(second)


def _series(parameters: Any, x: Array, directions: Array) -> tuple[Array, Array, Array]:
    """u, and v·∇u and v·D²u v for each row v of the directions."""
    from jax.experimental import jet

    def along(direction: Array) -> tuple[Array, Array, Array]:
        value, (first, second) = jet.jet(
            lambda y: plain_value(parameters, y), (x,), ((direction, jnp.zeros_like(x)),)
        )
        return value, first, second

    value, first, second = jax.vmap(along)(directions)
    return value[0], first, second


def hessian_by_jet(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    """D²u by polarisation: second derivatives along all eᵢ and eᵢ + eⱼ."""
    d = len(data.x)
    row, column = np.tril_indices(d, -1)
    unit = np.eye(d)
    directions = jnp.asarray(np.concatenate([unit, unit[row] + unit[column]]), data.x.dtype)
    value, first, second = _series(parameters, data.x, directions)
    mixed = (second[d:] - second[row] - second[column]) / 2
    return (
        value,
        first[:d],
        jnp.diag(second[:d]).at[row, column].set(mixed).at[column, row].set(mixed),
    )


def by_folx(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    import folx  # pyright: ignore[reportMissingImports]

    found = folx.forward_laplacian(lambda y: plain_value(parameters, data.x + data.factor @ y))(
        jnp.zeros_like(data.x)
    )
    return found.x, _gradient(data, found.jacobian.dense_array), found.laplacian


# Tasks --------------------------------------------------------------------------------------------


def ways(task: str, network: MLP) -> dict[str, Callable[[Any, Data], Any]]:
    """Every way to do a task, as functions of the parameters and of the data at all points."""
    if task == "hessian":
        own = {
            "cordes": lambda parameters, data: tuple(
                network.with_parameters(parameters).jet(data.x)
            )
        }
        return {
            **own,
            **{
                name: _mapped(way)
                for name, way in (("hessian", by_hessian), ("jet", hessian_by_jet))
            },
        }
    contracted = {
        "hessian": _contracted_hessian,
        "jvp of grad": by_jvp_of_grad,
        "jvp of jvp": by_jvp_of_jvp,
        "jet": by_jet,
        "folx": by_folx,
    }
    others = {name: _mapped(way) for name, way in contracted.items()}
    if task == "operator":
        return {
            "cordes": lambda parameters, data: tuple(
                network.with_parameters(parameters).operator_jet(data.x, data.A)
            ),
            **others,
        }
    own = {"cordes": _cordes_expression(network), "directional": _directional_expression(network)}
    return {**own, **{name: _expression(way) for name, way in others.items()}}


def _mapped(way: Callable) -> Callable:
    return lambda parameters, data: jax.vmap(way, (None, 0))(parameters, data)


def _contracted_hessian(parameters: Any, data: Data) -> tuple[Array, Array, Array]:
    value, gradient, hessian = by_hessian(parameters, data)
    return value, gradient, contract(data.A, hessian)


def _expression(way: Callable) -> Callable:
    def rows(parameters: Any, data: Data) -> Array:
        value, gradient, second = way(parameters, data)
        return second + jnp.sum(data.b * gradient, axis=1) - data.c * value

    return rows


def _cordes_expression(network: MLP) -> Callable:
    def rows(parameters: Any, data: Data) -> Array:
        return network.with_parameters(parameters).rows(
            Frozen(jax.vmap(network.inputs.jet)(data.x), -data.c, data.b, data.A)
        )  # pyright: ignore[reportAttributeAccessIssue]

    return rows


def _directional_expression(network: MLP) -> Callable:
    def rows(parameters: Any, data: Data) -> Array:
        # The cube is [-1, 1]ᵈ: scaled coordinates are the coordinates.
        columns = Directional(data.x, data.b, None, Factored(data.diagonal, data.column), -data.c)
        return directional_rows(network.with_parameters(parameters), columns)

    return rows


def missing(name: str) -> str | None:
    """Why a way cannot be gone, if it cannot."""
    if name == "folx" and importlib.util.find_spec("folx") is None:
        return "not installed: pip install folx"
    if name == "jet" and importlib.util.find_spec("jax.experimental.jet") is None:
        return f"JAX {jax.__version__} has no jax.experimental.jet"
    return None


def with_gradient(way: Callable) -> Callable:
    """The gradient by the weights of the sum of squares of what a way returns, with that sum."""
    return jax.value_and_grad(
        lambda parameters, data: sum(
            jnp.sum(part**2) for part in jax.tree.leaves(way(parameters, data))
        )
    )


def deviation(found: Any, expected: Any) -> float:
    """The largest difference between two trees of arrays, each part over its largest expected
    value."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    return max(
        float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(np.asarray(b))))
        for a, b in pairs
    )


def measure(
    task: str, mode: str, d: int, points: int, dtype: Any, rounds: int
) -> list[dict[str, Any]]:
    """One dimension, task and mode: every way, with its ratio to cordes."""
    network, data = make_network(d, dtype), make_data(d, points, dtype)
    results, reference, calls = [], None, {}
    candidates = ways(task, network)
    # The reference first: all others are compared with it.
    for name in sorted(candidates, key=lambda name: name != "hessian"):
        facts: dict[str, Any] = {"task": task, "mode": mode, "dimension": d, "way": name}
        results.append(facts)
        if reason := missing(name):
            facts["missing"] = reason
            continue
        try:
            made = compiled(
                candidates[name] if mode == "forward" else with_gradient(candidates[name]),
                network.parameters,
                data,
            )
            answer = jax.tree.map(np.asarray, made.call(network.parameters, data))
            reference = answer if name == "hessian" else reference
            calls[name] = made.call
            facts |= {
                "compile": made.seconds,
                "deviation": deviation(answer, reference),
                "operations": made.operations,
            }
        except Exception as failure:
            facts["missing"] = (
                f"failed: {type(failure).__name__}: {str(failure).partition(chr(10))[0][:120]}"
            )
    # In turn, so that whatever else the machine does meets all of them.
    turns = [
        {name: seconds_of(call, network.parameters, data, rounds=1) for name, call in calls.items()}
        for _ in range(rounds)
    ]
    for facts in results:
        if facts["way"] in calls:
            facts["seconds"] = statistics.median(turn[facts["way"]] for turn in turns)
    own = next(
        (facts["seconds"] for facts in results if facts["way"] == "cordes" and "seconds" in facts),
        None,
    )
    for facts in results:
        facts["ratio"] = facts["seconds"] / own if own and "seconds" in facts else None
    order = list(candidates)
    return sorted(results, key=lambda facts: order.index(facts["way"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 3, 5, 10])
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument(
        "--precision", choices=("float32", "float64"), nargs="+", default=["float32"]
    )
    parser.add_argument("--tasks", choices=TASKS, nargs="+", default=list(TASKS))
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="calls (or groups of short calls) of which the median is taken",
    )
    parser.add_argument("--json", type=Path, help="write all results here")
    options = parser.parse_args()
    begin()
    say(
        f"{DEPTH} layers of {WIDTH}, SiLU, {options.points} points; ratio = seconds / seconds "
        "of cordes"
    )
    results = []
    for precision in options.precision:
        for task in options.tasks:
            for d in options.dimensions:
                if task == "hessian" and d > LARGEST_HESSIAN:
                    continue
                for mode in ("forward", "gradient"):
                    found = [
                        {"precision": precision, **facts}
                        for facts in measure(
                            task, mode, d, options.points, precision, options.rounds
                        )
                    ]
                    results += found
                    say(f"\n{task}, {mode}, d = {d}, {precision}")
                    rows = [
                        [f["way"], 1e3 * f["seconds"], f["ratio"], f["compile"], f["deviation"]]
                        if "seconds" in f
                        else [f["way"], *[None] * 3, f["missing"]]
                        for f in found
                    ]
                    say(table(["way", "ms", "ratio", "compile s", "deviation"], rows))
                    write_json(
                        options.json,
                        {
                            "points": options.points,
                            "width": WIDTH,
                            "depth": DEPTH,
                            "results": results,
                        },
                    )


if __name__ == "__main__":
    main()
