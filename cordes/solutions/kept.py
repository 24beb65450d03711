"""What a saved answer holds, checked against a schema before anything is built from it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cordes.ansatz.build import RICHNESS, RULES
from cordes.ansatz.cells.network import ARRAYS, POLYNOMIAL
from cordes.ansatz.cells.pieces import ARRAYS as PIECES_ARRAYS
from cordes.ansatz.cells.pieces import PIECES
from cordes.ansatz.networks.activations import ACTIVATIONS
from cordes.ansatz.networks.exercise_potential import POTENTIAL
from cordes.ansatz.plane.network import ARRAYS as EXPANSION_ARRAYS
from cordes.ansatz.plane.network import EXPANSION
from cordes.arguments import flag, one_of, whole
from cordes.errors import OptionError
from cordes.readers.schema import data, list_of, optional, real, record, text, tuple_of
from cordes.readers.toml_text import MAX_TEXT
from cordes.results import Result

# More than any answer has: a file must not ask for more layers than it has weights.
LAYERS, POINTS, DEGREE, STEPS = 100, 1000, 200, 1_000_000
# Rows of an array, and points at which values are compared: of zeros a small file holds millions,
# and tables of all functions at all points would be made of them.
ROWS, PROBES = 100_000, 1000
_PAIR = tuple_of(real, real)
_SINGULAR_POINT = record(
    {
        "location": _PAIR,
        "rays": list_of(real, POINTS),
        "matrices": list_of(tuple_of(_PAIR, _PAIR), POINTS, least=1),
        "on_boundary": flag,
    },
    {
        "step": whole(1, 10),
        "interface": optional(whole(0, POINTS)),
        "others": list_of(_PAIR, POINTS),
        "kink": flag,
    },
)
_SETTINGS = record(
    {"method": text(100), "richness": whole(0, len(RICHNESS) - 1)},
    {
        "boundary": one_of("kind of boundary rows", ("hard", "soft")),
        **RULES,
        "seed": whole(0),
        "multiplier": flag,
        "tol": optional(real),
        "solver": data,
        "outer": data,
        "uncertified": text(10_000),
    },
)
_FINGERPRINT = record({"jax": text(100), "domains": list_of(text(MAX_TEXT), POINTS), "parts": data})
_FACTS = record(
    {
        "problem": record(
            {"name": text(10_000), "domain": text(MAX_TEXT)},
            {"source": optional(record({}, {"gallery": text(1000), "toml": text(MAX_TEXT)}))},
        ),
        "network": record(
            {
                "kind": text(100),
                "activation": one_of(
                    "activation", (*ACTIVATIONS, POLYNOMIAL, PIECES, POTENTIAL, EXPANSION)
                ),
                "layers": whole(0, LAYERS),
            }
        ),
        "result": one_of("result", [each.value for each in Result]),
        "residual": real,
        "points": whole(0),
        "history": list_of(data, STEPS),
        "seconds": data,
        "facts": _SETTINGS,
    },
    {
        "fingerprint": optional(_FINGERPRINT),
        "singular_points": list_of(_SINGULAR_POINT, POINTS),
        "fits": list_of(
            tuple_of(whole(0, DEGREE), list_of(tuple_of(real, flag), POINTS), whole(0, DEGREE)), 100
        ),
    },
)


def check_facts(facts: Mapping[str, Any]) -> None:
    """Refuse facts that are not those of an answer."""
    _FACTS("", facts)
    for name, value in facts["seconds"].items():
        real(f"seconds.{name}", value)


def check_arrays(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Refuse arrays that are not there, are no numbers, or do not belong together."""
    layers = range(facts["network"]["layers"])
    axes = {"coefficients": 1, "amplitudes": 1, "probes": 2, "values": 1, "equation": 2}
    axes |= {f"weight{k}": 2 for k in layers} | {f"bias{k}": 1 for k in layers}
    if facts["network"]["kind"] == "cells":
        axes |= ARRAYS
    if facts["network"]["kind"] == "pieces":
        axes |= PIECES_ARRAYS
    if facts["network"]["kind"] == "expansion":
        axes |= EXPANSION_ARRAYS
    if facts["network"]["kind"] == "potential":
        axes |= {"edges": 1, "potential": 1}
    axes |= {f"fit{k}": 1 for k in range(len(facts.get("fits", [])))}
    for name, count in axes.items():
        if name not in arrays:
            raise OptionError(f"The array {name} is missing.")
        array = arrays[name]
        if array.dtype != np.float64 or array.ndim != count:
            wanted = f"float64 with {count} axes"
            raise OptionError(f"{name} is {array.dtype} of shape {array.shape}, not {wanted}.")
        most = PROBES if name == "probes" else ROWS
        if len(array) > most:
            raise OptionError(f"{name} has {len(array)} entries; answers have at most {most}.")
    for name in ("values", "equation"):
        if len(arrays[name]) != len(arrays["probes"]) or not len(arrays[name]):
            raise OptionError(f"{name} and probes have different lengths, or none.")
