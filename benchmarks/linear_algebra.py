"""Factorisations side by side: `python benchmarks/linear_algebra.py [--quick] [--parts gauss-newton
least-squares] [--json PATH]`.

Gauss–Newton: the damped step (JᵀJ + μI)δ = -Jᵀr for the Jacobian of a network of the solvers, for
one damping and for several, on the device:

    Cholesky      of JᵀJ + μI (primal, P ≤ N) or JJᵀ + μI (dual), once for each damping: what the
    solvers do
    QR            of J (or Jᵀ) with √μ I below it, once for each damping: never forms the square
    eigenvalues   of JᵀJ or JJᵀ, once for all dampings
    SVD           of J, once for all dampings

`error` is the distance from the step that LAPACK's SVD gives on the host in double precision, over
its length, for the damping of the solver and for a tiny one.

Least squares: the matrix that cordes makes for a problem (random features and singular functions,
numerically dependent), on the host with LAPACK and on the device. `residual` is the root mean
square over fresh points, relative to that of the target; `l2` the error of the solution against the
exact one, which serves for nothing else. Cholesky-QR takes the Cholesky factor R of AᵀA + sI,
columns of length one and s at the level of rounding, and refines by k steps of conjugate gradients
for AR⁻¹.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import Array
from jax.flatten_util import ravel_pytree
from measuring import begin, compiled, say, seconds_of, table, write_json

import cordes
from cordes.ansatz.ansatz import feature_matrix
from cordes.ansatz.networks.directional import hidden_columns
from cordes.ansatz.networks.random_features import RandomFeatures
from cordes.solvers import dual, gauss_newton
from cordes.solvers.rows.rank_revealing import DAMPING, RANK_TOLERANCE, solve_rank_revealing
from cordes.solvers.rows.system import System
from cordes.solvers.train import initial_weights, residual

# Dampings relative to the mean of the diagonal: the three that the solver tries around its first
# one, and one at which squares have no digits left.
DAMPINGS = (1.2e-3, 4e-3, 1.2e-2)
TINY = 1e-13

# Gauss–Newton -------------------------------------------------------------------------------------


def by_cholesky(J: Array, r: Array, dampings: Array) -> Array:
    n, P = J.shape
    gram = J.T @ J if n >= P else J @ J.T

    def one(damping: Array) -> Array:
        factor = jax.scipy.linalg.cho_factor(gram + damping * jnp.eye(len(gram), dtype=J.dtype))
        return (
            -jax.scipy.linalg.cho_solve(factor, J.T @ r)
            if n >= P
            else -J.T @ jax.scipy.linalg.cho_solve(factor, r)
        )

    return jax.lax.map(one, dampings)


def by_qr(J: Array, r: Array, dampings: Array) -> Array:
    n, P = J.shape

    def one(damping: Array) -> Array:
        tall, small = (J, P) if n >= P else (J.T, n)
        q, triangle = jnp.linalg.qr(
            jnp.concatenate([tall, jnp.sqrt(damping) * jnp.eye(small, dtype=J.dtype)])
        )
        top = q[: len(tall)]
        if n >= P:
            return -jax.scipy.linalg.solve_triangular(triangle, top.T @ r)
        return -top @ jax.scipy.linalg.solve_triangular(triangle, r, trans=1)

    return jax.lax.map(one, dampings)


def by_eigenvalues(J: Array, r: Array, dampings: Array) -> Array:
    n, P = J.shape
    values, vectors = jnp.linalg.eigh(J.T @ J if n >= P else J @ J.T)
    inside = vectors.T @ (J.T @ r if n >= P else r)
    steps = -(vectors @ (inside[:, None] / (jnp.maximum(values, 0.0)[:, None] + dampings))).T
    return steps if n >= P else steps @ J


def by_svd(J: Array, r: Array, dampings: Array) -> Array:
    u, s, vt = jnp.linalg.svd(J, full_matrices=False)
    return -((u.T @ r)[:, None] * s[:, None] / (s[:, None] ** 2 + dampings)).T @ vt


STEPS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "Cholesky": by_cholesky,
    "QR": by_qr,
    "eigenvalues": by_eigenvalues,
    "SVD": by_svd,
}


def reference_steps(J: np.ndarray, r: np.ndarray, dampings: Sequence[float]) -> list[np.ndarray]:
    """The steps by one SVD of the host in double precision."""
    u, s, vt = np.linalg.svd(np.asarray(J, np.float64), full_matrices=False)
    return [
        -vt.T @ (s / (s**2 + damping) * (u.T @ np.asarray(r, np.float64))) for damping in dampings
    ]


def primal_jacobian(name: str, points: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """One layer of sines in two dimensions, as the solver starts it."""
    system = System(cordes.gallery[name], singular=False, inputs="interfaces")
    state = initial_weights(system, None, width, 1, "sine", 0, "fourier")
    rows = jax.tree.map(jnp.asarray, system.rows(system.points(points, 0)))
    vector, unravel = ravel_pytree(state.parameters)
    J, r = jax.jit(
        lambda v, rows: (
            gauss_newton._jacobian(v, unravel, state, rows),
            residual(state.with_parameters(unravel(v)), rows),
        )
    )(vector, rows)
    return np.asarray(J), np.asarray(r)


def dual_jacobian(name: str, points: int, width: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """A deep network in many dimensions, as the solver starts it."""
    system = System(cordes.gallery[name], singular=False, inputs="interfaces")
    equation = dual.equation_of(system)
    template = initial_weights(system, None, width, depth, "sine", 0, "glorot").network
    vector, unravel = ravel_pytree(template.parameters)

    def row(vector: Array, column: Any) -> Array:
        state = template.with_parameters(unravel(vector))
        return hidden_columns(state, column) @ state.coefficients

    def both(vector: Array, source: Array) -> tuple[Array, Array]:
        columns, target = equation.freeze(template, *equation.draw(source, points))
        values, J = jax.vmap(jax.value_and_grad(row), (None, 0))(vector, columns)
        return J, values - target

    J, r = jax.jit(both)(vector, equation.sources(0, 0, 1, points)[0])
    return np.asarray(J), np.asarray(r)


def compare_steps(
    label: str,
    J: np.ndarray,
    r: np.ndarray,
    precision: str,
    rounds: int,
    skip: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """Seconds of one and of three dampings, and the distance from the reference, for every
    factorisation."""
    scale = float(np.sum(J**2)) / min(J.shape)
    judged = {"error": DAMPINGS[1] * scale, "error, tiny damping": TINY * scale}
    references = dict(zip(judged, reference_steps(J, r, list(judged.values())), strict=True))
    arguments = jnp.asarray(J, precision), jnp.asarray(r, precision)
    found = []
    for name, function in STEPS.items():
        facts: dict[str, Any] = {
            "case": label,
            "precision": precision,
            "rows": J.shape[0],
            "parameters": J.shape[1],
            "way": name,
        }
        found.append(facts)
        if name in skip:
            facts["skipped"] = "takes minutes at this size"
            continue
        three = jnp.asarray(np.array(DAMPINGS) * scale, precision)
        for count, dampings in ((1, three[1:2]), (3, three)):
            made = compiled(function, *arguments, dampings)
            facts[f"seconds of {count}"] = seconds_of(
                made.call, *arguments, dampings, rounds=rounds
            )
            facts["compile"] = made.seconds
        for key, damping in judged.items():
            step = np.asarray(
                jax.jit(function)(*arguments, jnp.asarray([damping], precision))[0], np.float64
            )
            facts[key] = float(
                np.linalg.norm(step - references[key]) / np.linalg.norm(references[key])
            )
    return found


# Least squares ------------------------------------------------------------------------------------


class Fit:
    """The system of a problem: matrix and target, the same at fresh points, and the error of a
    solution."""

    def __init__(self, name: str, points: int, features: int, frequency: float):
        self.system = System(cordes.gallery[name])
        inputs = self.system.ansatz.inputs
        network = RandomFeatures(inputs, features, frequency, 0, inputs.active("interfaces"))
        rows, fresh = (
            self.system.rows(made)
            for made in (self.system.points(points, 0), self.system.fresh_points(0))
        )
        self.network, self.damped = network, rows.singular.shape[1]
        self.matrix, self.target = feature_matrix(network, rows), np.asarray(rows.target)
        self.fresh, self.fresh_target = feature_matrix(network, fresh), np.asarray(fresh.target)
        self.label = f"{name}, {self.matrix.shape[0]} × {self.matrix.shape[1]}"

    def prepared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns of length one with the penalty on singular amplitudes below them, the target, and
        the lengths."""
        size = np.linalg.norm(self.matrix, axis=0)
        penalty = np.zeros((self.damped, self.matrix.shape[1]))
        penalty[:, self.matrix.shape[1] - self.damped :] = (
            DAMPING * np.linalg.norm(self.target) * np.eye(self.damped)
        )
        return (
            np.concatenate([self.matrix / size, penalty]),
            np.concatenate([self.target, np.zeros(self.damped)]),
            size,
        )

    def judge(self, solution: np.ndarray) -> dict[str, float]:
        from cordes.solutions.errors import error_points

        problem, width = self.system.problem, self.network.coefficients.shape[0]
        x = error_points(problem.domain)
        value = self.system.ansatz.value(
            self.network.with_coefficients(solution[:width]), solution[width:], x
        )  # pyright: ignore[reportArgumentType]
        error = value - np.asarray(jax.jit(jax.vmap(problem.exact))(x))
        residual = np.linalg.norm(self.fresh @ solution - self.fresh_target) / np.linalg.norm(
            self.fresh_target
        )
        return {"residual": float(residual), "l2": float(np.sqrt(np.mean(error**2)))}


