"""What a mesh file claims, compared with what it has, before a library believes it: counts of a PLY
header against its bytes and lines, and the size of a MATLAB file when it is unpacked."""

import re
import zlib
from pathlib import Path

import scipy.io

from cordes.readers.archive import MOST_BYTES
from cordes.runtime.memory import in_words, require_memory

# Bytes of lists and numbers that become of one byte of text.
GROWTH = 25
_HEADER = 100_000
_ELEMENT = re.compile(rb"^element[ \t]+(\S+)[ \t]+(\d{1,18})[ \t]*\r?$", re.MULTILINE)
# In the fifth version of MATLAB's format elements have a type and a length; compressed ones are of
# this type.
_COMPRESSED, _PREFIX, _CHUNK = 15, 128, 1 << 20
_WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_NUMBERS = ("double", "single", *_WHOLE)


def check_size(path: Path) -> None:
    """Refuse a file that would fill the memory."""
    size = path.stat().st_size
    remedy = "thin the mesh out, or take a larger machine."
    require_memory(GROWTH * size, f"{path.name}, a mesh of {in_words(size)},", remedy)


def check_ply(path: Path) -> None:
    """Refuse a header without an end, and counts that the rest of the file cannot have."""
    with open(path, "rb") as file:
        head, mark, _ = file.read(_HEADER).partition(b"end_header")
        if not head.startswith(b"ply") or not mark:
            raise ValueError("its header has no beginning or no end")
        counts = [int(count) for _, count in _ELEMENT.findall(head)]
        file.seek(len(head))
        rest = path.stat().st_size - file.tell()
        if sum(counts) > rest:
            raise ValueError(f"it declares {sum(counts)} lines or items, and has {rest} bytes")
        # A line for each item; one that is missing would be a smaller mesh, without a word.
        lines = sum(1 for line in file if line.strip()) - 1 if b"ascii" in head else sum(counts)
        if lines < sum(counts):
            raise ValueError(f"it ends after {lines} of {sum(counts)} lines")


def check_mat(path: Path, names: tuple[str, ...]) -> None:
    """Refuse what expands beyond the limit, and variables that are no tables of numbers."""
    if _expanded(path) > MOST_BYTES:
        raise ValueError(f"unpacked it has more than {in_words(MOST_BYTES)}")
    for name, shape, kind in scipy.io.whosmat(path):
        if name in names and (kind not in _NUMBERS or len(shape) != 2):
            raise ValueError(f"{name} is {kind} of shape {shape}, and not a table of real numbers")


def _expanded(path: Path) -> int:
    """Bytes of a MATLAB file with its compressed elements unpacked, piece by piece, as far as the
    limit."""
    data = path.read_bytes()
    order = "big" if data[126:128] == b"MI" else "little"
    total, start = len(data), _PREFIX
    while start + 8 <= len(data) and total <= MOST_BYTES:
        kind, size = (int.from_bytes(data[start + k : start + k + 4], order) for k in (0, 4))
        if kind == _COMPRESSED:
            total += _inflated(data[start + 8 : start + 8 + size], MOST_BYTES - total)
        start += 8 + size
    return total


def _inflated(packed: bytes, most: int) -> int:
    unpacker, total = zlib.decompressobj(), 0
    while packed and total <= most:
        total += len(unpacker.decompress(packed, _CHUNK))
        packed = unpacker.unconsumed_tail
    return total
