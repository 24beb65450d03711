"""Run the code and the commands that the pages show, and put what they print into the pages.

    python docs/regenerate.py               all pages
    python docs/regenerate.py tour.md …     some pages
    python docs/regenerate.py tables        only the tables that are read off the code

The pages are the source, and are read from the top as a person would. In those listed in `PAGES`:

- a `python` block is executed, in one namespace for each page; a `text` block right below it is
  what it printed. Warnings are printed too, and on the pages in `REFUSALS` a CordesError as Python
  prints it;
- a block with `title="NAME"` is written to the file NAME;
- in a `console` block the lines below `$ command` are what the command printed. A command with
  nothing below it is not run. To begin with, write one line of anything, such as `…`.

Everything happens in a temporary folder. A picture `outputs/PAGE-NAME.webp` in a page is the file
NAME.png that its code or its commands wrote, made smaller.

On any page, what stands between `<!-- table NAME -->` and `<!-- end -->` is a table of
`reference_tables.py`, if that file has one of this name.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
OUTPUTS = DOCS / "outputs"
PAGES = (
    "../README.md",
    "index.md",
    "tour.md",
    "methods.md",
    "certificates.md",
    "proof.md",
    "linear.md",
    "domains.md",
    "boundary.md",
    "hjb.md",
    "time.md",
    "monge-ampere.md",
    "transport.md",
    "tables.md",
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
# A command, with lines that a backslash continues, and what stands below it.
COMMAND = re.compile(
    r"^\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.MULTILINE
)
PICTURE = re.compile(r"\]\(outputs/([\w.-]+)\.webp\)")
# The beginning of a row of two columns, as certificates print them.
ROW = re.compile(r" +\S.*? {2,}")
TABLE = re.compile(r"^<!-- table (\S+) -->\n\n(.*?)\n<!-- end -->$", re.MULTILINE | re.DOTALL)
# Pixels across a picture, twice those of a column of text.
WIDTH = 1400
# Characters across the tables of a command, and across any line of a page.
COLUMNS, LONGEST = "82", 100


class Step(NamedTuple):
    """One thing that a page does: `write` the file `target`, `run` Python or `call` a command.
    `place` is where the page shows what is printed (None: nowhere)."""

    kind: str
    text: str
    target: str | None = None
    place: slice | None = None


class Output(NamedTuple):
    """What a step printed just now, and where the page has it."""

    step: Step
    place: slice
    text: str


def steps(page: str) -> Iterator[Step]:
    """The steps of a page, in the order of its text."""
    blocks = list(BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        title, kind, body = TITLE.search(block["head"]), block["kind"], block["body"]
        if title is not None:
            yield Step("write", body, target=title[1])
        elif kind == "python":
            yield Step("run", body, place=_below(page, block, following))
        elif kind == "console":
            for found in COMMAND.finditer(page, block.start("body"), block.end("body")):
                if found["output"]:
                    command = re.sub(r"\\\n\s*", "", found["command"])
                    yield Step("call", command, place=slice(*found.span("output")))


def _below(page: str, block: re.Match[str], following: re.Match[str] | None) -> slice | None:
    """The inside of a `text` block with nothing but space between it and the code above it."""
    if following is None or following["kind"] != "text":
        return None
    if page[block.end() : following.start()].strip():
        return None
    return slice(*following.span("body"))


def outputs_of(name: str, page: str) -> list[Output]:
    """Run a page in the current folder: its outputs, in the order of its text."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = []
    refusals = name in REFUSALS
    for step in steps(page):
        if step.kind == "write":
            assert step.target is not None
            Path(step.target).write_text(step.text, encoding="utf-8")
            continue
        text = (
            _executed(step.text, namespace, refusals)
            if step.kind == "run"
            else _called(step.text, refusals)
        )
        if step.place is not None:
            found.append(Output(step, step.place, text))
        elif text.strip():
            raise RuntimeError(
                f"This block prints, and the page shows nothing:\n{step.text}\n{text}"
            )
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
    return tidy(stream.getvalue())


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
    return tidy(done.stdout)


def tidy(text: str) -> str:
    """Without spaces at the ends of lines, which say nothing and change with the width of numbers;
    long rows go on below their second column."""
    lines = (_wrapped(line.rstrip()) for line in text.splitlines())
    return "\n".join(lines).strip("\n") + "\n"


def _wrapped(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    row = ROW.match(line)
    return "\n".join(
        textwrap.wrap(
            line,
            LONGEST,
            subsequent_indent=" " * (row.end() if row is not None else 0),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


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
    """Write the outputs and the pictures of one page anew."""
    page = (DOCS / name).read_text(encoding="utf-8")
    with scratch_folder() as folder:
        outputs = outputs_of(name, page)
        for picture in set(PICTURE.findall(page)):
            source = next(folder.rglob(picture.removeprefix(f"{Path(name).stem}-") + ".png"), None)
            if source is None:
                raise RuntimeError(f"{name} shows {picture}, which nothing writes.")
            _shrink(source, OUTPUTS / f"{picture}.webp")
    (DOCS / name).write_text(renewed(page, outputs), encoding="utf-8")


def renewed(page: str, outputs: Iterable[Output]) -> str:
    """The page with these outputs in their places, the last one first: the places before it stay
    where they are."""
    for output in sorted(outputs, key=lambda output: output.place.start, reverse=True):
        page = page[: output.place.start] + output.text + page[output.place.stop :]
    return page


def _shrink(source: Path, target: Path) -> None:
    from PIL import Image

    with Image.open(source) as picture:
        picture.thumbnail((WIDTH, 10 * WIDTH))
        picture.convert("RGB").save(target, quality=85, method=6)


def write_tables() -> None:
    """The tables that are read off the code, on all pages."""
    sys.path.insert(0, str(DOCS))
    import reference_tables

    made = reference_tables.tables()
    for path in DOCS.rglob("*.md"):
        page = path.read_text(encoding="utf-8")
        fresh = TABLE.sub(
            lambda found: found[0].replace(found[2], made.get(found[1], found[2])), page
        )
        if fresh != page:
            path.write_text(fresh, encoding="utf-8")


def main(names: Sequence[str]) -> None:
    write_tables()
    for name in [name for name in names or PAGES if name != "tables"]:
        began = time.perf_counter()
        regenerate(name)
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
