"""Error against time: cordes beside its rivals, in one run, on the machine at hand.

    python benchmarks/rivals/run.py [--seconds 240] [--problems NAME …] [--solvers NAME …]
    [--python-rivals PATH] [--out DIR] [--keep]

Every solver runs alone, in a process of its own, with the same time, which counts from the start of
the process: import and compile are in it, and shown apart. Compiled programs of earlier runs are
not used, except by `cordes-cached`, which runs after `cordes` with what that left. Errors are
measured outside of the clock, on the 200×200 grid with the boundary, in five dimensions at 50,000
points that no solver uses. The recipe of each solver is in its runner and in the output. Rivals get
exact boundary values, and the interface inputs φ|φ| where the solution needs them. A rival that is
missing is reported and left out: `pip install -e '.[rivals]'`, here or in another environment whose
interpreter `--python-rivals` names.

Written to DIR as the run goes on: a curve for each solver and problem (`--keep` takes those that
are there already, whatever time they had; the table shows it), then rivals.json and rivals.png.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import MISSING
from equations import EQUATIONS
from tables import Point, best_table, compare, comparison_table, falling

HERE = Path(__file__).resolve().parent
RIVALS = ("deepxde", "jinns", "jinns-broyden")
COLOURS = {
    "cordes": "#1f6fb4",
    "cordes-cached": "#7fb2dd",
    "chebyshev": "#3a8f4d",
    "paper": "#8a6fb0",
    "jinns": "#c8501e",
    "deepxde": "#555555",
}
NONLINEAR = "ex4.6-monge-ampere"


class Solver(NamedTuple):
    """A label, the program, its variant, and the problems that it is for."""

    label: str
    runner: str
    variant: str = ""
    problems: tuple[str, ...] = tuple(EQUATIONS)


SOLVERS = {
    "cordes": Solver("cordes auto", "cordes", "auto"),
    "cordes-cached": Solver("cordes auto, compiled before", "cordes", "auto"),
    "chebyshev": Solver("Chebyshev collocation", "chebyshev"),
    "deepxde": Solver("DeepXDE (PyTorch)", "deepxde"),
    "jinns": Solver("jinns, natural gradient", "jinns"),
    "jinns-broyden": Solver("jinns, self-scaled Broyden", "jinns", "broyden", (NONLINEAR,)),
    "paper": Solver("paper preset (Adam)", "cordes", "paper"),
}
LABELS = {name: solver.label for name, solver in SOLVERS.items()}


def write_points(problem: str, path: Path) -> None:
    """Where errors are measured, and the exact values there."""
    import jax

    import cordes
    from cordes.solutions.errors import error_points

    exact = cordes.gallery[problem]
    x = error_points(exact.domain)
    np.savez(path, x=x, truth=np.asarray(jax.jit(jax.vmap(exact.exact))(x)))


def run_solver(name: str, problem: str, options: argparse.Namespace) -> dict[str, Any]:
    """Start one runner, wait for it, and read its curve."""
    solver, out = SOLVERS[name], options.out
    curve = out / f"{problem}--{name}.jsonl"
    if not (options.keep and read_curve(curve).get("status") == "ran"):
        curve.unlink(missing_ok=True)
        cache = out / f"cache-{problem}" if name.startswith("cordes") else out / "cache"
        if name != "cordes-cached":
            shutil.rmtree(cache, ignore_errors=True)
        python = options.python_rivals if name in RIVALS else sys.executable
        command = [
            python,
            str(HERE / f"{solver.runner}_runner.py"),
            "--problem",
            problem,
            "--points",
            str(out / f"{problem}.npz"),
        ]
        command += [
            "--curve",
            str(curve),
            "--seconds",
            str(options.seconds),
            "--variant",
            solver.variant,
            "--began",
            str(time.time()),
        ]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "XDG_CACHE_HOME": str(cache)},
                capture_output=True,
                text=True,
                timeout=4 * options.seconds + 600,
            )
        except subprocess.TimeoutExpired:
            return read_curve(curve) | {"status": "failed: it did not end in its time"}
        except OSError as error:
            return {"status": f"failed: {python} cannot be run ({error.strerror})"}
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if done.returncode == MISSING:
            return {"status": last}
        if done.returncode != 0:
            return read_curve(curve) | {"status": f"failed: {last}"}
    return read_curve(curve)


def read_curve(path: Path) -> dict[str, Any]:
    """The facts of one run and its curve as lists (seconds, solve, l2); the status is `ran` if the
    runner came to its end."""
    if not path.exists():
        return {"status": "no curve"}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    head = next((line for line in lines if "recipe" in line), {})
    end = next((line["end"] for line in lines if "end" in line), None)
    curve = [
        [round(line["seconds"], 3), round(line["solve"], 3), float(f"{line['l2']:.4g}")]
        for line in lines
        if "l2" in line
    ]
    compiled = (end or {}).get("compile", 0.0)
    return {
        "status": "ran" if end is not None else "failed",
        **head,
        "compile": round(compiled, 3),
        "curve": curve,
        "end": end,
    }


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Best error so far against time, one panel for each problem."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(len(results), 2)
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(5.6 * columns, 3.9 * rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    handles: dict[str, Any] = {}
    # The same range of time in all panels, so that they can be compared.
    times = [
        point[0]
        for solvers in results.values()
        for result in solvers.values()
        for point in result.get("curve") or []
    ]
    span = (min(times) / 1.2, max(times) * 1.2) if times else (1.0, 100.0)
    for axes, (problem, solvers) in zip(
        figure.subplots(rows, columns, squeeze=False).flat, results.items(), strict=False
    ):
        for name, result in solvers.items():
            points = falling([Point(*point) for point in result.get("curve") or []])
            if points:
                x, y = [point.seconds for point in points], [point.l2 for point in points]
                ended = max(x[-1], result["curve"][-1][0])
                style = "--" if name in ("cordes-cached", "jinns-broyden") else "-"
                colour = COLOURS.get(name, COLOURS["jinns"])
                (line,) = axes.plot(
                    [*x, ended],
                    [*y, y[-1]],
                    style,
                    color=colour,
                    marker="." if len(x) < 12 else None,
                    label=LABELS[name],
                )
                handles[LABELS[name]] = line
        axes.set(
            xscale="log",
            yscale="log",
            xlim=span,
            title=problem,
            xlabel="seconds, import and compile included",
            ylabel="best l2 error so far",
        )
        axes.grid(alpha=0.3)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=4, fontsize=9
    )
    figure.suptitle(f"Error against time on {os.cpu_count()} cores", fontsize=11)
    figure.savefig(path, dpi=110)


def facts_of(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What goes into the JSON file."""
    comparisons = {
        problem: {
            f"at {slack:g} times the best": [
                row._asdict() for row in compare(curves_of(solvers), RIVALS, slack)
            ]
            for slack in (1.0, 2.0)
        }
        for problem, solvers in results.items()
    }
    machine = {
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }
    return {"machine": machine, "results": results, "comparisons": comparisons}


