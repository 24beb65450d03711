"""A figure as a file."""

import io
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cordes.runtime.files import write_file


def saved(figure: Figure, path: Path | None, dpi: int) -> Figure:
    """The figure, with a canvas and, where there is a path, written: in the format of its ending,
    or as PNG with that ending."""
    FigureCanvasAgg(figure)
    if path is not None:
        path = path if path.suffix else path.with_name(path.name + ".png")
        content = io.BytesIO()
        figure.savefig(content, dpi=dpi, format=path.suffix[1:].lower())
        write_file(path, content.getvalue())
    return figure
