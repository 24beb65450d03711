"""Run the code and the commands that the pages show, and write what they print to `docs/outputs`,
from where the pages include it.

    python docs/regenerate.py               all pages
    python docs/regenerate.py tour.md …     some pages
    python docs/regenerate.py tables        the tables that are read off the code alone, which the
    others write too

The pages are the source. In the pages listed in `PAGES`, read from the top as a person would:

- a `python` block is executed, in one namespace for each page; what it prints goes to the file that
  the next block includes with `--8<--`. Warnings are
  printed too, and on the pages in `REFUSALS` a CordesError as Python prints it;
- a block with `title="NAME"` is written to the file NAME;
- a `console` block holds lines `$ command`, each followed by the include that receives its output.
  A command without an include is not run.

Everything happens in a temporary folder. A picture `outputs/PAGE-NAME.webp` in a page is the file
NAME.png that its code or its commands wrote, made smaller.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
OUTPUTS = DOCS / "outputs"
PAGES = (
    "index.md",
    "tour.md",
    "methods.md",
    "certificates.md",
    "linear.md",
    "hjb.md",
    "monge-ampere.md",
    "transport.md",
    "surfaces.md",
    "cli.md",
    "faq.md",
    "errors.md",
    "distribution.md",
)
# Pages that show how bad input is refused; elsewhere an error is an error.
REFUSALS = ("errors.md",)
BLOCK = re.compile(
    r"^```(?P<kind>\w+)(?P<head>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
TITLE = re.compile(r'title="([^"]+)"')
INCLUDE = re.compile(r'^--8<-- "outputs/([\w.-]+)"$', re.MULTILINE)
PICTURE = re.compile(r"\]\(outputs/([\w.-]+)\.webp\)")
# Pixels across a picture, twice those of a column of text.
WIDTH = 1400
COLUMNS = "82"


class Step(NamedTuple):
    """One thing that a page does: `write` a file of the name `target`, `run` Python or `call` a
    command whose output goes there (None: nowhere)."""

    kind: str
    text: str
    target: str | None


def steps(page: str) -> Iterator[Step]:
    """The steps of a page, in the order of its text."""
    blocks = list(BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        title, kind, body = TITLE.search(block["head"]), block["kind"], block["body"]
        if title is not None:
            yield Step("write", body, title[1])
        elif kind == "python":
            include = (
                INCLUDE.fullmatch(following["body"].strip()) if following is not None else None
            )
            yield Step("run", body, include[1] if include is not None else None)
        elif kind == "console":
            yield from _commands(body)


def _commands(body: str) -> Iterator[Step]:
    """The commands of a console block that have an include below them; a backslash at the end of a
    line continues it."""
    command = ""
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        include = INCLUDE.fullmatch(line)
        if line.startswith("$ "):
            command = line[2:]
        elif include is not None:
            yield Step("call", command, include[1])


def outputs_of(name: str) -> dict[str, str]:
    """Run a page in the current folder: the names of its outputs with their texts."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found: dict[str, str] = {}
    refusals = name in REFUSALS
    for step in steps((DOCS / name).read_text(encoding="utf-8")):
        if step.kind == "write":
            assert step.target is not None
            Path(step.target).write_text(step.text, encoding="utf-8")
            continue
        text = (
            _executed(step.text, namespace, refusals)
            if step.kind == "run"
            else _called(step.text, refusals)
        )
        if step.target is not None:
            found[step.target] = text
        elif text.strip():
            raise RuntimeError(f"This block prints, and no include takes it:\n{step.text}\n{text}")
    return found


def _executed(code: str, namespace: dict[str, Any], refusals: bool) -> str:
    from cordes import CordesError

    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, category, *_, **__: print(
            f"{category.__name__}: {message}"
        )
        try:
            exec(compile(code, "<page>", "exec"), namespace)
        except CordesError as error:
            if not refusals:
                raise
            print(traceback.format_exception_only(error)[-1].strip())
    return _tidy(stream.getvalue())


def _called(command: str, refusals: bool) -> str:
    """Standard output and standard error of a command, as a terminal of a fixed width shows
    them."""
    folder = Path(sys.executable).parent
    settings = {
        "COLUMNS": COLUMNS,
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        command,
        shell=True,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != (2 if refusals else 0):
        raise RuntimeError(f"{command} ended with status {done.returncode}:\n{done.stdout}")
    return _tidy(done.stdout)


def _tidy(text: str) -> str:
    """Without spaces at the ends of lines, which say nothing and change with the width of
    numbers."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder in which the pages find the examples of the repository."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DOCS.parent / "examples", Path(folder) / "examples")
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def regenerate(name: str) -> None:
    """Write the outputs and the pictures of one page."""
    text = (DOCS / name).read_text(encoding="utf-8")
    with scratch_folder() as folder:
        for target, output in outputs_of(name).items():
            (OUTPUTS / target).write_text(output, encoding="utf-8")
        for picture in set(PICTURE.findall(text)):
            source = next(folder.rglob(picture.removeprefix(f"{Path(name).stem}-") + ".png"), None)
            if source is None:
                raise RuntimeError(f"{name} shows {picture}, which nothing writes.")
            _shrink(source, OUTPUTS / f"{picture}.webp")


def _shrink(source: Path, target: Path) -> None:
    from PIL import Image

    with Image.open(source) as picture:
        picture.thumbnail((WIDTH, 10 * WIDTH))
        picture.convert("RGB").save(target, quality=85, method=6)


def tables() -> dict[str, str]:
    """Tables that are read off the code."""
    sys.path.insert(0, str(DOCS))
    import reference_tables

    return reference_tables.tables()


def main(names: Sequence[str]) -> None:
    OUTPUTS.mkdir(exist_ok=True)
    for target, text in tables().items():
        (OUTPUTS / target).write_text(text, encoding="utf-8")
    for name in [name for name in names or PAGES if name != "tables"]:
        began = time.perf_counter()
        regenerate(name)
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