def refined_cholesky(matrix: Any, target: Any, steps: int, library: Any) -> Any:
    """Least squares with the Cholesky factor R of AᵀA + sI: `steps` of conjugate gradients for the
    columns of AR⁻¹, which are nearly orthonormal where A is not numerically dependent; `library` is
    numpy or jax.numpy."""
    linear, n = scipy.linalg if library is np else jax.scipy.linalg, matrix.shape[1]
    gram = matrix.T @ matrix
    factor = linear.cholesky(
        gram + n * np.finfo(np.float64).eps * library.linalg.norm(gram) * library.eye(n)
    )
    forward = lambda v: matrix @ linear.solve_triangular(factor, v)  # noqa: E731
    backward = lambda v: linear.solve_triangular(factor, matrix.T @ v, trans=1)  # noqa: E731
    found, rest = 0.0, target
    slope = direction = backward(rest)
    for _ in range(steps):
        image = forward(direction)
        length = (slope @ slope) / (image @ image)
        found, rest = found + length * direction, rest - length * image
        new = backward(rest)
        slope, direction = new, new + (new @ new) / (slope @ slope) * direction
    return linear.solve_triangular(factor, found)


def device_qr(matrix: Array, target: Array) -> Array:
    triangle = jnp.linalg.qr(jnp.concatenate([matrix, target[:, None]], axis=1), mode="r")
    n = matrix.shape[1]
    return jax.scipy.linalg.solve_triangular(triangle[:n, :n], triangle[:n, n])


