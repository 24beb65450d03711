"""What a mesh file claims, compared with what it has, before a library believes it: counts of a PLY
header against its bytes and lines, and the size of a file against the memory."""

import re
from pathlib import Path

from cordes.runtime.memory import in_words, require_memory

# Bytes of lists and numbers that become of one byte of text.
GROWTH = 25
_HEADER = 100_000
_ELEMENT = re.compile(rb"^element[ \t]+(\S+)[ \t]+(\d{1,18})[ \t]*\r?$", re.MULTILINE)


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
