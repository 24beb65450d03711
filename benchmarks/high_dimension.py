"""Error against seconds in 5 to 100 dimensions: `python3 benchmarks/high_dimension.py [names…]
[--json PATH] [--seed N] [--limit SECONDS]`.

Without names the list of milestones is run: ex4.3-cube5, and the coupled problems on the ball in 10
and 100 dimensions, linear and with two controls. `all` stands for every coupled problem. Each case
runs in a process of its own with a time limit, so that one that fails or hangs does not harm the
others.

Seconds are those of the solve: compile time, and the time for measuring the error, are taken out
and shown apart. The relative l2 error is measured at points that no solver sees; the exact solution
serves for this and for nothing else. A case ends when its last milestone is reached or its time is
used up.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ERROR_POINTS = 20_000
OPTIONS = {
    "width": int,
    "depth": int,
    "points": int,
    "activation": str,
    "damping": float,
    "momentum": float,
}
ERROR_SEED = 987_654_321


class Case(NamedTuple):
    """A problem, how it is solved, the errors to reach (relative l2, or absolute where `absolute`),
    and the seconds of the solve."""

    options: dict[str, Any]
    milestones: tuple[float, ...]
    seconds: float
    absolute: bool = False


SMALL = {"width": 96, "depth": 2, "points": 3000}
LARGE = {"width": 128, "depth": 2, "points": 3000}
CASES = {
    "ex4.3-cube5": Case(
        {"width": 64, "depth": 3, "points": 4000}, (1e-2, 1e-3, 1e-4, 1e-5), 75, absolute=True
    ),
    "coupled-ball-10": Case(SMALL, (1e-2, 1e-3, 1e-4), 40),
    "coupled-ball-100": Case(LARGE, (3e-2, 1e-2, 3e-3, 2e-3), 30),
    "coupled-hjb-100": Case({**LARGE, "points": 2000}, (3e-2, 1e-2, 5e-3), 30),
    "coupled-hjb-10": Case(SMALL, (1e-2, 1e-3, 3e-4), 40),
    "coupled-ball-20": Case(SMALL, (1e-2, 1e-3, 3e-4), 60),
    "coupled-ball-50": Case(LARGE, (1e-2, 3e-3, 1e-3), 90),
    "coupled-cube-10": Case(SMALL, (1e-1, 1e-2, 1e-3), 40),
    "coupled-cube-20": Case(SMALL, (1e-1, 1e-2, 1e-3), 60),
    "coupled-cube-50": Case(LARGE, (1e-1, 1e-2, 3e-3), 90),
    "coupled-cube-100": Case(LARGE, (1e-1, 3e-2, 1e-2), 120),
}
DEFAULT = ("ex4.3-cube5", "coupled-ball-10", "coupled-ball-100", "coupled-hjb-100")
# Seconds for import, the checks of the problem, compiling and the certificate, on top of the solve.
OVERHEAD = 240


def say(text: str) -> None:
    print(text, flush=True)


def run_case(
    name: str, seed: int, seconds: float, options: dict[str, Any], certify: bool
) -> dict[str, Any]:
    """Solve one problem in this process and return what there is to say about it."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import cordes
    from cordes.runtime.clock import Clock
    from cordes.runtime.compilation import CompileTimer
    from cordes.runtime.progress import Progress
    from cordes.solutions.kinds import make_solution
    from cordes.solvers.dual import equation_of
    from cordes.solvers.rows.system import System
    from cordes.solvers.train import Budget

    case, begun = CASES[name], time.perf_counter()
    problem = cordes.gallery[name]
    system = System(problem, singular=False, inputs="interfaces")
    equation = equation_of(system)
    say(
        f"{name}: d = {problem.domain.dimension}, {options}, seed {seed}, on "
        f"{jax.devices()[0].device_kind}; made in {time.perf_counter() - begun:.1f} s"
    )
    x, weight = equation.draw(equation.sources(ERROR_SEED, 0, 1, ERROR_POINTS)[0], ERROR_POINTS)
    truth = weight * jax.jit(jax.vmap(problem.exact))(x)
    size = 1.0 if case.absolute else float(jnp.sqrt(jnp.mean(truth**2)))
    ansatz = system.ansatz
    error_of = jax.jit(
        lambda network: jnp.sqrt(
            jnp.mean((weight * jax.vmap(ansatz.distance)(x) * network.value(x) - truth) ** 2)
        )
    )

    curve: list[dict[str, float]] = []
    reached: dict[str, float] = {}
    measured = printed = 0.0
    clock = Clock()

    with CompileTimer() as timer:

        def watch(state: Any, step: int) -> bool:
            nonlocal measured, printed
            now = clock.seconds - timer.seconds - measured
            start, compiled = time.perf_counter(), timer.seconds
            error = float(error_of(state.network)) / size
            measured += time.perf_counter() - start - (timer.seconds - compiled)
            curve.append({"step": step, "seconds": now, "error": error})
            for milestone in case.milestones:
                if error <= milestone and str(milestone) not in reached:
                    reached[str(milestone)] = now
                    say(f"{name}: {milestone:g} reached after {now:.2f} s, {step} steps")
            if now >= 1.25 * printed:
                printed = now
                say(
                    f"{name}: {now:7.2f} s  step {step:5d}  error {error:.3e}  compile "
                    f"{timer.seconds:.1f} s"
                )
            return now > seconds or len(reached) == len(case.milestones)

        solver = cordes.GaussNewton(steps=1_000_000, **options)
        answer = solver.run_dual(system, Budget(None, clock, seed, Progress(name, False), watch))
        total, compiled = clock.seconds, timer.seconds
    facts = {
        "method": "gauss-newton",
        "seed": seed,
        "multiplier": True,
        "boundary": "hard",
        **options,
    }
    solution = make_solution(
        problem,
        system.ansatz,
        answer,
        {"certify": 0.0, "total": total, "compile": compiled, "solve": total - compiled - measured},
        facts,
    )
    error = solution.error()
    report: dict[str, Any] = {
        "name": name,
        "dimension": problem.domain.dimension,
        "device": jax.devices()[0].device_kind,
        "seed": seed,
        "network": (
            f"{options['depth']}x{options['width']} {options.get('activation', 'sine')}, "
            f"{answer.parameters} parameters"
        ),
        "points": options["points"],
        "steps": curve[-1]["step"],
        "seconds": solution.seconds["solve"],
        "compile": compiled,
        "measure": "absolute l2" if case.absolute else "relative l2",
        "error": curve[-1]["error"],
        "best": min(entry["error"] for entry in curve),
        "final": float(error_of(answer.network)) / size,
        "uniform": None
        if error is None
        else {"l2": error.l2, "relative": error.relative, "linf": error.linf},
        "reached": reached,
        "residual": answer.residual,
        "curve": curve,
    }
    say(
        f"{name}: {report['steps']} steps in {report['seconds']:.1f} s, compile "
        f"{compiled:.1f} s apart"
    )
    say(f"{name}: best {report['best']:.3e}, after the last layer {report['final']:.3e}")
    if certify:
        report["certificate"] = certified(solution, np.sqrt(np.mean(np.asarray(truth) ** 2)))
        say(f"{name}: certificate {report['certificate']}")
    return report