def device_svd(matrix: Array, target: Array) -> Array:
    triangle = jnp.linalg.qr(jnp.concatenate([matrix, target[:, None]], axis=1), mode="r")
    n = matrix.shape[1]
    u, s, vt = jnp.linalg.svd(triangle[:n, :n])
    kept = s > RANK_TOLERANCE * s[0]
    return vt.T @ jnp.where(kept, (u.T @ triangle[:n, n]) / jnp.where(kept, s, 1.0), 0.0)


def by_lapack(matrix: np.ndarray, target: np.ndarray, driver: str) -> np.ndarray:
    return scipy.linalg.lstsq(matrix, target, RANK_TOLERANCE, lapack_driver=driver)[0]  # pyright: ignore


def host_qr(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    n = matrix.shape[1]
    triangle: np.ndarray = np.linalg.qr(np.concatenate([matrix, target[:, None]], axis=1), mode="r")  # pyright: ignore
    return scipy.linalg.solve_triangular(triangle[:n, :n], triangle[:n, n])


def hybrid(matrix: np.ndarray, target: np.ndarray, triangle_of: Callable) -> np.ndarray:
    """The tall QR on the device, the pivoted one of the small triangle on the host."""
    triangle = np.asarray(
        triangle_of(jnp.asarray(np.concatenate([matrix, target[:, None]], axis=1)))
    )
    n = matrix.shape[1]
    q, r, order = scipy.linalg.qr(triangle[:n, :n], pivoting=True, mode="economic")  # pyright: ignore
    pivots = np.abs(np.diag(r))
    rank = int(np.sum(pivots > RANK_TOLERANCE * pivots[0]))
    solution = np.zeros(n)
    solution[order[:rank]] = scipy.linalg.solve_triangular(
        r[:rank, :rank], np.asarray(q)[:, :rank].T @ triangle[:n, n]
    )
    return solution


def compare_fits(fit: Fit, rounds: int, slow: bool) -> list[dict[str, Any]]:
    matrix, target, size = fit.prepared()
    lapack = {"SVD (gelsd)": "gelsd", "pivoted QR (gelsy)": "gelsy"}
    host: dict[str, Callable[[], np.ndarray]] = {
        "cordes": lambda: solve_rank_revealing(fit.matrix, fit.target, damped=fit.damped) * size,
        **{
            name: (lambda driver=driver: by_lapack(matrix, target, driver))
            for name, driver in lapack.items()
        },
        "QR": lambda: host_qr(matrix, target),
        **{
            f"Cholesky-QR, {k} steps": (lambda k=k: refined_cholesky(matrix, target, k, np))
            for k in (1, 5, 20)
        },
    }
    device: dict[str, Callable[..., Array]] = {
        "QR, device": device_qr,
        **({"QR and SVD, device": device_svd} if slow else {}),
        **{
            f"Cholesky-QR, {k} steps, device": (lambda A, b, k=k: refined_cholesky(A, b, k, jnp))
            for k in (5, 20)
        },
    }
    triangle_of = jax.jit(lambda system: jnp.linalg.qr(system, mode="r"))
    host["QR on the device, pivoted QR on the host"] = lambda: hybrid(matrix, target, triangle_of)
    found = []
    for name, function in host.items():
        found.append(
            {
                "case": fit.label,
                "way": name,
                **attempted(
                    lambda function=function: (
                        seconds_of(function, rounds=rounds),
                        None,
                        function(),
                    ),
                    fit,
                    size,
                ),
            }
        )
    placed = jnp.asarray(matrix), jnp.asarray(target)
    for name, function in device.items():

        def run(function: Callable = function) -> tuple[float, float, np.ndarray]:
            made = compiled(function, *placed)
            return (
                seconds_of(made.call, *placed, rounds=rounds),
                made.seconds,
                np.asarray(made.call(*placed)),
            )

        found.append({"case": fit.label, "way": name, **attempted(run, fit, size)})
    return found


def attempted(
    run: Callable[[], tuple[float, float | None, np.ndarray]], fit: Fit, size: np.ndarray
) -> dict[str, Any]:
    """Seconds and errors; a factorisation that breaks down says so."""
    try:
        seconds, compile_seconds, solution = run()
    except np.linalg.LinAlgError as failure:
        return {"failed": str(failure)}
    if not np.all(np.isfinite(solution)):
        return {"seconds": seconds, "compile": compile_seconds, "failed": "not finite"}
    return {"seconds": seconds, "compile": compile_seconds, **fit.judge(solution / size)}


# Program ------------------------------------------------------------------------------------------


def gauss_newton_part(quick: bool, precision: str) -> list[dict[str, Any]]:
    gpu, rounds = jax.default_backend() != "cpu", 3
    if quick:
        cases = [
            ("primal", *primal_jacobian("ex4.2-continuous", 150, 20)),
            ("dual", *dual_jacobian("ex4.3-cube5", 60, 16, 2)),
        ]
    else:
        cases = [
            ("primal, ex4.2-continuous", *primal_jacobian("ex4.2-continuous", 2000, 250)),
            ("dual, ex4.2-continuous", *primal_jacobian("ex4.2-continuous", 800, 250)),
            ("dual, ex4.3-cube5", *dual_jacobian("ex4.3-cube5", 1000, 64, 3)),
        ]
        cases += (
            [("dual, ex4.3-cube5, solver's size", *dual_jacobian("ex4.3-cube5", 4000, 64, 3))]
            if gpu
            else []
        )
    found = []
    for label, J, r in cases:
        found += compare_steps(label, J, r, precision, rounds, ("SVD",) if J.size > 2e7 else ())
        names = ["one, ms", "three, ms", "error", "error, tiny damping", "compile s"]
        rows = [
            [
                *(f["way"], 1e3 * f["seconds of 1"], 1e3 * f["seconds of 3"]),
                *(f["error"], f["error, tiny damping"], f["compile"]),
            ]
            if "error" in f
            else [f["way"], *[None] * 4, f["skipped"]]
            for f in found
            if f["case"] == label
        ]
        say(
            f"\nGauss–Newton, {label}: {J.shape[0]} rows, {J.shape[1]} parameters, {precision}\n"
            + table(["way", *names], rows)
        )
    return found


def least_squares_part(quick: bool) -> list[dict[str, Any]]:
    sizes = [(250, 100)] if quick else [(2500, 1000), (4000, 1000)]
    found = []
    for name in ("ex4.2-continuous",) if quick else ("ex4.2-continuous", "ex4.2-discontinuous"):
        for points, features in sizes:
            begun = time.perf_counter()
            fit = Fit(name, points, features, 4.0 if features > 250 else 2.0)
            say(
                f"\nLeast squares, {fit.label} ({features} features, {fit.damped} singular "
                f"functions); made in {time.perf_counter() - begun:.1f} s"
            )
            results = compare_fits(fit, 3, slow=True)
            keys = ("residual", "l2", "compile", "failed")
            rows = [
                [
                    f["way"],
                    1e3 * f["seconds"] if "seconds" in f else None,
                    *(f.get(key) for key in keys),
                ]
                for f in results
            ]
            say(table(["way", "ms", "residual", "l2", "compile s", "failed"], rows))
            found += results
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=("gauss-newton", "least-squares"),
        default=["gauss-newton", "least-squares"],
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "float64"),
        default="float64",
        help="of the Gauss–Newton part",
    )
    parser.add_argument("--json", type=Path, help="write all results here")
    options = parser.parse_args()
    begin()
    facts: dict[str, Any] = {"quick": options.quick, "precision": options.precision}
    if "gauss-newton" in options.parts:
        facts["gauss_newton"] = gauss_newton_part(options.quick, options.precision)
        write_json(options.json, facts)
    if "least-squares" in options.parts:
        facts["least_squares"] = least_squares_part(options.quick)
        write_json(options.json, facts)


if __name__ == "__main__":
    main()
