"""How far from the machine's limits: `python benchmarks/roofline.py [--quick] [--parts jets
least-squares dual gauss-newton adam] [--json PATH]`.

For the jets and for one step of each solver: operations and bytes by the formulas of counts.py, the
floor they have on this machine, the measured time and their ratio. The peaks are measured in the
same run: a large matrix product in the same precision, and a + s·b of long vectors; on the device
for what runs there, with NumPy for what the host does (the factorisations of least squares).
`compiler` is what the compiler counts for the same function, where it does: it does not see into
library calls, counts the body of a loop once, and elementary functions apart. A ratio below one
means that what was counted as bytes stayed in a cache.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import counts
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from counts import Peaks, Work, floor_seconds
from jax.flatten_util import ravel_pytree
from jets import DEPTH, WIDTH, make_data, make_network, with_gradient
from measuring import begin, compiled, say, seconds_of, table, write_json

import cordes
from cordes.ansatz.ansatz import feature_matrix
from cordes.ansatz.networks.directional import hidden_columns
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.solutions.errors import error_points
from cordes.solvers import gauss_newton
from cordes.solvers.dual import (
    LENGTHS,
    PROBES,
    DualCarry,
    DualPlan,
    _gram,
    _times,
    _transposed,
    equation_of,
)
from cordes.solvers.dual import dual_step as one_dual_step
from cordes.solvers.gauss_newton import CHUNK
from cordes.solvers.least_squares import OVERSAMPLING
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.system import System
from cordes.solvers.train import initial_weights, residual
from cordes.studies.ensemble import EVERY, Ensemble, methods_of

DOUBLE = 8
# Any damping: it changes no cost.
DAMPING = 4e-6
# Losses of the dual step: every length with every damping, and the present state.
TRIALS = len(PROBES) * len(LENGTHS) + 1


class Measured(NamedTuple):
    """One line of the table."""

    step: str
    part: str
    where: str
    work: Work
    seconds: float
    compile: float | None = None
    compiler: float | None = None


# Peaks --------------------------------------------------------------------------------------------


def device_peaks(dtype: Any, quick: bool) -> Peaks:
    large = jax.default_backend() != "cpu"
    n, length = (8192, 2**27) if large else (1024, 2**22) if quick else (2048, 2**24)
    size = jnp.dtype(dtype).itemsize
    a = jax.random.normal(jax.random.key(0), (n, n), dtype)
    matrix = seconds_of(jax.jit(jnp.matmul), a, a)
    # The result takes the place of the first argument: a fresh array would be paid for at its first
    # touch.
    add = jax.jit(lambda x, y: x + 1e-3 * y, donate_argnums=0)
    vectors = [jnp.ones(length, dtype), jnp.ones(length, dtype)]

    def triad() -> Any:
        vectors[0] = add(*vectors)
        return vectors[0]

    return Peaks(2 * n**3 / matrix, 3 * length * size / seconds_of(triad))


def host_peaks(quick: bool) -> Peaks:
    """The same with NumPy, in double precision and with as many threads as its BLAS takes."""
    n, length = (768, 2**21) if quick else (2048, 2**24)
    a = np.random.default_rng(0).standard_normal((n, n))
    x, y = np.ones(length), np.ones(length)
    matrix = seconds_of(lambda: a @ a)
    triad = seconds_of(lambda: np.add(x, y, out=x))
    return Peaks(2 * n**3 / matrix, 3 * length * DOUBLE / triad)


# Parts --------------------------------------------------------------------------------------------


def on_device(
    step: str,
    part: str,
    precision: str,
    work: Work,
    function: Callable,
    *arguments: Any,
    calls: int = 1,
) -> Measured:
    """Compile and time a function that does `calls` times the work."""
    made = compiled(function, *arguments)
    return Measured(
        step,
        part,
        precision,
        work,
        seconds_of(made.call, *arguments) / calls,
        made.seconds,
        made.operations,
    )


def on_host(step: str, part: str, work: Work, function: Callable, *arguments: Any) -> Measured:
    return Measured(step, part, "host", work, seconds_of(function, *arguments))


def jets(quick: bool, precision: str) -> list[Measured]:
    points, size = 1000 if quick else 10_000, jnp.dtype(precision).itemsize
    found = []
    for d in (2, 5, 10):
        network, data = make_network(d, precision), make_data(d, points, precision)

        def operator(p, data, network=network):
            return tuple(network.with_parameters(p).operator_jet(data.x, data.A))

        def full(p, data, network=network):
            return tuple(network.with_parameters(p).jet(data.x))

        step, numbers = f"jets, d = {d}, {points} points, {precision}", d + d * d
        tasks = (
            ("(u, ∇u, A:D²u)", operator, counts.operator_shape(d, d, WIDTH, DEPTH)),
            ("(u, ∇u, D²u)", full, counts.hessian_shape(d, d, WIDTH, DEPTH)),
        )
        for part, function, shape in tasks:
            arguments = (network.parameters, data)
            found.append(
                on_device(
                    step,
                    part,
                    precision,
                    counts.evaluation(points, shape, size, numbers, shape.columns),
                    function,
                    *arguments,
                )
            )
            found.append(
                on_device(
                    step,
                    f"{part} and gradient",
                    precision,
                    counts.gradient(points, shape, size, numbers),
                    with_gradient(function),
                    *arguments,
                )
            )
    return found


def least_squares(quick: bool, name: str) -> list[Measured]:
    """One fit of the largest size that the solver takes without a tolerance."""
    system = System(cordes.gallery[name])
    features = 250 if quick else 1000
    points = system.points(int(OVERSAMPLING * features), 0)
    rows = system.rows(points)
    network = RandomFeatures(
        system.ansatz.inputs, features, 2.0, 0, system.ansatz.inputs.active("interfaces")
    )
    matrix, target = feature_matrix(network, rows), np.asarray(rows.target)
    m, n = matrix.shape
    step, d, inputs = (
        f"least squares, {name}, {m} × {n}",
        system.domain.dimension,
        system.ansatz.inputs.count,
    )
    numbers = inputs * (1 + d + d * d) + 1 + d + d * d
    # One layer, whose columns are combined at once: nothing but the matrix is written.
    work = Work(
        counts.evaluation(m, counts.operator_shape(d, inputs, features, 1), DOUBLE).operations,
        DOUBLE * m * (numbers + features),
    )
    triangle = np.linalg.qr(np.concatenate([matrix, target[:, None]], axis=1), mode="r")[:n, :n]  # pyright: ignore
    # Coefficients and jets of the inputs are a few operations on a few numbers for each point: they
    # are bound by neither and by what calls them.
    few = Work(100 * len(points.x) * d * d, DOUBLE * len(points.x) * numbers)
    factor = together_with_solution(m, n)
    return [
        on_host(step, "rows, singular functions included", few, system.rows, points),
        Measured(
            step,
            "matrix of the features",
            "float64",
            work,
            seconds_of(feature_matrix, network, rows),
        ),
        on_host(
            step,
            "QR without Q",
            counts.qr_triangle(m, n + 1, DOUBLE),
            lambda: np.linalg.qr(np.concatenate([matrix, target[:, None]], 1), mode="r"),
        ),
        on_host(
            step,
            "pivoted QR of the triangle",
            counts.pivoted_qr(n, DOUBLE),
            lambda: scipy.linalg.qr(triangle, pivoting=True, mode="economic"),
        ),
        on_host(
            step,
            "whole solve",
            factor,
            lambda: solve_rank_revealing(matrix, target, damped=rows.singular.shape[1]),
        ),
    ]


def together_with_solution(m: int, n: int) -> Work:
    return counts.together(
        counts.qr_triangle(m, n + 1, DOUBLE),
        counts.pivoted_qr(n, DOUBLE),
        Work(3 * n * n, DOUBLE * n * n),
    )


def dual_step(quick: bool, name: str, width: int, depth: int, points: int) -> list[Measured]:
    """The Gauss–Newton step in many dimensions, part by part."""
    n = 200 if quick else points
    system = System(cordes.gallery[name], singular=False, inputs="interfaces")
    equation, trial, inputs, d = (
        equation_of(system),
        n // 2,
        system.ansatz.inputs,
        system.domain.dimension,
    )
    template = initial_weights(system, None, width, depth, "sine", 0, "glorot").network
    parameters = template.parameters
    sizes = DualPlan(n, trial, 0.9, DAMPING)
    sources = equation.sources(0, 0, CHUNK, n + trial)
    zero = jax.tree.map(jnp.zeros_like, parameters)
    carry = DualCarry(parameters, zero, jnp.ones(()), jnp.ones(()))

    def rows(source):
        x, weight = equation.draw(source, n + trial)
        return equation.freeze(template, x[:n], weight[:n])

    def jacobian(parameters, columns):
        def row(parameters, column):
            state = template.with_parameters(parameters)
            return hidden_columns(state, column) @ state.coefficients

        return jax.vmap(jax.value_and_grad(row), (None, 0))(parameters, columns)

    def losses(parameters, source):
        loss = equation.measure(*equation.draw(source, trial))
        return [
            jax.lax.map(
                lambda s: loss(template.with_parameters(jax.tree.map(lambda p: s * p, parameters))),
                1 - 0.01 * jnp.arange(TRIALS),
            )
        ]

    columns, target = jax.jit(rows)(sources[0])
    values, J = jax.jit(jacobian)(parameters, columns)
    gram = jax.jit(_gram)(J) + 1e-3 * jnp.eye(n)
    factor = jax.jit(jax.scipy.linalg.cho_factor)(gram)[0]
    rank = None
    if isinstance(system.problem.A, DiagonalPlusRank):
        rank = system.problem.A.parts(jnp.zeros(d))[1].shape[1]
    shape = counts.directional_shape(d, inputs.count, width, depth, bool(inputs.interfaces), rank)
    P, numbers = (
        shape.parameters,
        2 * inputs.count + d * (d if inputs.interfaces or rank is None else 1 + (rank or 0)),
    )
    few = Work(n * (10 * d * d + 100 * d), DOUBLE * n * numbers)
    parts = {
        "points and rows": few,
        "Jacobian": counts.jacobian(n, shape, DOUBLE, numbers),
        "gram matrix": counts.gram(n, P, DOUBLE),
        "Cholesky": counts.times(len(PROBES), counts.cholesky(n, DOUBLE)),
        "solve, Jᵀy, Jζ": counts.together(
            Work(2 * n * n, DOUBLE * n * n), counts.times(2, Work(2 * n * P, DOUBLE * n * P))
        ),
        "trial losses": counts.times(TRIALS, counts.evaluation(trial, shape, DOUBLE, numbers)),
    }
    step = f"dual Gauss–Newton, {name}, {n} points, {P} parameters"

    def solve(factor, J, values):
        right = values + _times(J, zero)
        return _transposed(J, jax.scipy.linalg.cho_solve((factor, False), right))

    cases = (
        ("points and rows", rows, (sources[0],)),
        ("Jacobian", jacobian, (parameters, columns)),
        ("gram matrix", _gram, (J,)),
        ("Cholesky", lambda gram: jax.scipy.linalg.cho_factor(gram)[0], (gram,)),
        ("solve, Jᵀy, Jζ", solve, (factor, J, values - target)),
        ("trial losses", losses, (parameters, sources[1])),
    )
    found = [
        on_device(step, part, "float64", parts[part], function, *arguments)
        for part, function, arguments in cases
    ]

    def whole(carry, sources):
        return jax.lax.scan(
            lambda c, s: one_dual_step(c, s, equation, template, sizes), carry, sources
        )

    return [
        *found,
        on_device(
            step,
            "whole step",
            "float64",
            counts.together(*parts.values()),
            whole,
            carry,
            sources,
            calls=CHUNK,
        ),
    ]


def gauss_newton_step(quick: bool, name: str, points: int, width: int) -> list[Measured]:
    """The Gauss–Newton step of few dimensions: one layer of sines."""
    points, width = (100, 30) if quick else (points, width)
    system = System(cordes.gallery[name], inputs="interfaces")
    state = initial_weights(system, None, width, 1, "sine", 0, "fourier")
    rows = jax.tree.map(jnp.asarray, system.rows(system.points(points, 0)))
    vector, unravel = ravel_pytree(state.parameters)
    jacobian = lambda vector, rows: gauss_newton._jacobian(vector, unravel, state, rows)  # noqa: E731
    J = jax.jit(jacobian)(vector, rows)
    n, P = J.shape
    small = min(n, P)
    form = (lambda J: J.T @ J) if n >= P else (lambda J: J @ J.T)
    gram = jax.jit(form)(J) + 1e-3 * jnp.eye(small)
    shape = counts.operator_shape(2, system.ansatz.inputs.count, width, 1)
    numbers = shape.inputs * 7 + 7
    trials, factors = len(gauss_newton.PROBES) * len(gauss_newton.LENGTHS), len(gauss_newton.PROBES)

    def loss(vector, rows):
        return jnp.linalg.norm(residual(state.with_parameters(unravel(vector)), rows))

    step = f"Gauss–Newton, {name}, {n} rows, {P} parameters"
    works = (
        counts.jacobian(n, shape, DOUBLE, numbers),
        counts.gram(small, max(n, P), DOUBLE),
        counts.cholesky(small, DOUBLE),
        counts.evaluation(n, shape, DOUBLE, numbers),
    )
    cases = (
        ("Jacobian", jacobian, (vector, rows)),
        ("gram matrix", form, (J,)),
        (f"Cholesky, one of {factors}", lambda gram: jax.scipy.linalg.cho_factor(gram)[0], (gram,)),
        (f"loss, one of {trials + 1}", loss, (vector, rows)),
    )
    found = [
        on_device(step, part, "float64", work, function, *arguments)
        for work, (part, function, arguments) in zip(works, cases, strict=True)
    ]
    carry = gauss_newton.StepCarry(vector, jnp.zeros_like(vector), loss(vector, rows))
    whole = lambda carry, rows: gauss_newton._step(carry, rows, unravel, state, 0.9)  # noqa: E731
    solves = counts.times(factors, Work(2 * small**2 + 2 * n * P, DOUBLE * (small**2 + n * P)))
    work = counts.together(
        works[0],
        works[1],
        counts.times(factors, works[2]),
        solves,
        counts.times(trials + 1, works[3]),
    )
    return [*found, on_device(step, "whole step", "float64", work, whole, carry, rows)]


def adam_step(quick: bool, name: str) -> list[Measured]:
    """One epoch of the paper preset, 1/10 of an error measurement included."""
    problem = cordes.gallery[name]
    grid = error_points(problem.domain)
    ensemble = Ensemble(
        problem, methods_of(problem)[0], [0], np.asarray(jax.jit(jax.vmap(problem.exact))(grid))
    )
    state, data = ensemble.start(), ensemble.data()
    records = 1 if quick else 10 if jax.default_backend() != "cpu" else 2
    start = time.perf_counter()
    function = ensemble.compiled(state, data, records)
    compile_seconds = time.perf_counter() - start
    seconds = seconds_of(lambda: ensemble.advance(function, state, data), rounds=3) / (
        EVERY * records
    )
    preset, d = ensemble.preset, problem.domain.dimension
    shape = counts.operator_shape(d, d, preset["width"], preset["depth"])
    values = shape._replace(columns=1, first=1, extra=counts.ACTIVATION)
    numbers = shape.inputs * (1 + d + d * d) + 2 + d + d * d
    optimiser = Work(12 * shape.parameters, 4 * 7 * shape.parameters)
    measuring = counts.times(1 / EVERY, counts.evaluation(len(grid), values, 4, d + 2))
    work = counts.together(
        counts.gradient(preset["points"], shape, 4, numbers), optimiser, measuring
    )
    return [
        Measured(
            f"Adam, paper preset, {name}, {preset['points']} points",
            "one epoch",
            "float32",
            work,
            seconds,
            compile_seconds,
        )
    ]


PARTS: dict[str, Callable[[bool], list[Measured]]] = {
    "jets": lambda quick: jets(quick, "float32") + jets(quick, "float64"),
    "least-squares": lambda quick: (
        least_squares(quick, "ex4.2-continuous") + least_squares(quick, "ex4.2-discontinuous")
    ),
    "dual": lambda quick: (
        dual_step(quick, "ex4.3-cube5", 64, 3, 4000)
        + dual_step(quick, "coupled-ball-100", 128, 2, 3000)
    ),
    "gauss-newton": lambda quick: gauss_newton_step(quick, "ex4.2-continuous", 800, 250),
    "adam": lambda quick: adam_step(quick, "ex4.2-continuous"),
}


def facts_of(line: Measured, peaks: dict[str, Peaks]) -> dict[str, Any]:
    peak = peaks[line.where]
    floor = floor_seconds(line.work, peak)
    bound = (
        "operations"
        if line.work.operations / peak.operations >= line.work.bytes / peak.bytes
        else "bytes"
    )
    return line._asdict() | {
        "work": None,
        "operations": line.work.operations,
        "bytes": line.work.bytes,
        "floor": floor,
        "bound": bound,
        "ratio": line.seconds / floor,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, which say little about the machine"
    )
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--json", type=Path, help="write all results here")
    options = parser.parse_args()
    begin()
    peaks = {
        "float32": device_peaks("float32", options.quick),
        "float64": device_peaks("float64", options.quick),
        "host": host_peaks(options.quick),
    }
    if jax.default_backend() == "cpu":
        # One memory: what NumPy gets out of it is there for compiled functions too.
        peaks = {
            name: peak._replace(bytes=max(peak.bytes, peaks["host"].bytes))
            for name, peak in peaks.items()
        }
    say(
        table(
            ["peaks", "Gop/s", "GB/s"],
            [[name, peak.operations / 1e9, peak.bytes / 1e9] for name, peak in peaks.items()],
        )
    )
    results: list[dict[str, Any]] = []
    for part in options.parts:
        found = [facts_of(line, peaks) for line in PARTS[part](options.quick)]
        results += found
        for step in dict.fromkeys(facts["step"] for facts in found):
            say(f"\n{step}")
            names = (
                "part",
                "where",
                "Mop",
                "MB",
                "floor ms",
                "bound",
                "ms",
                "ratio",
                "compile s",
                "compiler Mop",
            )
            rows = [
                [
                    *(f["part"], f["where"], f["operations"] / 1e6, f["bytes"] / 1e6),
                    *(1e3 * f["floor"], f["bound"], 1e3 * f["seconds"], f["ratio"], f["compile"]),
                    None if f["compiler"] is None else f["compiler"] / 1e6,
                ]
                for f in found
                if f["step"] == step
            ]
            say(table(names, rows))
        write_json(
            options.json,
            {
                "quick": options.quick,
                "peaks": {k: p._asdict() for k, p in peaks.items()},
                "results": results,
            },
        )


if __name__ == "__main__":
    main()
