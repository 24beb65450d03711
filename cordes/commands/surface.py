"""`cordes surface`: a surface laid flat."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cordes.commands.arguments import SurfaceArguments
from cordes.commands.files import claim_folder, write_all
from cordes.commands.output import DONE, NOT_AS_ASKED, Report, complain
from cordes.commands.process import Call
from cordes.reports.tables import surface_table
from cordes.runtime.folders import Folder
from cordes.runtime.signals import pause
from cordes.surfaces.files import read_mesh, write_mesh
from cordes.surfaces.flatten import FlatSurface, flatten
from cordes.surfaces.folded import folded_surface
from cordes.surfaces.pages.plots import plot_surface
from cordes.surfaces.pages.surface import moved, write_surface_report

FILES = ("surface.obj", "surface.ply", "surface.png", "report.json", "report.html")


def make_report(given: SurfaceArguments, call: Call) -> Report:
    mesh = folded_surface() if given.mesh == "folded" else read_mesh(given.mesh)
    folder = None
    if given.out is not None:
        folder = claim_folder(call, given.out, FILES, given.overwrite)

    def say(line: str) -> None:
        pause()
        complain(line, "dim")

    found = flatten(mesh, given.corners, given.network, given.seed, say, count_from=1)
    facts: dict[str, Any] = {
        "mesh": given.mesh,
        **found.as_data(),
        "moved": moved(found),
        "seed": given.seed,
        "files": [],
    }
    facts["corners"] = [corner + 1 for corner in facts["corners"]]
    complete = folder is None or write_surface(folder, found, facts)
    return Report(facts, surface_table(facts), DONE if complete else NOT_AS_ASKED)


def write_surface(folder: Folder, found: FlatSurface, facts: dict[str, Any]) -> bool:
    """Whether all files could be written. The picture is drawn once, for its file and the page."""
    drawn: list[Figure] = []

    def draw(path: Path | None = None) -> Figure:
        title = Path(facts["mesh"]).stem
        drawn.append(plot_surface(found.disk, found.shown, found.size, path, title=title))
        return drawn[-1]

    def write_flat(path: Path) -> Path:
        return write_mesh(path, found.disk.mesh, found.maps[found.best].uv)

    def write_page(path: Path) -> Path:
        picture = drawn[0] if drawn else draw()
        return write_surface_report(path, found, facts, picture, folder.command)

    kept = {"surface.obj": write_flat, "surface.ply": write_flat}
    pages: dict[str, Any] = {"surface.png": draw, "report.html": write_page}
    return write_all(folder, "report.json", facts, kept, pages)
