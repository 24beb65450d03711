"""Damaged and forged answers: each is refused, or gives the very same values.

    python benchmarks/faults/answers.py DAMAGED FORGED [SEED]

DAMAGED files have flipped bits, cut tails or blocks that are missing; FORGED ones are whole
archives that say something else; then bombs, pickles, huge shapes and strange names.
"""

import copy
import io
import json
import os
import pickle
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from forging import damaged, forged_arrays, forged_facts
from judging import Tally

import cordes
from cordes.problems.written.toml_file import problem_from_toml

FILE = """schema = 1\nkind = "linear"\n[domain]\ntype = "box"\nlower = [-1, -1]\nupper = [1, 1]
[equation]\nA = [["2", "sign(x1*x2)"], ["sign(x1*x2)", "2"]]\nf = 2\ninterfaces = ["x1", "x2"]\n"""
HEAD = 'schema = 2\nkind = "{}"\n[domain]\ntype = "box"\nlower = [{}]\nupper = [1]\n[equation]\n'
SMOOTH = HEAD.format("linear", 0) + 'A = 1\nf = "sin(9*x1)"\n'
SQUARE = SMOOTH.replace("[0]", "[0, 0]").replace("[1]", "[1, 1]")
HEAT = HEAD.format("parabolic", 0) + 'A = 1\nf = 0\nhorizon = 0.2\ninitial = "sin(pi*x1)"\n'
STOPPED = HEAD.format("obstacle", -1) + 'A = 1\nf = 0\nbelow = "0.5 - x1**2"\n'
PUT = (
    HEAD.format("obstacle", -1)
    + """A = 0.02\nb = [0.03]\nc = 0.05\nf = 0\nhorizon = 1
g = "max(1 - exp(x1), 0)"\nterminal = "max(1 - exp(x1), 0)"\nbelow = "max(1 - exp(x1), 0)"\n"""
)
WALLS = """schema = 2\nkind = "linear"\n[domain]\ntype = "box"\nlower = [0]\nupper = [1]
[boundary]\nleft = {type = "robin", kappa = 2, h = 1}\nright = {type = "dirichlet"}
[equation]\nA = 1\nf = "sin(3*x1)"\n"""
ANGLE = """schema = 2\nkind = "linear"\n[domain]\ntype = "polygon"
vertices = [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]\n[equation]\nA = 1\nf = 1\n"""
WIDE = f"""schema = 1\nkind = "linear"\n[domain]\ntype = "box"\nlower = {[0] * 3000}
upper = {[1] * 3000}\n[equation]\nA = "1+r"\nf = 1\n"""


def answers() -> dict[str, bytes]:
    """Small answers of several kinds, as files."""
    gallery, found = cordes.gallery, {}
    made: tuple[tuple[str, Any, dict[str, Any]], ...] = (
        ("least-squares", gallery["ex4.2-continuous"], {"features": 40}),
        ("file", problem_from_toml(FILE, "t.toml"), {"features": 40}),
        ("adam", gallery["ex4.2-continuous"], {"method": "adam", "epochs": 10, "width": 8}),
        ("hjb", gallery["switching-control"], {"features": 40}),
        ("cells", problem_from_toml(SMOOTH, "t.toml"), {"method": "cells", "cells": 4}),
        ("pieces", problem_from_toml(SQUARE, "t.toml"), {}),
        ("time", problem_from_toml(HEAT, "t.toml"), {"features": 40}),
        ("obstacle", problem_from_toml(STOPPED, "t.toml"), {"features": 40}),
        ("potential", problem_from_toml(PUT, "t.toml"), {}),
        ("walls", problem_from_toml(WALLS, "t.toml"), {}),
        ("expansion", problem_from_toml(ANGLE, "t.toml"), {"levels": 2}),
    )
    for name, problem, options in made:
        with tempfile.TemporaryDirectory() as folder:
            solution = cordes.solve(problem, certify=False, progress=False, **options)
            found[name] = solution.save(Path(folder) / "a.cordes").read_bytes()
    return found


