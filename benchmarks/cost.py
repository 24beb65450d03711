"""Cost against work: `python benchmarks/cost.py [--quick] [--series NAMES] [--json PATH]`.

Seconds of one fit by least squares against features and points, of one Gauss–Newton step against
points and dimension, and of the jets against dimension. Each series changes one size and keeps the
others. Compile time is shown apart. The exponent p of seconds ≈ C·sizeᵖ is a least-squares fit in
logarithms over the range that is stated, with the largest factor by which a measurement departs
from it; `last` is the exponent between the two largest sizes.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jets import make_data, make_network, ways, with_gradient
from measuring import begin, compiled, say, seconds_of, table, write_json

import cordes
from cordes.ansatz.ansatz import feature_matrix
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.gallery.high_dimension import coupled_cube
from cordes.runtime.compilation import CompileTimer
from cordes.solvers.dual import DualCarry, DualPlan, dual_step, equation_of
from cordes.solvers.gauss_newton import CHUNK
from cordes.solvers.least_squares import OVERSAMPLING
from cordes.solvers.rows.rank_revealing import solve_rank_revealing
from cordes.solvers.rows.system import System
from cordes.solvers.train import initial_weights


class Exponent(NamedTuple):
    """seconds ≈ factor · sizeᵖ over [lower, upper]; no measurement departs by more than `spread`;
    `last` is the local exponent at the upper end."""

    power: float
    factor: float
    spread: float
    last: float
    lower: float
    upper: float


def fit_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> Exponent:
    """Least squares in logarithms."""
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(seconds, float))
    if len(x) < 2 or np.ptp(x) == 0:
        raise ValueError(f"sizes = {list(sizes)}: an exponent needs two different sizes.")
    power, constant = np.polyfit(x, y, 1)
    rest = np.max(np.abs(y - power * x - constant))
    order = np.argsort(x)
    (a, b), (s, t) = x[order[-2:]], y[order[-2:]]
    return Exponent(
        float(power),
        float(np.exp(constant)),
        float(np.exp(rest)),
        float((t - s) / (b - a)),
        float(min(sizes)),
        float(max(sizes)),
    )


class Series(NamedTuple):
    """What is changed, what is kept, the sizes (for a quick run too), and a function of the size
    that gives compile seconds and seconds by part."""

    axis: str
    kept: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    measure: Callable[[int], tuple[float, dict[str, float]]]


# Least squares ------------------------------------------------------------------------------------


def fit_cost(name: str, features: int, points: int) -> tuple[float, dict[str, float]]:
    """One fit: rows, the matrix of the features, its factorisation. Singular functions are left
    out: their number would not change with the size."""
    with CompileTimer() as timer:
        system = System(cordes.gallery[name], singular=False)
        chosen = system.points(points, 0)
        network = RandomFeatures(
            system.ansatz.inputs, features, 4.0, 0, system.ansatz.inputs.active("interfaces")
        )
        rows = system.rows(chosen)
        matrix = feature_matrix(network, rows)
    target = np.asarray(rows.target)
    parts = {
        "rows": seconds_of(system.rows, chosen),
        "matrix": seconds_of(feature_matrix, network, rows),
        "solve": seconds_of(lambda: solve_rank_revealing(matrix, target), rounds=3),
    }
    return timer.seconds, {**parts, "total": sum(parts.values())}


# Gauss–Newton and jets ----------------------------------------------------------------------------


def step_cost(
    d: int, points: int, width: int = 64, depth: int = 2
) -> tuple[float, dict[str, float]]:
    """One dual Gauss–Newton step on the coupled problem of the cube, points drawn and trials
    included: a mean over a compiled chunk of them."""
    system = System(coupled_cube(d), singular=False, inputs="interfaces")
    equation = equation_of(system)
    template = initial_weights(system, None, width, depth, "sine", 0, "glorot").network
    sizes = DualPlan(points, points // 2, 0.9, 4e-6)
    carry = DualCarry(
        template.parameters,
        jax.tree.map(jnp.zeros_like, template.parameters),
        jnp.ones(()),
        jnp.ones(()),
    )
    sources = equation.sources(0, 0, CHUNK, points + points // 2)
    made = compiled(
        lambda carry, sources: jax.lax.scan(
            lambda c, s: dual_step(c, s, equation, template, sizes), carry, sources
        ),
        carry,
        sources,
    )
    return made.seconds, {"total": seconds_of(made.call, carry, sources, rounds=3) / CHUNK}


def jet_cost(
    d: int, way: str, points: int, precision: str = "float64"
) -> tuple[float, dict[str, float]]:
    """A:D²u + b·∇u - cu of the paper's network, evaluated and with the gradient by the weights."""
    network, data = make_network(d, precision), make_data(d, points, precision)
    function = ways("expression", network)[way]
    forward, both = (
        compiled(f, network.parameters, data) for f in (function, with_gradient(function))
    )
    seconds = {
        "forward": seconds_of(forward.call, network.parameters, data),
        "total": seconds_of(both.call, network.parameters, data),
    }
    return forward.seconds + both.seconds, seconds


