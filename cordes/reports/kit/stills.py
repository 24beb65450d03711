"""Pictures for pages with many of them: WebP, which has a third of the size of PNG."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from cordes.reports.kit.page import embedded, still

# Pixels along the longer side of a still, the width of a figure, and the quality of both.
STILL, WIDTH, QUALITY = 720, 1200, 82


def photograph(path: Path, caption: str) -> str:
    """A figure from a file."""
    with Image.open(path) as image:
        image = image.convert("RGB")
        image.thumbnail((WIDTH, 4 * WIDTH))
        return still(_address(image), caption)


def address(colours: np.ndarray) -> str:
    """Colours from 0 to 1, the lowest row first. White is what nothing covers: it becomes clear."""
    clear = np.all(colours >= 1.0, axis=2)
    pixels = np.dstack([np.rint(255 * colours[..., :3]), np.where(clear, 0, 255)])
    image = Image.fromarray(np.ascontiguousarray(pixels.astype(np.uint8)[::-1]))
    image.thumbnail((STILL, STILL))
    return _address(image)


def _address(image: Image.Image) -> str:
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=QUALITY, method=2)
    return embedded("webp", stream.getvalue())
