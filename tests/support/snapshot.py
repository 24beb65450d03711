"""What the gallery's answers are, with all digits: the net below every change that should change
nothing.

    python tests/support/snapshot.py FOLDER [NAME …]       solve and write FOLDER/gallery.json and
    FOLDER/gallery.npz
    python tests/support/snapshot.py --compare OLD NEW     print what differs; exit status 1 if
    anything does

Kept: what `cordes solve NAME --json` prints, without its seconds, and u (transport: the map) at
1,000 points. Compared: u to 1e-12 of its largest value, every other number to 1e-9, and measured
errors below 1e-11, which are rounding, within a factor of two.
"""

import contextlib
import io
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

POINTS, POINTS_SEED = 1_000, 777
VALUES, NUMBERS, ROUNDING, FACTOR = 1e-12, 1e-9, 1e-11, 2.0
# Facts that say how the machine ran, not what the answer is.
CLOCKS = {"seconds", "compile", "time"}


def answered(name: str, solve: Callable | None = None) -> tuple[dict, np.ndarray]:
    """What the command prints as JSON, and u (the map of a transport problem) at points that no
    solver sees. `solve`: what the command calls in place of `cordes.solve`, such as the answers
    that tests share."""
    from unittest.mock import patch

    import cordes
    from cordes.cli import run

    made, solve = [], solve or cordes.solve

    def noted(*arguments, **options):
        made.append(solve(*arguments, **options))
        return made[-1]

    printed = io.StringIO()
    with patch.object(cordes, "solve", noted), contextlib.redirect_stdout(printed):
        run(["solve", name, "--json"])
    solution = made[-1]
    x = solution.problem.domain.interior_points(POINTS, POINTS_SEED)
    values = solution.map(x) if hasattr(solution, "map") else solution(x)
    return without_clocks(json.loads(printed.getvalue())), np.asarray(values)


def without_clocks(value):
    if isinstance(value, dict):
        return {key: without_clocks(each) for key, each in value.items() if key not in CLOCKS}
    return [without_clocks(each) for each in value] if isinstance(value, list) else value


def make(folder: Path, names: list[str]) -> None:
    import cordes

    folder.mkdir(parents=True, exist_ok=True)
    facts, values = read(folder) if (folder / "gallery.json").exists() else ({}, {})
    for name in names or list(cordes.gallery):
        facts[name], values[name] = answered(name)
        (folder / "gallery.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        np.savez_compressed(folder / "gallery.npz", **values)
        print(name, facts[name].get("result"), facts[name].get("error"), flush=True)


def read(folder: Path) -> tuple[dict, dict]:
    with np.load(folder / "gallery.npz") as kept:
        values = dict(kept)
    return json.loads((folder / "gallery.json").read_text(encoding="utf-8")), values


def differences(old, new, path: str) -> list[str]:
    """Where two trees of facts differ by more than they may."""
    if isinstance(old, dict) and isinstance(new, dict):
        # A key that is new is no difference: reports may learn to say more.
        return [
            line for key in old for line in differences(old[key], new.get(key), f"{path}.{key}")
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            line
            for i, pair in enumerate(zip(old, new, strict=True))
            for line in differences(*pair, f"{path}[{i}]")
        ]
    if isinstance(old, float) and isinstance(new, float):
        return (
            []
            if close(old, new, ".error." in path or ".reference." in path)
            else [f"{path}: {old!r} -> {new!r}"]
        )
    return [] if old == new else [f"{path}: {old!r} -> {new!r}"]


def close(old: float, new: float, measured: bool) -> bool:
    if measured and max(abs(old), abs(new)) < ROUNDING:
        return max(old, new) <= FACTOR * min(old, new)
    return math.isclose(old, new, rel_tol=NUMBERS)


def compare(old: Path, new: Path) -> list[str]:
    (old_facts, old_values), (new_facts, new_values) = read(old), read(new)
    lines = []
    for name in new_facts:
        scale = float(np.max(np.abs(old_values[name])))
        moved = float(np.max(np.abs(new_values[name] - old_values[name]))) / scale
        lines += [f"{name}: u moved by {moved:.2e} of its largest value"] if moved > VALUES else []
        lines += differences(old_facts[name], new_facts[name], name)
    return lines


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        found = compare(Path(sys.argv[2]), Path(sys.argv[3]))
        print("\n".join(found) or "nothing differs")
        sys.exit(bool(found))
    make(Path(sys.argv[1]), sys.argv[2:])
