"""What a proof file holds: the problem as text, the numbers of the answer, cells, and the claims of
the theorem. Nothing in it is believed by the checker."""

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from flint import ctx, fmpq

from cordes.proofs.geometry import NARROWER, Singular, box_cells
from cordes.proofs.needed import NotProvedError
from cordes.proofs.singular import corners
from cordes.proofs.statement import Statement
from cordes.proofs.texts import Text
from cordes.solutions.solution import Solution
from cordes_check.balls import Refused
from cordes_check.cells import Cell
from cordes_check.corners import Corner
from cordes_check.equations import Equation

FORMAT = 1
# The remainder of the quadrature, and what the error of the polynomials and the tips of corners may
# add, as shares of the integral and of the residual.
REMAINDER, ERROR, TIP = 1e-3, 1e-8, 1e-2
# Bits for sums that cancel, beside those of the numbers of the answer.
GUARD = 60
MOST_RINGS = 40


@contextlib.contextmanager
def flint_kept(bits: int = 0) -> Iterator[None]:
    """The precision of FLINT is one for the whole process."""
    kept = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = bits or ctx.prec, 3
    try:
        yield
    finally:
        ctx.prec, ctx.cap = kept


class ProofDraft(NamedTuple):
    """A proof before it is written, as data."""

    data: dict[str, Any]

    def with_claims(self, claims: dict[str, str]) -> "ProofDraft":
        return ProofDraft(self.data | {"claims": claims})

    def with_cells(self, cells: list[list]) -> "ProofDraft":
        return ProofDraft(self.data | {"cells": cells})

    @property
    def file(self) -> bytes:
        """A line with the format and the SHA-256 of the rest, which is JSON."""
        body = json.dumps(self.data, indent=0).encode() + b"\n"
        return f"cordes-proof {FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def make_contents(
    solution: Solution,
    text: Text,
    equation: Equation,
    statement: Statement,
    answer: tuple[str, bytes],
) -> ProofDraft:
    """`answer` is the file with the numbers, and its contents."""
    network, singular = network_data(solution), corners(solution)
    volume = solution.problem.domain.volume
    residual = max(statement.size, 1e-30)
    precise = ERROR * residual
    size = float(np.sum(np.abs(solution.network.coefficients)))
    bits = int(np.clip(GUARD + math.ceil(math.log2((1 + size) / precise)), 96, 400))
    tips = ring_counts(equation, singular, TIP * residual * math.sqrt(volume), bits)
    cells = box_cells(equation, frequencies(solution), tips)
    return ProofDraft(
        {
            "name": text.name,
            "problem": text.toml,
            "answer": {"file": answer[0], "sha256": hashlib.sha256(answer[1]).hexdigest()},
            "network": network,
            "corners": singular,
            "cells": cells,
            "theorem": statement.theorem,
            "claims": {},
            "precision": bits,
            "precise": _short(precise),
            "tolerance": _short(REMAINDER * residual**2 * volume / len(cells)),
        }
    )


def _short(value: float) -> str:
    return f"{value:.3e}"


def network_data(solution: Solution) -> dict[str, Any]:
    """The numbers of N: doubles in hexadecimal."""
    network = solution.network
    inputs, ((weight, bias), *others) = network.inputs, network.layers
    if others or network.activation not in ("sine", "tanh"):
        raise NotProvedError("the checker knows one layer of sines or tanh")
    kinks = []
    weight = np.asarray(weight)
    seen = bool(np.any(weight[len(inputs.center) :]))
    # Inputs that no feature sees are left out: the text may not have their interfaces.
    weight = weight if seen else weight[: len(inputs.center)]
    for k, scale in enumerate(inputs.interface_scale if seen else ()):
        for power in (None, *inputs.powers):
            whole = power if power is None or not float(power).is_integer() else int(power)
            kinks.append([k, whole, float(scale).hex()])
    return {
        "activation": network.activation,
        "center": _hexadecimal(inputs.center),
        "scale": _hexadecimal(inputs.scale),
        "kinks": kinks,
        "weights": [_hexadecimal(row) for row in weight],
        "biases": _hexadecimal(bias),
        "coefficients": _hexadecimal(network.coefficients),
    }


def _hexadecimal(values: Any) -> list[str]:
    return [float(value).hex() for value in np.asarray(values)]


def frequencies(solution: Solution) -> np.ndarray:
    """The largest slope of a phase along each axis."""
    network, inputs = solution.network, solution.network.inputs
    weight, d = np.abs(np.asarray(network.layers[0][0])), len(inputs.center)
    lower, upper = solution.problem.domain.bounding_box
    slopes = weight[:d] / np.asarray(inputs.scale)[:, None]
    # An interface is seen by |φ|^p/s^p, whose slope is at most p (|φ|/s)^(p - 1)/s.
    for k, row in enumerate(weight[d:]):
        power = k % (1 + len(inputs.powers))
        exponent = 2.0 if power == 0 else inputs.powers[power - 1]
        slopes = slopes + 1.2 * exponent * row / np.min(upper - lower) * 2 * (row > 0)
    return np.maximum(np.max(slopes, axis=1), 1e-3)


def ring_counts(
    equation: Equation, singular: list[dict[str, Any]], small: float, bits: int
) -> list[Singular]:
    """For each singular point so many rings of trapezoids that its functions are as small as asked
    on what is left."""
    found = []
    with flint_kept(bits):
        for data in singular:
            corner = Corner(data, equation.domain.outline)
            size = fmpq(1, 2) * min(
                u - l for l, u in zip(equation.domain.lower, equation.domain.upper, strict=True)
            )
            rings = next(
                (k for k in range(2, MOST_RINGS) if _tip(corner, size * NARROWER**k) < small), None
            )
            if rings is None:
                raise NotProvedError("the singular functions are too rough for a proof")
            found.append(Singular(tuple(corner.at), rings))
    return found


def _tip(corner: Corner, size: fmpq) -> float:
    """A bound of the norms of singular functions on a triangle of some size."""
    first, second = corner.rays[:2]
    cell = Cell(
        "tip",
        [
            corner.at,
            [size * c for c in first],
            [size * (b - a) for a, b in zip(first, second, strict=True)],
        ],
        "a tip",
    )
    try:
        return float(corner.tip(cell))
    except Refused:
        return math.inf
