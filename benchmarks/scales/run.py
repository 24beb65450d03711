"""The problems of `problems.py` by `cordes.solve(problem)` with defaults: error, certified bounds,
seconds of the processor.

    python benchmarks/scales/run.py [NAME …] [--truths FOLDER] [--out FILE.json]

Each problem is solved in a process of its own. `start` is import, preparation and compilation,
`solve` and `certify` are what is left; all are seconds of the processor, since the clock depends on
who else uses the machine. Errors are relative to the largest |u|: against the exact solution, or
the values of `truths.py` where there is a file NAME.npz of them.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def solved(name: str, truths: Path | None) -> dict[str, Any]:
    """One problem, in this process."""
    began = time.process_time()
    sys.path.insert(0, str(FOLDER))
    import numpy as np
    from problems import HARDER, SCALES

    import cordes

    imported = time.process_time()
    warnings.simplefilter("ignore")
    problem = (SCALES | HARDER)[name]()
    solution = cordes.solve(problem, progress=False)
    ended = time.process_time()
    seconds, certificate = solution.seconds, solution.certificate
    x, truth = _truth(problem, solution, None if truths is None else truths / f"{name}.npz")
    facts: dict[str, Any] = {
        "name": name,
        "method": solution.method,
        "result": solution.result.name,
        "parameters": int(solution.parameters),
        "cpu": {"import": imported - began, "solve": ended - imported},
        "wall": {key: round(float(value), 3) for key, value in seconds.items()},
        "bounds": {"rms": certificate.rms, "Linf": certificate.Linf},
        "levels": {k: str(v) for k, v in certificate.levels.items()},
        "theorem": certificate.theorem,
        "reason": None if certificate.reason is None else certificate.reason[:160],
    }
    if truth is not None:
        error, size = solution(x) - truth, float(np.max(np.abs(truth)))
        facts["error"] = {
            "l2": float(np.sqrt(np.mean(error**2))) / size,
            "linf": float(np.max(np.abs(error))) / size,
            "size": size,
        }
    return facts


def _truth(problem: Any, solution: Any, path: Path | None) -> tuple[Any, Any]:
    """Points with values, also near small things."""
    import jax
    import numpy as np

    from cordes.problems.features import features_of

    if path is not None and path.exists():
        data = np.load(path)
        return data["x"], data["values"]
    if problem.exact is None:
        return None, None
    random = np.random.default_rng(5)
    lower, upper = problem.domain.bounding_box
    x = random.uniform(lower, upper, (4000, len(lower)))
    boxes = features_of(problem)
    if len(boxes.lower):
        chosen = random.integers(0, len(boxes.lower), 2000)
        inside = random.uniform(boxes.lower[chosen], boxes.upper[chosen])
        x = np.concatenate([x, inside])
    x = x[problem.domain.contains(x)]
    return x, np.asarray(jax.vmap(problem.exact)(x))


def table(found: list[dict[str, Any]]) -> str:
    rows = [
        "| problem | method, result | parameters | error (largest, relative) | certified rms "
        "/ max | import, solve and certify: CPU s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in found:
        if "failed" in each:
            rows.append(f"| {each['name']} | {each['failed']} | | | | |")
            continue
        error = f"{each['error']['linf']:.1e}" if "error" in each else "?"
        bounds = " / ".join("none" if v is None else f"{v:.1e}" for v in each["bounds"].values())
        cpu = f"{each['cpu']['import']:.1f}, {each['cpu']['solve']:.1f}"
        share = f"(certify {each['wall'].get('certify', 0):.1f} wall)"
        rows.append(
            f"| {each['name']} | {each['method']}, {each['result']} | {each['parameters']} | "
            f"{error} | {bounds} | {cpu} {share} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--truths", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(solved(options.names[0], options.truths)))
        return
    sys.path.insert(0, str(FOLDER))
    from problems import HARDER, SCALES

    found = []
    for name in options.names or [*SCALES, *HARDER]:
        command = [sys.executable, __file__, name, "--here"]
        if options.truths is not None:
            command += ["--truths", str(options.truths)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            found.append(json.loads(lines[-1]))
        else:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            found.append({"name": name, "failed": last[:200]})
        print(table(found[-1:]).splitlines()[-1], flush=True)
        if options.out is not None:
            options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