def opened(data: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, json.loads(arrays.pop("facts").tobytes())


def packed(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> bytes:
    text, file = json.dumps(facts).encode(), io.BytesIO()
    whole: dict[str, Any] = {**arrays, "facts": np.frombuffer(text, np.uint8)}
    np.savez_compressed(file, **whole)
    return file.getvalue()


class Evil:
    def __reduce__(self) -> tuple:
        return os.system, ("touch executed",)


def attacks(whole: bytes) -> dict[str, bytes]:
    """Bombs, pickles, huge shapes, strange names."""
    arrays, facts = opened(whole)

    def header(shape: tuple, kind: str = "<f8") -> bytes:
        stream = io.BytesIO()
        said = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, said)
        return stream.getvalue()

    def added(name: str, start: bytes, zeros: int = 0) -> bytes:
        file = io.BytesIO(whole)
        with (
            warnings.catch_warnings(action="ignore"),
            zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive,
            archive.open(name, "w", force_zip64=True) as part,
        ):
            part.write(start)
            for _ in range(zeros):
                part.write(bytes(1 << 20))
        return file.getvalue()

    def saying(change: Callable[[dict], Any], **more: np.ndarray) -> bytes:
        other = copy.deepcopy(facts)
        change(other)
        return packed(arrays | more, other)

    pickled, deep = io.BytesIO(), b'{"format": 1, "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    np.save(pickled, np.array([Evil()], dtype=object), allow_pickle=True)
    nested: dict[str, Any] = {**arrays, "facts": np.frombuffer(deep, np.uint8)}
    stream = io.BytesIO()
    np.savez(stream, **nested)
    return {
        "pickled array": added("weight9.npy", pickled.getvalue()),
        "plain pickle": pickle.dumps(Evil()),
        "array of objects": pickled.getvalue(),
        "names with paths": added("../../executed.npy", header((1,)) + bytes(8)),
        "same name twice": added("values.npy", header((1,)) + bytes(8)),
        "700 MB of zeros, an array": added("bomb.npy", header((700 << 17,)), 700),
        "700 MB of zeros, a text": added("bomb.txt", b"", 700),
        **{
            f"shape {shape} of {kind}": added("huge.npy", header((shape,), kind))
            for shape, kind in ((10**15, "<f8"), (2**31, "<f8"), (-5, "<f8"), (2**62, "|V0"))
        },
        "nested 200,000 deep": stream.getvalue(),
        "10**8 layers": saying(lambda f: f["network"].update(kind="mlp", layers=10**8)),
        "three layers of 10**5": saying(
            lambda f: f["network"].update(kind="mlp", layers=3), coefficients=np.zeros(10**5)
        ),
        **{
            f"richness {k}": saying(lambda f, k=k: f["facts"].update(richness=k))
            for k in (3, 10**6)
        },
        "degree 10**5": saying(
            lambda f: f.update(fits=[[10**5, [[1, False]], 1]]), fit0=np.ones(4)
        ),
        "format 2": saying(lambda f: f.update(format=2)),
        "no source": saying(lambda f: f["problem"].update(source=None)),
        "3000 dimensions": saying(lambda f: f["problem"].update(source={"toml": WIDE})),
        "empty": b"",
    }


def multitudes(parts: dict[str, tuple]) -> dict[str, bytes]:
    """Whole files of some kilobytes, each true to itself, from which gigabytes would be made."""

    def other(name: str, **more: np.ndarray) -> bytes:
        arrays, facts = parts[name]
        return packed(arrays | more, facts)

    rows = 300_000
    layers = {"weight0": np.zeros((2, rows)), "bias0": np.zeros(rows)}
    points = {
        name: np.zeros((rows, *part.shape[1:]))
        for name, part in parts["least-squares"][0].items()
        if name in ("probes", "values", "equation")
    }
    lines = np.linspace(0, 1, 5_000)[None].repeat(2, axis=0)
    edges = np.linspace(0, 1, rows)
    panel = len(parts["potential"][0]["coefficients"]) // (len(parts["potential"][0]["edges"]) - 1)
    box = parts["expansion"][0]["box"].copy()
    box[0, 4] = 20_000
    return {
        "features": other("least-squares", coefficients=np.zeros(rows), **layers),
        "points": other("least-squares", **points),
        "lines": other("pieces", lines=lines, degrees=np.full(2, 64.0)),
        "panels": other("potential", edges=edges, coefficients=np.zeros((rows - 1) * panel)),
        "polynomials": other("expansion", box=box),
        "functions": other("expansion", powers=np.zeros((rows, 4))),
        "cells": other("cells", cells=np.zeros((rows, 1, 2)), squares=np.zeros((rows, 3))),
    }


def fuzz(count: int, forged: int, seed: int = 1) -> Tally:
    chance, tally, whole = random.Random(seed), Tally(), answers()
    folder = Path(tempfile.mkdtemp())
    path, truths, parts = folder / "a.cordes", {}, {}
    for name, data in whole.items():
        path.write_bytes(data)
        loaded = cordes.load(path)
        points = loaded.problem.domain.interior_points(50, seed=5)
        truths[name], parts[name] = (points, loaded.values(points)), opened(data)

    def judge(kind: str, name: str, data: bytes, note: str = "") -> str:
        def read() -> None:
            points, values = truths[name]
            assert np.allclose(cordes.load(path).values(points), values, rtol=1e-6, atol=1e-8)

        path.write_bytes(data)
        return tally.judge(kind, f"{name} {note}", read)

    for _ in range(count):
        name = chance.choice(list(whole))
        judge("damaged", name, damaged(whole[name], chance))
    for _ in range(forged):
        name = chance.choice(list(whole))
        arrays, facts = parts[name]
        if chance.random() < 0.75:
            judge("forged facts", name, packed(arrays, forged_facts(facts, chance)))
        else:
            judge("forged arrays", name, packed(forged_arrays(arrays, chance), facts))
    more = {f"too many, {name}": data for name, data in multitudes(parts).items()}
    for note, data in (attacks(whole["least-squares"]) | more).items():
        outcome = judge("attack", "least-squares", data, note)
        if outcome == "accepted":
            print(f"accepted with the same values: {note}")
    assert not (folder / "executed").exists()
    assert not Path("executed").exists()
    path.unlink()
    folder.rmdir()
    return tally


if __name__ == "__main__":
    sys.exit(min(1, fuzz(*map(int, sys.argv[1:])).report()))
