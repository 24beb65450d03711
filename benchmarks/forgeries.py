"""Forged proofs: what somebody may do to a proof file to make the checker say something false.

Each forgery is a changed file, with a hash that fits if it is not about the hash. Whatever the
checker then prints must be true of the file that it was given: the solution of the forged equation
is computed by Chebyshev collocation, or known in closed form, and u_θ by plain NumPy.

    python benchmarks/forgeries.py [--out FILE.json]
"""

import argparse
import copy
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "checker"), str(ROOT / "benchmarks")]
from forged_parts import HINTS, MAY_HOLD, TEXTS, THEOREM  # noqa: E402
from forged_truth import falsehood  # noqa: E402

from cordes_check.balls import NotAProof, Refused  # noqa: E402
from cordes_check.proofs import check  # noqa: E402

PROOFS = ROOT / "tests" / "data" / "proofs"
BASES = ("linear", "jumps", "control", "determinant", "length")
# How much longer than the honest file a forged one may take, and what is always granted.
SLOWER, GRANTED = 10.0, 1.0


class Forgery(NamedTuple):
    """A file, what was done to it, and whether it must be refused; otherwise what is said of it
    must be true."""

    kind: str
    base: str
    content: bytes
    refused: bool


def read(base: str) -> dict[str, Any]:
    return json.loads((PROOFS / f"{base}.proof").read_bytes().partition(b"\n")[2])


def written(data: object, version: str = "1") -> bytes:
    body = json.dumps(data, indent=0).encode() + b"\n"
    return f"cordes-proof {version} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def nudged(text: str, by: float) -> str:
    return (float.fromhex(text) * (1 + by) if by else 0.0).hex()


Change = Callable[[dict[str, Any], random.Random], None]
MUST: dict[str, Change] = {}
MAY: dict[str, Change] = {}


def forgery(table: dict[str, Change]) -> Callable[[Change], Change]:
    def keep(change: Change) -> Change:
        table[change.__name__] = change
        return change

    return keep


def _numbers(data: dict, rng: random.Random, key: str, by: float) -> None:
    values = data["network"][key]
    values = rng.choice(values) if key == "weights" else values
    at = rng.randrange(len(values))
    values[at] = nudged(values[at], by)


for _key in ("coefficients", "weights", "biases", "center", "scale"):
    for _by in (1e-9, -1e-9, 1e-4, -0.1, 1.0):
        MAY[f"{_key} times {1 + _by}"] = lambda d, r, k=_key, b=_by: _numbers(d, r, k, b)
for _key in ("coefficients", "biases", "scale"):
    for _bad in ("nan", "inf", "0x1p+900", "zero", "", None, [], {}, "0x", "9" * 5000):
        MUST[f"{_key} {str(_bad)[:9]!r}"] = lambda d, r, k=_key, b=_bad: d["network"][
            k
        ].__setitem__(0, b)


@forgery(MAY)
def activation(d, r):
    d["network"]["activation"] = "tanh"


@forgery(MAY)
def features_exchanged(d, r):
    c = d["network"]["coefficients"]
    c[0], c[1] = c[1], c[0]


@forgery(MUST)
def feature_left_out(d, r):
    d["network"]["coefficients"].pop()


@forgery(MAY)
def feature_left_out_everywhere(d, r):
    for row in [*d["network"]["weights"], d["network"]["coefficients"], d["network"]["biases"]]:
        row.pop()


@forgery(MUST)
def number_too_long_to_be_read(d, r):
    """Its last digits are the exponent."""
    values = d["network"]["coefficients"]
    values[0] = values[0].replace("p", 40 * "0" + "p")


@forgery(MUST)
def negative_scale(d, r):
    d["network"]["scale"][0] = (-1.0).hex()


@forgery(MUST)
def unknown_activation(d, r):
    d["network"]["activation"] = "relu"


def _rows(data: dict, rng: random.Random) -> list:
    return rng.choice(data["cells"])


@forgery(MUST)
def cell_removed(d, r):
    d["cells"].remove(_rows(d, r))


@forgery(MUST)
def cell_doubled(d, r):
    d["cells"].append(_rows(d, r))


@forgery(MUST)
def cell_moved(d, r):
    _rows(d, r)[1][0] += "1"


@forgery(MUST)
def cell_wider(d, r):
    row = _rows(d, r)[2]
    row[0] = f"{row[0]}1" if "." in row[0] else f"{row[0]}.0000000001".replace("0/", "0.1/")


@forgery(MUST)
def cell_is_a_triangle(d, r):
    cell = _rows(d, r)
    cell[0] = "triangle" if cell[0] == "box" else "box"


@forgery(MUST)
def cell_is_a_tip(d, r):
    cell = _rows(d, r)
    cell[0] = "tip"
    if len(d["cells"]) == 1:
        d["cells"].append(copy.deepcopy(cell))


@forgery(MUST)
def cell_flat(d, r):
    cell = _rows(d, r)
    cell[3] = cell[2]


@forgery(MUST)
def cell_without_end(d, r):
    _rows(d, r)[1][0] = "1e999"


@forgery(MUST)
def cell_of_another_kind(d, r):
    _rows(d, r)[0] = "disk"


