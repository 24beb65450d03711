"""What the gallery's answers are, with all digits: the net below every change that should change
nothing.

    python tests/support/snapshot.py FOLDER [NAME …]       solve and write FOLDER/gallery.json and
    FOLDER/gallery.npz
    python tests/support/snapshot.py --compare OLD NEW     print what differs; exit status 1 if
    anything does

Kept: what `cordes solve NAME --json` prints, without its seconds, u (transport: the map) at 1,000
points, and the name of the processor.

Compared on the same processor: u to 1e-12 of its largest value and every other number to 1e-9, but
for what is rounding: errors and bounds are sums of differences of u and of its second derivatives,
which move by 1e-11 with the number of threads and the libraries beneath alone; measured errors
below 1e-11 and bounds below 1e-8 are that rounding, and are compared within a factor of two.
Another processor rounds otherwise, and sizes and theorems are chosen by comparing such numbers:
there u must agree to what the answer itself is known to (ten times its error, or its bound), and ε
to 1e-6, with the same method and the same end of the solve. The ε of an equation that is frozen at
the answer (determinants, transport) is as uncertain as second derivatives of the answer are: there
whether it is positive must agree.
"""

import contextlib
import io
import json
import math
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

POINTS, POINTS_SEED = 1_000, 777
VALUES, NUMBERS, FACTOR = 1e-12, 1e-9, 2.0
# Below these, measured errors and bounds are rounding; above, this is how far rounding moves them.
ROUNDING, ROUNDING_OF_BOUNDS, ROUNDING_MOVES = 1e-11, 1e-8, 1e-11
# On another processor.
ELSEWHERE, EPSILON_ELSEWHERE, ERRORS_ELSEWHERE = 1e-9, 1e-6, 10.0
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
    values = solution.map(x) if hasattr(solution, "map") else solution.values(x)
    return without_clocks(json.loads(printed.getvalue())), np.asarray(values)


def without_clocks(value):
    if isinstance(value, dict):
        return {key: without_clocks(each) for key, each in value.items() if key not in CLOCKS}
    return [without_clocks(each) for each in value] if isinstance(value, list) else value


def names_of_all() -> list[str]:
    """What is solved in a minute: problems in up to three dimensions, the heat equation in one."""
    import cordes

    dear = ("ex4.3-cube5", "coupled-", "heat-2d", "heat-3d")
    return [name for name in cordes.gallery if not name.startswith(dear)]


def make(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts, values = read(folder) if (folder / "gallery.json").exists() else ({}, {})
    for name in names or names_of_all():
        facts[name], values[name] = answered(name)
        (folder / "gallery.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        np.savez_compressed(folder / "gallery.npz", **values)
        (folder / "processor.txt").write_text(processor() + "\n", encoding="utf-8")
        print(name, facts[name].get("result"), facts[name].get("error"), flush=True)


def processor() -> str:
    """Which processor this is, as far as it decides how sums are rounded."""
    listed = Path("/proc/cpuinfo")
    if not listed.exists():
        return platform.processor() or platform.machine()
    lines = listed.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    facts = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    wide = "with" if "avx512f" in facts.get("flags", "") else "without"
    named = (facts.get(key, "?") for key in ("model name", "cpu family", "model"))
    return f"{', '.join(named)}, {wide} AVX-512"


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
        return [] if close(old, new, path) else [f"{path}: {old!r} -> {new!r}"]
    return [] if old == new else [f"{path}: {old!r} -> {new!r}"]


def close(old: float, new: float, path: str) -> bool:
    measured = ".error." in path or ".reference." in path
    rounding = ROUNDING if measured else ROUNDING_OF_BOUNDS if ".certificate." in path else 0.0
    if max(abs(old), abs(new)) < rounding:
        return max(old, new) <= FACTOR * min(old, new)
    return math.isclose(old, new, rel_tol=NUMBERS, abs_tol=ROUNDING_MOVES if rounding else 0.0)


Answer = tuple[dict, np.ndarray]


def differences_of(name: str, old: Answer, new: Answer) -> list[str]:
    """What differs although the processor is the same."""
    return moved(name, old, new, VALUES * largest(old)) + differences(old[0], new[0], name)


def differences_elsewhere(name: str, old: Answer, new: Answer) -> list[str]:
    """What differs by more than another processor explains."""
    doubt = max(uncertainty(facts) for facts, _ in (old, new))
    lines = moved(name, old, new, max(ELSEWHERE * largest(old), ERRORS_ELSEWHERE * doubt))
    for key in ("problem", "method", "result"):
        lines += differences(old[0][key], new[0][key], f"{name}.{key}")
    if frozen_at_answer(name):
        old_sign, new_sign = (facts["condition"]["satisfied"] for facts, _ in (old, new))
        return lines + differences(old_sign, new_sign, f"{name}.condition.satisfied")
    before, after = (facts["condition"]["epsilon"] for facts, _ in (old, new))
    same = before == after or math.isclose(before, after, rel_tol=EPSILON_ELSEWHERE)
    return lines + ([] if same else [f"{name}.condition.epsilon: {before!r} -> {after!r}"])


def frozen_at_answer(name: str) -> bool:
    """Whether the matrices of the Cordès condition are those of the answer."""
    import cordes

    return name in cordes.gallery and cordes.gallery[name].convex


def uncertainty(facts: dict) -> float:
    """How far the answer may be from the truth, as far as it says so."""
    certificate = facts["certificate"]
    known = [(facts["error"] or {}).get("linf"), certificate["Linf"], certificate["map_L2"]]
    return next((value for value in known if value is not None), math.inf)


def largest(answer: Answer) -> float:
    return float(np.max(np.abs(answer[1])))


def moved(name: str, old: Answer, new: Answer, allowed: float) -> list[str]:
    distance = float(np.max(np.abs(new[1] - old[1])))
    share = distance / largest(old)
    return [f"{name}: u moved by {share:.2e} of its largest value"] if distance > allowed else []


def compare(old: Path, new: Path) -> list[str]:
    (old_facts, old_values), (new_facts, new_values) = read(old), read(new)
    return [
        line
        for name in new_facts
        for line in differences_of(
            name, (old_facts[name], old_values[name]), (new_facts[name], new_values[name])
        )
    ]


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        found = compare(Path(sys.argv[2]), Path(sys.argv[3]))
        print("\n".join(found) or "nothing differs")
        sys.exit(bool(found))
    make(Path(sys.argv[1]), sys.argv[2:])
