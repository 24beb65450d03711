"""Whether a file can be written, asked before any long work."""

import os
from pathlib import Path

from cordes.errors import FileError


def check_writable(path: str | Path) -> Path:
    """Refuse an output before any long work."""
    path = Path(path)
    folder = path.parent if str(path.parent) else Path()
    if path.is_dir():
        raise FileError(f"{path} is a folder: give the name of a file.")
    if not folder.is_dir():
        raise FileError(f"The folder {folder} does not exist: make it first.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise FileError(f"{path} cannot be written: permission denied.")
    return path
