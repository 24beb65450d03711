"""Tables of numbers from MATLAB files of the fifth version (`-v6`, `-v7`).

Read here, element by element, because SciPy's compiled reader ends the whole process for some
damaged files. Nothing is allocated that the bytes at hand do not fill: an element is a type, a
length and its data; compressed ones are unpacked up to a limit.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cordes.readers.archive import MOST_BYTES
from cordes.runtime.memory import in_words

HEADER, MATRIX, COMPRESSED = 128, 14, 15
# Types of stored numbers, and the classes of arrays that are tables of numbers.
NUMBERS = {
    **{1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4"},
    **{7: "f4", 9: "f8", 12: "i8", 13: "u8"},
}
CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 5: "sparse", 16: "function"}
NUMERIC = range(6, 16)
COMPLEX = 0x800


def read_tables(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The arrays of these names; others are passed over. Checked: that they are real numbers with
    two axes, and that there is one for each entry."""
    data = path.read_bytes()
    marks = {b"IM": "<", b"MI": ">"}
    if data[126:128] not in marks:
        raise ValueError("it is not a MATLAB file of version 5: save it with -v7")
    found, order, left = {}, marks[data[126:128]], MOST_BYTES
    for kind, content in _elements(data[HEADER:], order):
        if kind == COMPRESSED:
            unpacked = _unpacked(content, left)
            left -= len(unpacked)
            kind, content = next(_elements(unpacked, order), (0, b""))
        if kind == MATRIX:
            found |= _table(content, order, names)
    return found


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Types and contents, one after the other. Short contents stand beside their type; others are
    filled up to eight bytes, but for compressed ones."""
    start = 0
    while start + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, start)
        begin = start + 8
        if kind >> 16:
            kind, size, begin = kind & 0xFFFF, kind >> 16, start + 4
        if size > len(data) - begin or (begin == start + 4 and size > 4):
            raise ValueError("it ends in the middle of something, or is damaged")
        yield kind, data[begin : begin + size]
        filled = 0 if kind == COMPRESSED else -size % 8
        start = start + 8 if begin == start + 4 else begin + size + filled


def _unpacked(content: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(content, most)
    if unpacker.unconsumed_tail:
        raise ValueError(f"unpacked it has more than {in_words(MOST_BYTES)}")
    if not unpacker.eof:
        raise ValueError("it ends in the middle of something compressed")
    return data


def _table(content: bytes, order: str, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """A matrix: its flags, its axes, its name, its numbers column by column."""
    parts = list(_elements(content, order))
    if len(parts) < 3 or len(parts[0][1]) < 4 or len(parts[1][1]) % 4:
        raise ValueError("it has a variable without a name")
    (flags,), name = struct.unpack_from(order + "I", parts[0][1]), parts[2][1].decode("latin-1")
    if name not in names:
        return {}
    shape = tuple(np.frombuffer(parts[1][1], order + "i4").tolist())
    kind = flags & 0xFF
    if kind not in NUMERIC or flags & COMPLEX or len(shape) != 2 or min(shape) < 0:
        what = "complex" if flags & COMPLEX else CLASSES.get(kind, "numbers")
        raise ValueError(f"{name} is {what} of shape {shape}, and not a table of real numbers")
    stored, raw = parts[3] if len(parts) > 3 else (0, b"")
    if stored not in NUMBERS or len(raw) != math.prod(shape) * int(NUMBERS[stored][1]):
        raise ValueError(f"{name} has other numbers than its shape {shape} says")
    numbers = np.frombuffer(raw, order + NUMBERS[stored])
    return {name: numbers.reshape(shape, order="F")}