def certified(solution: Any, size: float) -> dict[str, Any]:
    """The bounds, or why there are none; a failure of the certificate does not lose the rest."""
    begun = time.perf_counter()
    try:
        certificate = solution.certify()
    except Exception as failure:
        return {
            "failed": f"{type(failure).__name__}: {failure}",
            "seconds": time.perf_counter() - begun,
        }
    names = (
        "rms",
        "Linf",
        "level",
        "confidence",
        "theorem",
        "contraction",
        "epsilon_source",
        "points",
        "reason",
    )
    facts = {name: getattr(certificate, name) for name in names}
    return {
        **facts,
        "relative": None if certificate.rms is None else certificate.rms / size,
        "seconds": time.perf_counter() - begun,
    }


def start_case(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One case in a process of its own."""
    seconds = arguments.limit or CASES[name].seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [
            sys.executable,
            __file__,
            name,
            "--inside",
            "--json",
            str(path),
            "--seed",
            str(arguments.seed),
            "--limit",
            str(seconds),
        ]
        command += [
            f"--{key}={value}" for key in OPTIONS if (value := getattr(arguments, key)) is not None
        ]
        command += ["--no-certificate"] if arguments.no_certificate else []
        begun = time.perf_counter()
        try:
            code = subprocess.run(command, timeout=seconds + OVERHEAD, check=False).returncode
        except subprocess.TimeoutExpired:
            code = "timeout"
        if path.exists():
            return json.loads(path.read_text())
        say(f"{name}: FAILED ({code}) after {time.perf_counter() - begun:.0f} s")
        return {"name": name, "failed": str(code)}


def summary(reports: list[dict[str, Any]]) -> str:
    lines = [
        "",
        (
            f"{'problem':18} {'error':>10} {'seconds':>8} {'compile':>8} {'steps':>6} "
            f"{'points':>6}  {'network':34} {'certified':>10}  milestones"
        ),
    ]
    for report in reports:
        if "failed" in report:
            lines.append(f"{report['name']:18} failed: {report['failed']}")
            continue
        bound = (report.get("certificate") or {}).get("relative")
        reached = ", ".join(f"{key}: {value:.2f} s" for key, value in report["reached"].items())
        lines.append(
            f"{report['name']:18} {report['best']:10.2e} {report['seconds']:8.1f} "
            f"{report['compile']:8.1f} {report['steps']:6d} {report['points']:6d}  "
            f"{report['network']:34} {'none' if bound is None else format(bound, '.2e'):>10}  "
            f"{reached or 'none'}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help=f"problems, `all`, or none for {', '.join(DEFAULT)}"
    )
    parser.add_argument("--json", type=Path, help="write all reports here")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, help="seconds of each solve")
    for key, kind in OPTIONS.items():
        parser.add_argument(f"--{key}", type=kind)
    parser.add_argument("--no-certificate", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = list(CASES) if arguments.names == ["all"] else arguments.names or list(DEFAULT)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    if arguments.inside:
        given = {key: value for key in OPTIONS if (value := getattr(arguments, key)) is not None}
        report = run_case(
            names[0],
            arguments.seed,
            arguments.limit,
            {**CASES[names[0]].options, **given},
            not arguments.no_certificate,
        )
        arguments.json.write_text(json.dumps(report))
        return
    reports = []
    for name in names:
        reports.append(start_case(name, arguments))
        if arguments.json:
            arguments.json.write_text(json.dumps(reports, indent=1))
    say(summary(reports))


if __name__ == "__main__":
    main()