def curves_of(solvers: dict[str, Any]) -> dict[str, list[Point]]:
    return {
        name: [Point(*point) for point in result["curve"]]
        for name, result in solvers.items()
        if result.get("curve")
    }


def report(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = best_table(results, LABELS)
    for problem, solvers in results.items():
        for slack, title in ((1.0, "at the best error of"), (2.0, "at twice the best error of")):
            lines += [
                "",
                *comparison_table(
                    problem, compare(curves_of(solvers), RIVALS, slack), LABELS, title
                ),
            ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--problems", nargs="+", choices=list(EQUATIONS), default=list(EQUATIONS))
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=list(SOLVERS))
    parser.add_argument(
        "--python-rivals", default=sys.executable, help="the interpreter that has DeepXDE and jinns"
    )
    parser.add_argument("--out", type=Path, default=Path("rivals"))
    parser.add_argument(
        "--keep", action="store_true", help="take the curves that are there already"
    )
    options = parser.parse_args()
    if not options.seconds > 0:
        parser.error(f"--seconds {options.seconds:g}: a positive number of seconds is needed.")
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, Any]] = {problem: {} for problem in options.problems}
    for problem in options.problems:
        write_points(problem, options.out / f"{problem}.npz")
        for name in options.solvers:
            if problem not in SOLVERS[name].problems:
                continue
            result = results[problem][name] = run_solver(name, problem, options)
            best = (
                f"best l2 {min(point[2] for point in result['curve']):.1e}"
                if result.get("curve")
                else ""
            )
            print(f"{problem:20} {LABELS[name]:34} {result['status']} {best}", flush=True)
            (options.out / "rivals.json").write_text(
                json.dumps(facts_of(results), indent=1) + "\n", encoding="utf-8"
            )
    print("", *report(results), sep="\n")
    draw(
        {problem: solvers for problem, solvers in results.items() if curves_of(solvers)} or results,
        options.out / "rivals.png",
    )


if __name__ == "__main__":
    main()
