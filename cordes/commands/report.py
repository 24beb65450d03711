"""`cordes report`: several runs side by side."""

from pathlib import Path

from rich.text import Text

from cordes.commands.arguments import ReportArguments
from cordes.commands.output import Report
from cordes.commands.process import Call
from cordes.errors import FileError
from cordes.reports.pages.comparison import write_comparison
from cordes.runtime.files import check_writable

# How every page of cordes begins.
BEGINNING, MARK = 2000, b'<meta name="generator" content="cordes">'


def make_report(given: ReportArguments, call: Call) -> Report:
    runs = write_comparison(_replaceable(given.out), given.folders, call.words)
    return Report(
        {"runs": {run.name: run.facts for run in runs}, "file": str(given.out)},
        Text(f"{len(runs)} runs: {given.out}"),
    )


def _replaceable(path: Path) -> Path:
    """A page of somebody else is not replaced."""
    path = check_writable(path)
    if path.suffix == ".html" and path.is_file():
        with path.open("rb") as file:
            foreign = MARK not in file.read(BEGINNING)
        if foreign and path.stat().st_size:
            raise FileError(
                f"{path} was not written by cordes, and would be lost: move it, or choose another "
                "--out."
            )
    return path
