"""A proof from beginning to end: a file is read, what it claims is shown, and said in words."""

import hashlib
import json
import math
import re
import struct
import tomllib
import zipfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from flint import __version__ as flint_version
from flint import arb, ctx

from cordes_check import __version__
from cordes_check.answers import BoxAnswer, Features, Polynomial
from cordes_check.balls import NotAProof, need, rational, root
from cordes_check.cells import Cell, read_cells, sup
from cordes_check.corners import Corner
from cordes_check.equations import KINDS, Equation
from cordes_check.quadrature import find_rules, integrals
from cordes_check.theorems import THEOREMS

FORMAT, MOST_BYTES = "1", 50_000_000


NORMS = {
    "Linf": "|u - u_θ|, everywhere,",
    "L2": "‖u - u_θ‖ in L²(Ω)",
    "H1": "‖∇(u - u_θ)‖ in L²(Ω)",
    "H2": "‖D²(u - u_θ)‖ in L²(Ω)",
}


class Proved(NamedTuple):
    """Bounds of u - u_θ, how they were shown, and the equation; and about what is lost by who
    computes values of u_θ in float64."""

    bounds: dict[str, arb]
    words: str
    equation: Equation
    space: str
    rounding: arb


def read(path: Path) -> dict:
    """A line with the format and the SHA-256 of the rest; the rest is JSON."""
    if not path.is_file():
        raise NotAProof(f"there is no file {path}")
    need(path.stat().st_size <= MOST_BYTES, "the file is too large")
    head, _, body = path.read_bytes().partition(b"\n")
    words = head[:200].decode("ascii", "replace").split()
    if len(words) != 3 or words[0] != "cordes-proof":
        raise NotAProof("the file does not begin like a proof")
    need(
        words[1] == FORMAT, f"the proof has format {words[1]}; this program checks format {FORMAT}"
    )
    need(words[2] == hashlib.sha256(body).hexdigest(), "the file was changed after it was written")
    try:
        return json.loads(body, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise NotAProof(f"no JSON: {error}") from None


def once(pairs: list[tuple[str, object]]) -> dict:
    """A key that stands twice would be read by others as the first."""
    need(len(dict(pairs)) == len(pairs), "a key stands twice")
    return dict(pairs)


def check_name(data: dict) -> None:
    """A proof that names a problem of the gallery must be about that problem."""
    known = tomllib.loads(files(__package__).joinpath("named.toml").read_text("utf-8"))
    name = data["name"]
    need(name is None or known.get(name) == data["problem"], f"this is not the problem {name!r}")


def check_answer(data: dict, folder: Path) -> bool:
    """If the answer lies beside the proof it must be the one that is meant, with these numbers;
    whether it does."""
    file, digest = data["answer"]["file"], data["answer"]["sha256"]
    plain = re.fullmatch(r"[\w .()+-]{1,150}", file) and re.fullmatch(r"[0-9a-f]{64}", digest)
    need(plain is not None, "the answer has no name, or no hash")
    path, network = folder / file, data["network"]
    if not path.is_file():
        return False
    need(path.stat().st_size <= MOST_BYTES, f"{path.name} is too large")
    content = path.read_bytes()
    need(
        hashlib.sha256(content).hexdigest() == digest,
        f"{path.name} is another answer",
    )
    rows = {"weight0": network["weights"]}
    rows |= {"bias0": [network["biases"]], "coefficients": [network["coefficients"]]}
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        single = len({*names}) == len(names) and all(name.endswith(".npy") for name in names)
        need(single, f"{path.name} has an array twice, or what is none")
        for name, claimed in rows.items():
            kind, length, raw = unpacked(archive, name)
            numbers = [number for row in claimed for number in row]
            packed = struct.pack(f"<{len(numbers)}d", *map(float.fromhex, numbers))
            # Inputs that no feature sees, with weights 0 or -0, may be left out.
            more = raw[len(packed) :]
            unseen = zeros(more) and (name == "weight0" or not more)
            same = kind == "<f8" and raw.startswith(packed) and unseen
            need(same and {*map(len, claimed)} == {length}, f"{path.name} has other numbers")
        kept = json.loads(unpacked(archive, "facts")[2], object_pairs_hook=once)["network"]
        plain = (kept["layers"], kept["activation"]) == (1, network["activation"])
        plain = plain and (bool(data["corners"]) or zeros(unpacked(archive, "amplitudes")[2]))
        need(plain, f"{path.name} has other functions")
    return True


def zeros(raw: bytes) -> bool:
    """Whether numbers are all 0 or -0."""
    return not any(raw.replace(struct.pack("<d", -0.0), bytes(8)))


def unpacked(archive: zipfile.ZipFile, name: str) -> tuple[str, int, bytes]:
    """An array of an answer: the kind of its numbers, the length of its rows, and its bytes."""
    part = archive.getinfo(f"{name}.npy")
    # What is packed may be a thousand times as large.
    need(part.file_size <= MOST_BYTES, f"{Path(str(archive.filename)).name} is too large")
    raw = archive.read(part)
    start = 10 + int.from_bytes(raw[8:10], "little")
    head = r"{'descr': '(.{3})', 'fortran_order': False, 'shape': \((?:\d+, ?)*(\d+),?\), } *\n"
    found = re.fullmatch(head, raw[10:start].decode("ascii"), re.A)
    need(found is not None and raw[:8] == b"\x93NUMPY\x01\x00", f"{name} is no array of numbers")
    return found[1], int(found[2]), raw[start:]


def prove(data: dict, step: Callable[[int, int], None] = lambda done, all: None) -> Proved:
    """Refused if a step fails; `step` is told how many cells are done."""
    need(53 <= data["precision"] <= 400, "a precision out of range")
    ctx.prec, ctx.cap = data["precision"], 3
    equation = Equation(data["problem"])
    network = Features(data["network"], equation.formulas, equation.interfaces)
    corners = [Corner(each, equation.domain.outline) for each in data["corners"]]
    answer = BoxAnswer(equation.domain, equation.formulas, equation.g, corners)
    cells = read_cells(data["cells"], equation.domain.lower, equation.domain.upper)
    theorem = THEOREMS[data["theorem"]["name"]](equation, data["theorem"])
    tolerance, precise = float(rational(data["tolerance"])), arb(rational(data["precise"]))
    need(0 < tolerance < math.inf and precise > 0, "a tolerance out of range")
    words, totals, shifts, points = theorem.check(cells), None, None, 0
    for done, cell in enumerate(cells):
        step(done, len(cells))
        N, integrand, rules = network.on(cell, precise), theorem.on(cell, answer.on(cell)), []
        moved = sup(
            lambda s, c=cell, i=integrand, N=N: i.moved(c.place(s), N.around(s), N.error), cell.unit
        )
        if cell.kind == "tip":
            values = on_tip(cell, N, integrand, answer)
        else:
            rules = find_rules(cell, N, integrand, tolerance)
            values = integrals(cell, N, integrand, rules)
        theorem.look(integrand, N, values, moved, rules)
        points += math.prod(n for n, _, _ in rules)
        shifted = [each**2 * cell.volume for each in moved]
        totals = values if totals is None else [a + b for a, b in zip(totals, values, strict=True)]
        shifts = (
            shifted if shifts is None else [a + b for a, b in zip(shifts, shifted, strict=True)]
        )
    # The norm of what is integrated, and that of what the error of N may add.
    norms = [(root(a) + root(b)).upper() for a, b in zip(totals, shifts, strict=True)]
    need(all(norm.is_finite() for norm in norms), "the residual is not seen to be in L²")
    bounds = {name: bound.upper() for name, bound in theorem.bounds(norms).items()}
    bounds = {name: bound for name, bound in bounds.items() if bound.is_finite()}
    for name, claim in data["claims"].items():
        sentence = f"{name!r} is not seen to be at most {claim!r}"
        need(name in bounds and bounds[name] <= arb(rational(claim)), sentence)
    words = f"{words}, {points} Gauss points in {len(cells)} cells; cordes_check {__version__}"
    words = f"{words}, python-flint {flint_version}, {ctx.prec} bits"
    return Proved(bounds, words, equation, theorem.space, network.rounding() * answer.size())


def on_tip(cell: Cell, N: Polynomial, integrand, answer: BoxAnswer) -> list[arb]:
    """Upper bounds of the integrals of squares without a rule: what is bounded, by its supremum,
    and singular functions by the norms of their derivatives."""
    plain = sup(lambda s: integrand(cell.place(s), N.around(s), True), cell.unit)
    reach, norm = sup(lambda s: integrand.reach(cell.place(s)), cell.unit), answer.tip(cell)
    return [(a * root(cell.volume) + b * norm) ** 2 for a, b in zip(plain, reach, strict=True)]


def check(path: Path) -> tuple[str, dict]:
    """What a file proves, in words and as data."""
    data = read(path)
    check_name(data)
    beside, found = check_answer(data, path.parent), prove(data)
    bounds = {name: above(bound) for name, bound in found.bounds.items()}
    named = f" (the problem {data['name']} of the gallery of cordes)" if data["name"] else ""
    lines = [f"THEOREM. Let{named}", "", *(f"    {line}" for line in found.equation.words()), ""]
    network, space = data["network"], found.space
    lines += [
        f"There is exactly one u {space}, u = g on the boundary of Ω, with",
        f"    {KINDS[found.equation.sense]},",
        f"and u_θ = G + D·N{' + S' if data['corners'] else ''} has",
        *(f"    {NORMS[name]} <= {bound}" for name, bound in bounds.items()),
        f"Here N = Σ c σ(w·z + b) has the {len(network['biases'])} features (σ: "
        f"{network['activation']}) of this proof, D = Π (upper - x)(x - lower), and G is the blend "
        "of the values of g on the sides.",
        *(
            f"S are the {len(corner.terms)} singular functions around "
            f"({', '.join(str(rational(c)) for c in corner['at'])}), zero on the boundary."
            for corner in data["corners"]
        ),
        "",
        f"Shown by {found.words}.",
    ]
    where = f"'{data['answer']['file']}' (SHA-256 {data['answer']['sha256'][:16]}…)"
    lines += [
        f"The weights and coefficients of N are those of {where}, which was compared."
        if beside
        else f"The numbers of u_θ are those of this proof; {where} was not beside it.",
        "Not claimed: anything of values that a program computes from these numbers in float64; "
        f"they differ from u_θ by about {found.rounding.str(1, radius=False)}.",
    ]
    facts = {"bounds": bounds, "claims": data["claims"], "name": data["name"], "words": found.words}
    return "\n".join(lines), facts


def above(bound: arb) -> str:
    """Four digits, not below the bound."""
    power = math.floor(math.log10(float(bound))) - 3
    value = bound.upper().fmpq()
    digits = str((value * 10**-power if power < 0 else value / 10**power).ceil())
    return f"{digits[0]}.{digits[1:]}e{power + len(digits) - 1:+03d}"