def all_series(quick: bool) -> dict[str, Series]:
    gpu = jax.default_backend() != "cpu"
    few = 1000 if quick else 5000
    points = 1000 if gpu else 200
    features, grid = (250, 500, 1000, 2000), (1000, 2000, 4000, 8000, 16000)
    dimensions = (2, 5, 10, 20, 50, 100)
    fit = "least squares, ex4.2-discontinuous"
    return {
        "features": Series(
            "features",
            f"{fit}, {few} points",
            features,
            (125, 250, 500),
            lambda n: fit_cost("ex4.2-discontinuous", n, few),
        ),
        "features-and-points": Series(
            "features",
            f"{fit}, {OVERSAMPLING} points for each feature",
            features,
            (125, 250, 500),
            lambda n: fit_cost("ex4.2-discontinuous", n, int(OVERSAMPLING * n)),
        ),
        "points": Series(
            "points",
            f"{fit}, 500 features",
            grid,
            (1000, 2000, 4000),
            lambda n: fit_cost("ex4.2-discontinuous", 500, n),
        ),
        "step-points": Series(
            "points",
            "Gauss–Newton step, 10 dimensions, 2×64 sine",
            (500, 1000, 2000, 4000) if gpu else (125, 250, 500, 1000),
            (60, 125, 250),
            lambda n: step_cost(10, n),
        ),
        "step-dimension": Series(
            "dimension",
            f"Gauss–Newton step, {points} points, 2×64 sine",
            dimensions,
            (2, 10, 50),
            lambda d: step_cost(d, points),
        ),
        "jets-dimension": Series(
            "dimension",
            (
                f"jets (many dimensions, A diagonal plus rank one) with gradient, {5 * points} "
                "points, 4×64"
            ),
            dimensions,
            (2, 10, 50),
            lambda d: jet_cost(d, "directional", 5 * points),
        ),
        "jets-dimension-full": Series(
            "dimension",
            f"jets (few dimensions, full A) with gradient, {5 * points} points, 4×64",
            (2, 3, 5, 10, 20),
            (2, 3, 5),
            lambda d: jet_cost(d, "cordes", 5 * points),
        ),
    }


def run(name: str, series: Series, quick: bool) -> dict[str, Any]:
    """Measure a series and fit its exponents, one for each part."""
    sizes = series.quick if quick else series.sizes
    say(f"\n{name}: {series.kept}")
    entries = []
    for size in sizes:
        begun = time.perf_counter()
        compile_seconds, seconds = series.measure(size)
        entries.append({"size": size, "compile": compile_seconds, "seconds": seconds})
        parts = ", ".join(f"{part} {value:.3g} s" for part, value in seconds.items())
        say(
            f"  {series.axis} {size}: {parts}; compile {compile_seconds:.2f} s; "
            f"{time.perf_counter() - begun:.1f} s in all"
        )
    exponents = {
        part: fit_exponent(sizes, [entry["seconds"][part] for entry in entries])._asdict()
        for part in entries[0]["seconds"]
    }
    return {
        "series": name,
        "axis": series.axis,
        "kept": series.kept,
        "entries": entries,
        "exponents": exponents,
    }


def exponent_rows(results: list[dict[str, Any]]) -> str:
    names = [
        "series",
        "part",
        "exponent",
        "last",
        "within",
        "from",
        "to",
        "seconds at the end",
        "kept",
    ]
    rows = [
        [
            r["series"],
            part,
            fit["power"],
            fit["last"],
            fit["spread"],
            int(fit["lower"]),
            int(fit["upper"]),
            r["entries"][-1]["seconds"][part],
            r["kept"],
        ]
        for r in results
        for part, fit in r["exponents"].items()
    ]
    return table(names, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer and smaller sizes, for a CPU")
    parser.add_argument(
        "--series", nargs="+", choices=list(all_series(True)), help="all of them unless named"
    )
    parser.add_argument("--json", type=Path, help="write all results here")
    options = parser.parse_args()
    begin()
    results: list[dict[str, Any]] = []
    for name, series in all_series(options.quick).items():
        if options.series is None or name in options.series:
            results.append(run(name, series, options.quick))
            write_json(options.json, {"quick": options.quick, "results": results})
    say("\nseconds ≈ C·sizeᵖ\n" + exponent_rows(results))


if __name__ == "__main__":
    main()
