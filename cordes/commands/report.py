"""`cordes report`: several runs side by side."""

from rich.text import Text

from cordes.commands.arguments import ReportArguments
from cordes.commands.output import Report
from cordes.commands.process import Call
from cordes.reports.pages.comparison import write_comparison
from cordes.runtime.files import check_writable


def make_report(given: ReportArguments, call: Call) -> Report:
    runs = write_comparison(check_writable(given.out), given.folders, call.words)
    return Report(
        {"runs": {run.name: run.facts for run in runs}, "file": str(given.out)},
        Text(f"{len(runs)} runs: {given.out}"),
    )
