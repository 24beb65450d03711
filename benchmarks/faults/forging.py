"""Files that are damaged, and data of the right form that say something else."""

import copy
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

ODD = [
    None,
    True,
    -1,
    0,
    1,
    10**9,
    10**30,
    10**400,
    1e308,
    math.nan,
    0.5,
    "",
    "x",
    "../../x",
    [],
    [1],
    [[1]],
    {},
]
ODD += [{"a": 1}, "soft", "mlp", "random-features", "converged", [None], "ex4.2-continuous"]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bits flipped, a tail cut off, a block that is missing or overwritten."""
    found, kind = bytearray(data), chance.random()
    i, j = sorted(chance.sample(range(len(data)), 2))
    if kind < 0.6:
        for _ in range(chance.choice([1, 1, 1, 2, 8])):
            found[chance.randrange(len(found))] ^= 1 << chance.randrange(8)
    elif kind < 0.8:
        found = found[:i]
    elif kind < 0.9:
        del found[i:j]
    else:
        found[i : i + 32] = chance.randbytes(32)
    return bytes(found)


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, entry in entries:
        if isinstance(entry, dict | list):
            yield from places(entry, (*path, key))
        else:
            yield (*path, key)


def forged_facts(facts: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """With one thing missing, or another in its place."""
    facts = copy.deepcopy(facts)
    spots = [spot for spot in places(facts) if spot[0] != "history" or chance.random() < 0.02]
    *way, last = chance.choice(spots)
    holder = facts
    for key in way:
        holder = holder[key]
    if chance.random() < 0.3:
        del holder[last]
    else:
        holder[last] = chance.choice(ODD)
    return facts


def forged_arrays(arrays: dict[str, np.ndarray], chance: random.Random) -> dict[str, np.ndarray]:
    """With one of them missing, or changed."""
    arrays, name = dict(arrays), chance.choice(list(arrays))
    one, other = arrays[name], chance.choice(list(arrays))
    ways: list[Callable[[], Any]] = [
        lambda: one * np.nan,
        lambda: one.T if one.ndim > 1 else one[::-1],
        lambda: one[: len(one) // 2],
        lambda: one.astype(complex),
        lambda: np.full(one.shape, "a"),
        lambda: np.zeros(0),
        lambda: arrays[other],
        lambda: one.astype(np.float32),
        lambda: np.array(3.0),
        lambda: one[..., None],
    ]
    try:
        arrays[name] = chance.choice(ways)()
    except (TypeError, IndexError, ValueError):
        # A single number has no half, and words have no multiples.
        arrays[name] = np.zeros(0)
    if chance.random() < 0.1:
        del arrays[name]
    return arrays
