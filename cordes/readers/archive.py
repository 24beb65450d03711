"""Archives of arrays (NumPy's .npz), and JSON, from files that anybody may have written: sizes are
compared with limits before anything is unpacked, and nothing in them is ever executed."""

import io
import json
import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from cordes.errors import CordesError, FileError
from cordes.runtime.memory import in_words, require_memory

# Bytes of an archive when it is unpacked, of a text in JSON, and how many arrays there may be.
MOST_BYTES, MOST_JSON, MOST_ARRAYS = 512_000_000, 32_000_000, 10_000
# Numbers, truth values and texts: no objects, which would be code.
KINDS = "fiubU"
_MEMBER = re.compile(r"[A-Za-z0-9_.-]{1,100}\.npy")


def read_arrays(data: bytes | Path, what: str) -> dict[str, np.ndarray]:
    """All arrays of an archive by their names. `what` begins the messages, and is followed by the
    reason; checked before it is unpacked: names, types, and that shapes are as large as the data.
    """
    try:
        # A whole name, not a folder: `zipfile` would list what is in there.
        with zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else data) as archive:
            members = archive.infolist()
            _check_members(members, what)
            return {each.filename[:-4]: _array(archive, each) for each in members}
    except CordesError:
        raise
    except Exception as error:
        # One wrong byte can raise almost anything here: BadZipFile, zlib.error,
        # NotImplementedError, struct.error, MemoryError.
        raise FileError(f"{what} ({type(error).__name__} while reading).") from error


def _check_members(members: list[zipfile.ZipInfo], what: str) -> None:
    size = sum(member.file_size for member in members)
    if size > MOST_BYTES or len(members) > MOST_ARRAYS:
        raise FileError(
            f"{what}: unpacked it would be {in_words(size)} in {len(members)} arrays; at most "
            f"{in_words(MOST_BYTES)} in {MOST_ARRAYS} are read."
        )
    require_memory(3.0 * size, what, "close other programs, or take a larger machine.")
    names = [member.filename for member in members]
    strange = [name for name in names if not _MEMBER.fullmatch(name)]
    if strange or len(set(names)) < len(names):
        raise FileError(f"{what}: the names of its parts are not those of arrays.")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array. Python's reader of archives gives no more bytes than the size that was added up
    before, whatever the packed data would become."""
    content = io.BytesIO(archive.read(member))
    version = np.lib.format.read_magic(content)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("an unknown version of arrays")
    read = np.lib.format.read_array_header_1_0
    read = np.lib.format.read_array_header_2_0 if version == (2, 0) else read
    shape, fortran, dtype = read(content, max_header_size=10_000)
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in KINDS or dtype.fields is not None or min(shape, default=0) < 0:
        raise ValueError(f"arrays of type {dtype} are not read")
    rest = content.read()
    if len(rest) != size:
        raise ValueError("an array is not as large as its shape")
    flat = np.frombuffer(rest, dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy()


def read_json(data: bytes | Path, what: str, remedy: str = "") -> dict[str, Any]:
    """The one object of a JSON text; `what` begins the messages, `remedy` ends them."""
    try:
        size = len(data) if isinstance(data, bytes) else data.stat().st_size
        if size > MOST_JSON:
            raise ValueError(f"{in_words(size)}, and at most {in_words(MOST_JSON)} are read")
        text = data if isinstance(data, bytes) else data.read_bytes()
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is not one object")
    except (OSError, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise FileError(f"{what} cannot be read: {why}.{remedy}") from error
    return found
