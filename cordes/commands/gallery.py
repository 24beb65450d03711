"""`cordes gallery`: the built-in problems."""

import cordes
from cordes.commands.arguments import GalleryArguments
from cordes.commands.output import Report
from cordes.commands.process import Call
from cordes.reports.tables import gallery_table


def make_report(given: GalleryArguments, call: Call) -> Report:
    problems = [
        {"name": name, "description": cordes.gallery.describe(name)} for name in cordes.gallery
    ]
    return Report({"problems": problems}, gallery_table(problems))
