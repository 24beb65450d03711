"""Where a page comes from: versions, machine, date and the command that makes it again."""

import datetime
import importlib.metadata
import os
import platform
import shlex
from collections.abc import Sequence

import cordes
from cordes.reports.kit.page import Section, command_box, table, text

PACKAGES = ("jax", "numpy", "scipy")


def version_rows() -> list[tuple[str, str]]:
    """Rows for `page.table`."""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    now = datetime.datetime.now(datetime.UTC)
    return [
        (
            "versions",
            text(f"cordes {cordes.__version__}, Python {platform.python_version()}, {packages}"),
        ),
        ("machine", text(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores")),
        ("written", text(f"{now:%Y-%m-%d %H:%M} UTC")),
    ]


def closing_sections(settings: Sequence[tuple[str, str]], words: Sequence[str]) -> list[Section]:
    """What a page ends with: how its subject was made, and the command that makes it again."""
    rows = [*settings, *version_rows()]
    return [
        Section("Settings and versions", table(rows), "settings"),
        Section("Make it again", command_box(command_line(words)), "again"),
    ]


def command_line(words: Sequence[str]) -> str:
    """As it is typed into a shell."""
    return shlex.join(["cordes", *words])
