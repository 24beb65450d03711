"""Pictures for pages with many of them: WebP, which browsers of every kind have read for years, at
a third of the size of PNG."""

import base64
import html
import io
from pathlib import Path

import numpy as np
from PIL import Image

# Pixels along the longer side of a still, the width of a figure, and the quality of both.
STILL, WIDTH, QUALITY = 720, 1200, 82


def photograph(path: Path, caption: str) -> str:
    """A figure from a file."""
    with Image.open(path) as image:
        image = image.convert("RGB")
        image.thumbnail((WIDTH, 4 * WIDTH))
        return still(_address(image), caption)


def address(colours: np.ndarray) -> str:
    """Red, green and blue from 0 to 1, the lowest row first. White is what nothing covers, and
    becomes clear."""
    clear = np.all(colours >= 1.0, axis=2)
    pixels = np.dstack([np.rint(255 * colours[..., :3]), np.where(clear, 0, 255)]).astype(np.uint8)[
        ::-1
    ]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((STILL, STILL))
    return _address(image)


def still(source: str, caption: str) -> str:
    """A figure with its caption below, which is plain text."""
    return (
        f'<figure class="picture"><img src="{source}" '
        f'alt="{html.escape(caption)}"><figcaption>{html.escape(caption)}</figcaption></figure>'
    )


def _address(image: Image.Image) -> str:
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=QUALITY, method=2)
    return f"data:image/webp;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
