"""Bad arguments of the Python functions: each must be refused with a CordesError, before any work.

python benchmarks/faults/arguments.py [WORD …]     those whose names hold one of the words
"""

import collections
import dataclasses
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import cordes
from cordes.ansatz.build import AnsatzOptions
from cordes.solvers.options import SOLVERS, OuterOptions

NAN, INFINITE = float("nan"), float("inf")
BOX = cordes.Box([0, 0], [1, 1])
NAME = "ex4.2-continuous"
METHODS = {"least-squares": {"features": 30}, "adam": {"epochs": 10}, "gauss-newton": {"steps": 1}}
# What each argument must not be.
WHOLE = (0, -1, 1.5, "a", True, NAN, [3], {}, -(10**20))
POSITIVE = (0, -1.0, NAN, INFINITE, "a", True, [1.0], {})
WORD = ("half", 3, ["sine"], {})
SOLVE = {
    "tol": POSITIVE,
    "seed": (-1, 1.5, "a", True, NAN, [1], None),
    "multiplier": ("no", 2, [1], None),
    "start": ("file", 3, [1]),
    "max_seconds": (0, -1, NAN, "a"),
    "progress": ("yes", 3),
    "certify": ("no", 3, None),
    "method": (3, "newton", ["adam"], b"adam", None),
    "nonsense": (1,),
}
OPTIONS = {
    "least-squares": {
        "features": WHOLE,
        "frequency": POSITIVE,
        "oversampling": (0, 1, NAN, INFINITE, "a", 1e9, 1e300),
        "activation": WORD,
    },
    "adam": {
        **{name: WHOLE for name in ("width", "depth", "points")},
        "epochs": (0, 9, 10.5, "a", NAN),
        "learning_rate": POSITIVE,
        "precision": WORD,
        "activation": WORD,
        "estimator": WORD,
        "probes": (0, 1, "a"),
        "preset": WORD,
    },
    "gauss-newton": {
        **{name: WHOLE for name in ("width", "depth", "points", "steps")},
        "momentum": (-0.1, 1, 5.0, NAN, "a"),
        "resample": ("a", 3),
        "activation": WORD,
    },
}
ANSATZ = {
    "delta": (-1.0, NAN, INFINITE, "a", [1]),
    "boundary": ("neumann", 3, ["hard"]),
    "boundary_weight": POSITIVE,
    "singular": ("a", 3),
    "inputs": WORD,
}


def always(options: type) -> set[str]:
    """Those that have a value whatever is said, so that None is none."""
    return {field.name for field in dataclasses.fields(options) if field.default is not None}


def calls() -> dict[str, Callable[[], object]]:
    """Every call by its name."""
    found: dict[str, Callable[[], object]] = {}

    def add(
        label: str, value: object, call: Callable[..., object], *given: object, **named: object
    ):
        found[f"{label} = {value!r}"[:70]] = lambda: call(*given, **named)

    for name, values in SOLVE.items():
        for value in values:
            add(f"solve {name}", value, cordes.solve, NAME, **{name: value})
    for method, options in OPTIONS.items():
        for name, values in (options | ANSATZ).items():
            for value in values:
                named = {"method": method, **METHODS[method], name: value}
                add(f"{method} {name}", value, cordes.solve, NAME, **named)
        for name in always(SOLVERS[method]) | always(AnsatzOptions):
            named = {"method": method, **METHODS[method], name: None}
            add(f"{method} {name}", None, cordes.solve, NAME, **named)
    for name in always(OuterOptions):
        add(f"outer {name}", None, cordes.solve, "ex4.5-hjb", "adam", **{"epochs": 10, name: None})
    for value in (None, 3, "nothing-of-this-name", [NAME], cordes.Linear, b"x", "", "a\0b"):
        for function in (cordes.solve, cordes.check, cordes.problem):
            add(function.__name__, value, function, value)
        add("gallery", value, cordes.gallery.__getitem__, value)
        add("load", value, cordes.load, value)
        add("certify", value, cordes.certify, value, lambda x: x[0])
    for value in (None, 3, "answer"):
        add("certify answer", value, cordes.certify, NAME, value)
    for name, values in {
        "norm": WORD,
        "confidence": (0, 1, NAN, "a", None),
        "residual_bound": POSITIVE,
        "barrier": ("a", 3, None),
    }.items():
        for value in values:
            add(f"certify {name}", value, cordes.certify, NAME, lambda x: 0 * x[0], **{name: value})
    for value in ("a", None, [], [NAN, 1], {}, [1, "b"], [[1], [2, 3]]):
        add("Box", value, cordes.Box, value, value)
        add("Ball", value, cordes.Ball, value, 1.0)
        add("Ball radius", value, cordes.Ball, [0, 0], value)
        add("Ellipsoid", value, cordes.Ellipsoid, [0, 0], value)
        add("Polygon", value, cordes.Polygon, value)
        add("Linear domain", value, cordes.Linear, value, 1.0, 1.0)
        add("Linear A", value, cordes.Linear, BOX, value, 1.0)
        add("Linear f", value, cordes.Linear, BOX, 1.0, value)
        add("HJB controls", value, cordes.HJB, BOX, value, lambda x, a: np.eye(2), 1.0)
    angles = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    add("Polygon", "20,000 corners", cordes.Polygon, corners)
    wide = cordes.Box(np.zeros(10**5), np.ones(10**5))
    add("Linear", "10**5 dimensions", cordes.Linear, wide, 1.0, 1.0)
    for label, f in {
        "raises": lambda x: 1 / 0,
        "text": lambda x: "a",
        "no argument": lambda: 1.0,
        "numpy": lambda x: np.sin(x[0]),
        "float": lambda x: float(x[0]),
    }.items():
        add("Linear f", label, cordes.Linear, BOX, 1.0, f)
    return found


def outcome(call: Callable[[], object]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except cordes.CordesError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    return "accepted"


def main(words: list[str]) -> int:
    counts: collections.Counter[str] = collections.Counter()
    for name, call in calls().items():
        if words and not any(word in name for word in words):
            continue
        start = time.perf_counter()
        found = outcome(call)
        counts[found if found in ("refused", "accepted") else "other"] += 1
        if found != "refused":
            print(f"{name:<70} {found} {time.perf_counter() - start:.1f} s", flush=True)
    print(dict(counts))
    return counts["accepted"] + counts["other"]


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
