"""One Adam step of the paper preset by several routes: separate operations, packed operations with
a gradient by hand, and one kernel, cut in several ways.

Each variant is a compiled loop of Adam steps; milliseconds for each step, the largest difference of
loss and gradient from double precision (relative to the largest entry), and compile seconds are
printed. A compiler that aborts ends its process, so variants run in a child process that is started
again behind the variant that failed.     python benchmarks/adam_kernel/run.py [--only TEXT]
[--limit SECONDS] [--steps N] [--json FILE]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENVIRONMENT = dict(os.environ)
if "--work" not in sys.argv:
    # The parent must not take the device's memory.
    os.environ["JAX_PLATFORMS"] = "cpu"

from fused import Plan  # noqa: E402

ROUNDS = 5
# A variant that takes longer than this to compile and run is given up.
PATIENCE = 100.0

# In the order of what is likely to be fast.
FULL = [
    Plan(16, 132, 8, piece=32),
    Plan(16, 132, 8, piece=16),
    Plan(16, 264, 4, piece=16),
    Plan(16, 132, 8, piece=0),
    Plan(8, 264, 4, piece=16),
    Plan(16, 132, 8, piece=32, rolled=False),
    Plan(32, 132, 8, piece=16),
    Plan(16, 264, 8, piece=32),
    Plan(16, 264, 4, piece=0),
    Plan(32, 132, 8, joined=False, piece=16),
    Plan(16, 132, 8, piece=16, rolled=False, carried=True),
    Plan(8, 396, 4, piece=16),
    Plan(16, 625, 4, piece=16),
]
EMULATED = [
    Plan(16, 132, 8, piece=0, precision="bf16x9"),
    Plan(16, 132, 8, piece=0, precision="tf32x3"),
    Plan(16, 132, 8, piece=0, precision="bf16x6"),
    Plan(16, 264, 4, piece=0, precision="tf32x3"),
    Plan(32, 132, 8, piece=0, precision="tf32x3"),
    Plan(16, 264, 4, piece=0, precision="bf16x9"),
]


def title(plan: Plan) -> str:
    flags = [name for name in ("joined", "rolled", "carried") if getattr(plan, name)]
    return (
        f"kernel {plan.precision} block {plan.block} programs {plan.programs} warps {plan.warps} "
        f"piece {plan.piece} {' '.join(flags)}"
    )


VARIANTS: list[tuple[str, str, Any]] = [
    ("separate operations", "rows", None),
    ("packed operations", "packed", None),
    *((title(plan), "kernel", plan) for plan in FULL[:6]),
    *((title(plan), "kernel", plan) for plan in EMULATED[:3]),
    *((title(plan), "kernel", plan) for plan in FULL[6:]),
    ("packed operations bf16x9", "packed", "BF16_BF16_F32_X9"),
    ("packed operations tf32x3", "packed", "TF32_TF32_F32_X3"),
    *((title(plan), "kernel", plan) for plan in EMULATED[3:]),
    ("Adam alone", "none", None),
    ("bare step, separate operations", "rows", None),
    ("bare step, packed operations", "packed", None),
    ("bare step, packed operations bf16x9", "packed", "BF16_BF16_F32_X9"),
    ("bare step, packed operations tf32x3", "packed", "TF32_TF32_F32_X3"),
    ("bare step, kernel", "kernel", Plan(32, 132, 8, joined=False, piece=16)),
    ("bare step, Adam alone", "none", None),
]


# The child ----------------------------------------------------------------------------------------


class Bench:
    """The first seed of the paper's training on one problem: parameters as one vector, rows in
    single precision, and the truth in double precision."""

    def __init__(self, name: str, points: int, steps: int):
        import jax
        import jax.numpy as jnp
        import numpy as np
        from jax.flatten_util import ravel_pytree

        import cordes
        from cordes.solutions.errors import error_points
        from cordes.solvers.adam import PAPER
        from cordes.studies.ensemble import Ensemble, methods_of

        self.steps = steps
        problem = cordes.gallery[name]
        truth = np.zeros(len(error_points(problem.domain)))
        self.ensemble = Ensemble(
            problem, methods_of(problem)[0], range(1), truth, PAPER | {"points": points}
        )
        self.start = jax.tree.map(lambda leaf: leaf[0], self.ensemble.start())
        self.data = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], self.ensemble.data())
        frozen, target = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), self.data)
        double = self.ensemble.network(self.start.parameters, jnp.float64)
        square = jax.value_and_grad(
            lambda parameters: jnp.sum(
                (double.with_parameters(parameters).rows(frozen) - target) ** 2
            )
        )
        value, gradient = jax.jit(square)(double.parameters)
        self.truth = float(value), np.asarray(ravel_pytree(gradient)[0])

    def loss(self, route: str, setting: Any) -> tuple[Callable[[Any, Any], Any], Any]:
        """A function of parameters and data, and these data as the route wants them."""
        import fused
        import jax
        import jax.numpy as jnp
        import packed

        frozen, target = self.data
        shape = packed.shape_of(self.ensemble.template)
        matrix = lambda parameters: packed.matrix_of(self.ensemble.network(parameters))  # noqa: E731
        if route == "rows":
            return self.ensemble._loss, self.data
        if route == "none":
            return lambda parameters, data: 0.5 * jnp.sum(parameters**2), self.data
        if route == "packed":
            precision = getattr(jax.lax.DotAlgorithmPreset, setting) if setting else None
            table = jax.jit(lambda: packed.table_of(frozen, target, jnp.float32))()
            return lambda parameters, table: packed.packed_loss(
                matrix(parameters), table, shape, precision
            ), table
        table = jax.jit(lambda: packed.table_of(frozen, target, jnp.float32, setting.block))()
        interpret = jax.default_backend() == "cpu"
        return lambda parameters, table: fused.kernel_loss(
            matrix(parameters), table, shape, setting, interpret
        ), table

    def measure(self, name: str, route: str, setting: Any) -> dict[str, Any]:
        import jax
        import jax.numpy as jnp
        import numpy as np
        import optax

        loss, data = self.loss(route, setting)
        gradient_of, optimiser = jax.value_and_grad(loss), self.ensemble.optimiser

        def epoch(state: Any, data: Any) -> Any:
            value, gradient = gradient_of(state.parameters, data)
            update, memory = optimiser.update(gradient, state.memory)
            sharpness = jnp.linalg.norm(gradient - state.gradient) / jnp.maximum(
                state.moved, jnp.finfo(jnp.float32).tiny
            )
            return state._replace(
                parameters=optax.apply_updates(state.parameters, update),
                memory=memory,
                gradient=gradient,
                moved=jnp.linalg.norm(update),
                loss=value,
                sharpness=sharpness,
            )

        def bare(state: Any, data: Any) -> Any:
            """Adam alone, without the diagnostics of a study, written out so that it is one pass
            over the parameters."""
            value, gradient = gradient_of(state.parameters, data)
            count, (first, second) = state.memory[0].count + 1, state.memory[0][1:]
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
            power = count.astype(jnp.float32)
            update = first / (1 - 0.9**power) / (jnp.sqrt(second / (1 - 0.999**power)) + 1e-8)
            memory = (state.memory[0]._replace(count=count, mu=first, nu=second), *state.memory[1:])
            return state._replace(
                parameters=state.parameters - 3e-4 * update, memory=memory, loss=value
            )

        step, unroll = (bare, 10) if name.startswith("bare") else (epoch, 1)

        def advance(state: Any, data: Any) -> Any:
            return jax.lax.scan(
                lambda state, _: (step(state, data), None),
                state,
                None,
                length=self.steps,
                unroll=unroll,
            )[0]

        begin = time.perf_counter()
        value, gradient = jax.jit(gradient_of)(self.start.parameters, data)
        compiled = jax.jit(advance).lower(self.start, data).compile()
        compile_seconds = time.perf_counter() - begin
        state = jax.block_until_ready(compiled(self.start, data))
        end = float(state.loss)
        seconds = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            state = jax.block_until_ready(compiled(state, data))
            seconds.append((time.perf_counter() - begin) / self.steps)
        truth, slope = self.truth
        return {
            "ms": 1e3 * statistics.median(seconds),
            "fastest": 1e3 * min(seconds),
            "loss_error": float(abs(float(value) - truth) / truth),
            "gradient_error": float(
                np.max(np.abs(np.asarray(gradient, float) - slope)) / np.max(np.abs(slope))
            ),
            "loss_after": end,
            "compile": compile_seconds,
        }


def work(options: argparse.Namespace, numbers: list[int]) -> None:
    """The child: a line of JSON before and after each variant."""
    say = lambda **what: print(json.dumps(what), flush=True)  # noqa: E731
    bench = Bench(options.problem, options.points, options.steps)
    for number in numbers:
        name, route, setting = VARIANTS[number]
        say(begun=number)
        try:
            say(number=number, name=name, **bench.measure(name, route, setting))
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}".strip()
            say(
                number=number,
                name=name,
                failed=text[:300] + (" … " + text[-700:] if len(text) > 1000 else text[300:]),
            )


# The parent ---------------------------------------------------------------------------------------


def show(line: dict[str, Any]) -> None:
    if "failed" in line:
        print(f"{line['name']:85} FAILED {line['failed']}", flush=True)
        return
    print(
        f"{line['name']:85} {line['ms']:8.4f} ms (fastest {line['fastest']:.4f})  loss "
        f"{line['loss_error']:.1e}  gradient {line['gradient_error']:.1e}  loss after "
        f"{line['loss_after']:.6e}  compile {line['compile']:.1f} s", flush=True,
    )  # fmt: skip


def child_run(
    arguments: list[str], deadline: float
) -> tuple[list[dict[str, Any]], tuple[int | None, str] | None]:
    """Results of a child process, and the variant in which it died, with its last words."""
    results, begun = [], None
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=ENVIRONMENT,
        )
        guard = threading.Timer(PATIENCE, child.kill)
        guard.start()
        assert child.stdout is not None
        for text in child.stdout:
            if not text.startswith("{"):
                continue
            line = json.loads(text)
            if "begun" in line:
                guard.cancel()
                if time.perf_counter() > deadline:
                    child.kill()
                    child.wait()
                    return results, None
                guard = threading.Timer(PATIENCE, child.kill)
                guard.start()
                begun = line["begun"]
            else:
                begun = None
                results.append(line)
                show(line)
        guard.cancel()
        if child.wait() == 0:
            return results, None
        errors.seek(0)
        last = " | ".join(errors.read().strip().splitlines()[-6:])[-900:]
    return results, (begun, f"process ended with {child.returncode}: {last}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", nargs="?", default="ex4.2-continuous")
    parser.add_argument("--only", default="", help="variants whose name holds this text")
    parser.add_argument(
        "--limit", type=float, default=480.0, help="seconds after which no variant is begun"
    )
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", type=int, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options, options.work)
        return
    left = [number for number, (name, _, _) in enumerate(VARIANTS) if options.only in name]
    arguments = [options.problem, "--steps", str(options.steps), "--points", str(options.points)]
    results, begin = [], time.perf_counter()
    while left and time.perf_counter() - begin < options.limit:
        lines, failure = child_run([*arguments, "--work", *map(str, left)], begin + options.limit)
        results += lines
        left = [number for number in left if number not in {line["number"] for line in lines}]
        if failure is None:
            break
        number, text = failure
        if number is None:
            print(f"the child ended before a variant: {text}", flush=True)
            break
        results.append({"number": number, "name": VARIANTS[number][0], "failed": text})
        show(results[-1])
        left.remove(number)
    best = sorted(
        (line for line in results if "ms" in line and line["name"] != "Adam alone"),
        key=lambda line: line["ms"],
    )[:5]
    print("fastest:", *(f"{line['ms']:.4f} ms {line['name']}" for line in best), sep="\n  ")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
