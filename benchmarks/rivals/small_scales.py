"""Problems with small scales: cordes with defaults beside finite elements, in one command.

    python benchmarks/rivals/small_scales.py [NAME …] [--python-rivals PATH] [--repeats 3]
    [--out FILE.json]

`--python-rivals` names the interpreter of an environment with NGSolve (`pip install ngsolve`). Each
solver runs in a process of its own, one after the other, in turn; of several repeats the smallest
seconds of the processor count. Errors are relative to the largest |u|, at 3,000 points that are
dense near small things: against the exact solution of the peak, else against the finest elements,
whose own error is that of the two finest.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from elements import ELEMENTS, PEAK, WIDTH, corners_of_polygon

FOLDER = Path(__file__).resolve().parent
CORDES = FOLDER.parent / "scales"


def points_of(name: str) -> np.ndarray:
    """Random points, half of them near what is small."""
    random = np.random.default_rng(7)
    d = 3 if name == "box3d" else 2
    x = random.uniform(size=(1500, d))
    if name == "free-boundary":
        # Elements end a little inside of the circle.
        size, turn = (
            0.99 * np.sqrt(random.uniform(size=3000)),
            2 * np.pi * random.uniform(size=3000),
        )
        return size[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    if name == "polygon12":
        corners = corners_of_polygon()
        shares = random.exponential(size=(3000, 12))
        # Half of them near corners.
        shares[:1500] *= np.where(np.arange(12) == np.arange(1500)[:, None] % 12, 100, 1)
        return shares @ corners / np.sum(shares, axis=1, keepdims=True)
    if name == "box3d":
        x, near = 2 * x - 1, 2 * random.uniform(size=(1500, d)) - 1
        near[:, :2] *= 0.1
    elif name == "peak":
        near = PEAK + 2 * WIDTH * random.normal(size=(1500, 2))
    elif name.startswith("layer"):
        near = random.uniform(size=(1500, 2))
        near[:, 0] = float(name[6:]) * random.exponential(2.0, 1500)
    elif name.startswith("circle"):
        x, near = 2 * x - 1, random.normal(size=(1500, 2))
        size = np.linalg.norm(near, axis=1, keepdims=True)
        near *= (0.5 + 0.05 * random.normal(size=(1500, 1))) / size
    else:
        near = random.uniform(size=(1500, 2))
    x = np.concatenate([x, near])
    low = -1 if name.startswith("circle") or d == 3 else 0
    return x[np.all((x > low) & (x < 1), axis=1)]


def solved(name: str, points: Path, out: Path) -> None:
    """By cordes, in this process."""
    sys.path.insert(0, str(CORDES))
    import warnings

    from problems import HARDER  # pyright: ignore[reportMissingImports]

    import cordes

    warnings.simplefilter("ignore")
    problem = HARDER[name]()
    for again in (False, True):
        wall, processor = time.perf_counter(), time.process_time()
        solution = cordes.solve(problem, progress=False, certify=False)
        cost = time.process_time() - processor, time.perf_counter() - wall
        facts = {"again": again, "cpu": cost[0], "wall": cost[1], "method": solution.method}
        print(json.dumps(facts), flush=True)
    np.savez(out, values=solution(np.load(points)["x"])[None])


def ran(command: list[str], out: Path) -> tuple[list[dict[str, Any]], np.ndarray]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return lines, np.load(out)["values"]


def compared(name: str, python: str, repeats: int, folder: Path) -> dict[str, Any]:
    points, out = folder / f"{name}.points.npz", folder / f"{name}.values.npz"
    x = points_of(name)
    np.savez(points, x=x)
    files = [str(points), str(out)]
    theirs, ours = [], []
    for _ in range(repeats):
        elements, coarse_to_fine = ran([python, str(FOLDER / "elements.py"), name, *files], out)
        theirs.append(elements)
        cells, values = ran([sys.executable, __file__, name, "--here", *files], out)
        ours.append(cells)
    truth = coarse_to_fine[-1]
    if name == "peak":
        truth = np.exp(-np.sum((x - PEAK) ** 2, axis=1) / (2 * WIDTH**2))
    size = float(np.max(np.abs(truth)))

    def error(found: np.ndarray) -> float:
        return float(np.max(np.abs(found - truth))) / size

    def least(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        return [min(same, key=lambda each: each["cpu"]) for same in zip(*runs, strict=True)]

    rows = least(theirs)
    for row, found in zip(rows, coarse_to_fine, strict=True):
        row["error"] = error(found)
    if name != "peak":
        # The finest is its own truth.
        rows[-1]["error"] = None
    return {"name": name, "elements": rows, "cordes": least(ours), "error": error(values[0])}


def line(found: dict[str, Any]) -> str:
    def shown(row: dict[str, Any]) -> str:
        error = "truth" if row["error"] is None else f"{row['error']:.0e}"
        return f"{error} ({row['cpu']:.2f})"

    first, again = found["cordes"]
    elements = ", ".join(map(shown, found["elements"]))
    cordes = f"{found['error']:.0e} ({first['cpu']:.1f}, {again['cpu']:.1f})"
    return f"| {found['name']} | {cordes} | {elements} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python-rivals", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("small_scales.json"))
    parser.add_argument("--here", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    wrong = set(options.names) - set(ELEMENTS)
    if wrong or options.repeats < 1:
        parser.error(f"names are {', '.join(ELEMENTS)}, and repeats at least 1.")
    if options.here:
        solved(options.names[0], *options.here)
        return
    folder = options.out.resolve().parent
    print("| problem | cordes: error (CPU s first, again) | elements: error (CPU s) |")
    print("| --- | --- | --- |")
    found = []
    for name in options.names or ELEMENTS:
        found.append(compared(name, options.python_rivals, options.repeats, folder))
        print(line(found[-1]), flush=True)
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
