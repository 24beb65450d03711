"""What the files of a study hold, checked against a schema before anything is made of it: states of
training, parts that were judged, and the finished study."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cordes.arguments import Rule, number, one_of, positive, whole
from cordes.errors import OptionError
from cordes.readers.schema import array, check_file, data, list_of, optional, record, text, tuple_of
from cordes.studies.ensemble import EVERY, Measured

# More than anything in a study: its numbers are drawn on logarithmic scales.
MOST = 1e100
ENTRIES, WORDS = 10_000, 1000
# Errors, times, counts, eigenvalues: never negative; null where there is none, or where training
# has left the numbers.
_size = number(0, MOST)
_maybe = optional(_size)
_kappa = optional(number(1, MOST))


# States -------------------------------------------------------------------------------------------


def arrays_like(name: str, leaves: Sequence[Any]) -> Rule:
    """Arrays of the types and shapes of these and no others: name0, name1, …"""
    like = {f"{name}{k}": array(leaf.dtype, *leaf.shape) for k, leaf in enumerate(leaves)}
    return record(like, closed=True)


def check_run(
    arrays: Mapping[str, np.ndarray], leaves: Sequence[Any], seeds: int, what: str, remedy: str
) -> None:
    """Refuse arrays that are not those of a run whose state has these leaves."""
    lengths = record({name: array(np.int64, None) for name in ("epochs", "contraction_epochs")})
    check_file(lengths, arrays, what, remedy)
    records, chunks = len(arrays["epochs"]), len(arrays["contraction_epochs"])
    measured, contraction = (array(np.float64, count, seeds) for count in (records, chunks))
    rules = {
        "epochs": _epochs,
        **{f"measured_{name}": measured for name in Measured._fields},
        "contraction": contraction,
        "contraction_bound": contraction,
        "seconds": _seconds,
        "compile_seconds": _seconds,
        "devices": array(np.str_, None),
        "probe": array(np.float64, None, None),
    }
    check_file(record(rules), arrays, what, remedy)
    states = {name: part for name, part in arrays.items() if name.startswith("state")}
    check_file(arrays_like("state", leaves), states, what, remedy)


def _epochs(name: str, value: np.ndarray) -> None:
    if not len(value) or np.any(value != EVERY * np.arange(1, len(value) + 1)):
        raise OptionError(f"{name} are not {EVERY}, {2 * EVERY}, {3 * EVERY}, …")


def _seconds(name: str, value: np.ndarray) -> None:
    array(np.float64)(name, value)
    _size(name, float(value))


# What was judged ----------------------------------------------------------------------------------


def judged(methods: Sequence[str]) -> Rule:
    """Parts of the analysis, as many as there are, and the epochs of the runs."""
    return record({"epochs": data}, _parts(methods), closed=True)


def studied(methods: Sequence[str], seeds: int) -> Rule:
    """A finished study with so many seeds, whose settings have been compared."""
    method = one_of("method", methods)
    each = list_of(_maybe, seeds, least=seeds)
    needed = dict.fromkeys(("epochs", "seconds", "l2", "linf"), each)
    milestone = record(
        {"target": _positive, "method": method, "paper": optional(_PAPER), **needed},
        {"newton": each},
    )
    final = record(dict.fromkeys(("epochs", "l2", "linf", "best_l2"), each))
    return record(
        {
            "problem": text(WORDS),
            "reference": text(WORDS),
            "probe": _matrix,
            "devices": list_of(text(WORDS), ENTRIES),
            "milestones": list_of(milestone, ENTRIES, least=1),
            "final": _of(methods, final),
            "speed_up": list_of(_speed_up(method, seeds), len(methods)),
            "cost": _of(methods, _COST),
            "contraction": _of(methods, _contraction),
            "curves": _of(methods, _curves),
            **_parts(methods),
        },
        {"files": list_of(text(ENTRIES), ENTRIES)},
    )


def _parts(methods: Sequence[str]) -> dict[str, Rule]:
    seen = record({"form": text(WORDS), "picture": data, "directions": data})
    return {
        "multiplier": _MULTIPLIER,
        "landscape": _of(methods, seen),
        "conditioning": record({"end": _SPECTRA}, {"start": _SPECTRA}, closed=True),
        "auto": _auto,
    }


def _of(names: Sequence[str], rule: Rule) -> Rule:
    """An object with the same for each of these."""
    return record(dict.fromkeys(names, rule), closed=True)


_PAPER = record(dict.fromkeys(("epochs", "seconds", "l2", "linf", "newton"), _maybe))
_COST = record(dict.fromkeys(("ms_per_epoch_and_seed", "seconds", "compile_seconds"), _size))
_MULTIPLIER = record(dict.fromkeys(("min", "max", "ratio", "variation", "mean_square"), _size))
_SPECTRA = _of(
    ("PINN", "C-PINN", "Laplacian"),
    record({"lambda_1": _size, "effective_rank": _size, "kappa_10": _kappa, "kappa_30": _kappa}),
)
_AUTO = record(
    {"l2": _maybe, "linf": _maybe, "solve_s": _size, "epochs_equivalent": _size},
    {"paper": optional(record({"l2": _maybe, "epochs": _maybe})), "machine": text(WORDS)},
)


def _positive(name: str, value: Any) -> None:
    positive(name, value)
    _size(name, value)


def _auto(name: str, value: Any) -> None:
    _AUTO(name, value)
    if (value["l2"] is None) != (value["linf"] is None):
        raise OptionError(f"{name}: l2 and linf are numbers or null, both of them.")


def _speed_up(method: Rule, seeds: int) -> Rule:
    counted = record({"target": _positive, "ours": whole(0), "theirs": whole(0)})
    form = record(
        {
            "target": _positive,
            "rival": method,
            "ratios": list_of(_maybe, seeds, least=1),
            "median": _maybe,
        },
        {"last": lambda name, value: None if value == {} else counted(name, value)},
    )

    def checked(name: str, value: Any) -> None:
        form(name, value)
        if value["median"] is not None and not any(one is not None for one in value["ratios"]):
            raise OptionError(f"{name}.median is a number, and none of its ratios is.")

    return checked


def _contraction(name: str, value: Any) -> None:
    record({"records": whole(0)})(name, value)
    if value["records"]:
        rules: dict[str, Rule] = dict.fromkeys(("first", "last", "largest", "bound"), _maybe)
        rules |= dict.fromkeys(("exceeded", "without_condition"), whole(0))
        record(rules)(name, value)


def _curves(name: str, value: Any) -> None:
    record({"epochs": list_of(_positive, ENTRIES)})(name, value)
    count = len(value["epochs"])
    line = list_of(_maybe, count, least=count)
    record(dict.fromkeys(("l2", "gradient"), line), {"l2_range": tuple_of(line, line)})(name, value)


def _matrix(name: str, value: Any) -> None:
    list_of(list_of(number(-MOST, MOST), ENTRIES), ENTRIES, least=1)(name, value)
    if len({len(row) for row in value}) > 1:
        raise OptionError(f"{name}: its rows have different lengths.")