@forgery(MUST)
def cell_in_space(d, r):
    _rows(d, r)[1:] = [["0", "0", "0"], ["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]


@forgery(MUST)
def no_cells(d, r):
    d["cells"] = []


@forgery(MUST)
def cells_turned_and_doubled(d, r):
    """The same area, with another orientation."""
    kind, o, a, b = _rows(d, r)
    d["cells"].append([kind, o, b, a])


@forgery(MUST)
def cells_that_are_text(d, r):
    d["cells"] = "box"


for _by in (0.5, 0.9, 0.99, 0.999):
    for _key in ("L2", "Linf", "H1", "H2"):
        MUST[f"claim {_key} times {_by}"] = lambda d, r, k=_key, b=_by: d["claims"].update(
            {k: repr(float(d["claims"].get(k, "1e-9")) * b)}
        )
for _bad in ("nan", "-1", "0", "inf", [], {}, None, "1e-9999"):
    MUST[f"claim {_bad!r}"] = lambda d, r, b=_bad: d["claims"].update({"L2": b})
MUST["claim of another norm"] = lambda d, r: d["claims"].update({"W3": "1"})


def containers(base: str) -> Iterator[Forgery]:
    """What is wrong with the file itself."""
    content, data = (PROOFS / f"{base}.proof").read_bytes(), read(base)
    middle = len(content) // 2
    wrong = {
        "a bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "cut off": content[:middle],
        "empty": b"",
        "a line": content.partition(b"\n")[0],
        "a version": written(data, "2"),
        "no version": written(data, "x y"),
        "noise": random.Random(1).randbytes(5000),
        "no head": content.partition(b"\n")[2],
        "a list": written([data]),
        "a number": written(3),
        "nothing": written(None),
    }
    deep = b"[" * 100000
    wrong["deep"] = f"cordes-proof 1 {hashlib.sha256(deep).hexdigest()}\n".encode() + deep
    for key in data:
        wrong[f"without {key}"] = written({k: v for k, v in data.items() if k != key})
    for kind, forged in wrong.items():
        yield Forgery(f"file: {kind}", base, forged, True)
    body = content.partition(b"\n")[2].replace(b"{", b'{"name": "ex4.2-continuous", ', 1)
    head = f"cordes-proof 1 {hashlib.sha256(body).hexdigest()}\n".encode()
    yield Forgery("file: a key twice", base, head + body, True)


def forgeries(seed: int = 0) -> Iterator[Forgery]:
    rng = random.Random(seed)
    for base in BASES:
        honest = read(base)

        def forged(kind: str, refused: bool, base=base, honest=honest, **parts: Any) -> Forgery:
            return Forgery(kind, base, written(honest | parts), refused)

        for table, refused in ((MUST, True), (MAY, False)):
            for kind, change in table.items():
                data = copy.deepcopy(honest)
                change(data, rng)
                yield Forgery(kind, base, written(data), refused)
        for kind, (old, new) in TEXTS.items():
            if old in honest["problem"]:
                text = honest["problem"].replace(old, new)
                yield forged(f"text: {kind}", kind not in MAY_HOLD, problem=text, name=None)
        for key, value, refused in THEOREM:
            if honest["theorem"].get(key, value) != value:
                theorem = honest["theorem"] | {key: value}
                yield forged(f"theorem: {key} {value}"[:60], refused, theorem=theorem)
        for key, value, refused in HINTS:
            yield forged(f"{key}: {value}"[:60], refused, **{key: value})
        if honest["name"]:
            text = honest["problem"] + "\n"
            yield forged("another text with the name", True, problem=text)
    yield from containers("linear")


def judged(given: Forgery, folder: Path, usual: float) -> tuple[str, str | None]:
    """What the checker does, and what is wrong with that."""
    path = folder / "forged.proof"
    path.write_bytes(given.content)
    began = time.process_time()
    try:
        _, facts = check(path)
        verdict = "accepted"
    except (Refused, NotAProof, Exception) as error:
        verdict, facts = f"refused: {error}", {}
    seconds = time.process_time() - began
    if seconds > SLOWER * usual + GRANTED:
        return verdict, f"{seconds:.1f} s"
    if verdict == "accepted":
        if given.refused:
            return verdict, "accepted"
        data = json.loads(given.content.partition(b"\n")[2])
        return verdict, falsehood(data, facts["bounds"])
    return verdict, None


def run(
    bases: Collection[str] = BASES, every: int = 1, offset: int = 0
) -> tuple[Counter, list[tuple[str, str, str]]]:
    """How many were accepted and refused, and what went wrong."""
    counts, wrong = Counter(), []
    with tempfile.TemporaryDirectory() as name:
        folder, usual = Path(name), {}
        for base in bases:
            began = time.process_time()
            check(PROOFS / f"{base}.proof")
            usual[base] = time.process_time() - began
        here = os.getcwd()
        os.chdir(folder)
        try:
            chosen = (given for given in forgeries() if given.base in bases)
            for k, given in enumerate(chosen):
                if k % every == offset:
                    verdict, fault = judged(given, folder, usual[given.base])
                    counts[verdict.partition(":")[0]] += 1
                    if fault:
                        wrong.append((given.base, given.kind, fault))
        finally:
            os.chdir(here)
        executed = (folder / "FORGED").exists()
    return counts, [*wrong, *([("", "code was executed", "")] if executed else [])]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    found, faults = Counter(), []
    for base in BASES:
        counts, wrong = run([base])
        print(base, dict(counts), *wrong, sep="\n", flush=True)
        found, faults = found + counts, faults + wrong
    if out:
        out.write_text(json.dumps({"forgeries": found, "faults": faults}, indent=2) + "\n")
    sys.exit(bool(faults))
