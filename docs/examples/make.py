"""Run the examples and write the pages of the gallery: text and code from each script, its figure,
and what it prints.

    python docs/examples/make.py [NAME …]      all examples, or those named (`05_tolerance`)
    python docs/examples/make.py --pages       text and code anew, output and figures as they are

The index is written in any case. Each script runs in a temporary folder. Its figure is kept in a
smaller size, with a thumbnail for the index.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from regenerate import tidy  # noqa: E402

SCRIPTS = sorted((HERE.parent.parent / "examples").glob("[0-9][0-9]_*.py"))
# Pixels of the longest side of a figure (the largest that stays below so many bytes), the size of
# a thumbnail, and the quality of both.
FIGURE, BYTES, THUMBNAIL, QUALITY = (1100, 1000, 900), 60_000, (320, 220), 82
GUIDES = {
    "01_first_solve": ("Five-minute tour", "tour.md"),
    "02_your_own_coefficients": ("Linear equations", "linear.md"),
    "03_interfaces": ("Interfaces", "linear.md#interfaces"),
    "04_corners": ("Singular points", "linear.md#singular-points"),
    "05_tolerance": ("How to read a certificate", "certificates.md"),
    "06_checking_cordes": ("How to read a certificate", "certificates.md"),
    "07_curved_domains": ("Linear equations", "linear.md#domains"),
    "08_three_dimensions": ("Three dimensions and more", "linear.md#three-dimensions-and-more"),
    "09_hjb": ("Control problems", "hjb.md"),
    "10_continuous_controls": ("Control problems", "hjb.md#a-continuum-of-controls"),
    "11_monge_ampere": ("Monge–Ampère", "monge-ampere.md"),
    "12_transport": ("Optimal transport", "transport.md"),
    "13_surface": ("Surfaces", "surfaces.md"),
    "14_high_dimension": ("How to choose a method", "methods.md"),
    "15_two_processes": ("Many devices, many hosts", "distribution.md"),
    "16_multiplier": ("The paper, reproduced", "reproduction.md"),
    "17_image": ("Tables, images, samples", "tables.md"),
    "18_small_scales": ("How to choose a method", "methods.md#questions-that-decide"),
    "19_a_theorem": ("Proofs", "proof.md"),
    "20_insulated_room": ("Conditions on the boundary", "boundary.md"),
    "21_american_put": ("Time and stopping", "time.md#early-exercise"),
    "22_a_game": ("Control problems", "hjb.md#games"),
}
OUTPUT = re.compile(r"^It prints\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A script: title and text of its docstring, and the code below it."""

    name: str
    title: str
    text: str
    code: str


def read(script: Path) -> Example:
    source = script.read_text(encoding="utf-8")
    docstring = ast.parse(source).body[0]
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    below = source.splitlines(keepends=True)[docstring.end_lineno :]
    return Example(script.stem, title, text.strip(), "".join(below).strip("\n"))


def page(example: Example, output: str) -> str:
    """The page of one example with what it printed."""
    guide, target = GUIDES[example.name]
    parts = (
        f"# {int(example.name[:2])}. {example.title}",
        example.text,
        f"![{example.title}]({example.name}.webp)",
        f'```python title="examples/{example.name}.py"\n{example.code}\n```',
        f"It prints\n\n```text\n{output.strip()}\n```",
        f"Read on: [{guide}](../{target}).\n[All examples](index.md).",
    )
    return "\n\n".join(parts) + "\n"


def output_of(text: str) -> str:
    """What a page says that its example prints."""
    found = OUTPUT.search(text)
    if found is None:
        raise ValueError("The page shows no output: python docs/examples/make.py")
    return found[1]


def index(examples: Sequence[Example]) -> str:
    """All examples with their thumbnails: cards that flow, so that a page of any width is
    filled."""
    cards = [
        (
            f"[![](thumbnails/{example.name}.webp)<br>{int(example.name[:2])}. "
            f"{example.title}]({example.name}.md)"
        )
        for example in examples
    ]
    return INDEX + "\n".join(cards) + "\n\n</div>\n"


INDEX = """# Examples

Short scripts, each with one idea more than those before it. They need nothing but an installed
cordes:

```console
$ python examples/01_first_solve.py
```

prints what its page shows and writes its figure, to `01_first_solve.png` or to the path that you
name. At the end each script asserts one number, against a value found in another way where there is
one, and all of them are run by the tests; digits at rounding level differ from one machine to the
next.

Two complete problem files with comments, `square.toml` and `pentagon.toml`, are in the same folder.
`cordes solve FILE` solves them, see [problems in TOML](../toml.md).

<div class="cards" markdown>

"""


def run(script: Path) -> str:
    """Run one script, keep its figure and thumbnail, and return what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        figure = Path(folder) / "figure.png"
        settings = {**os.environ, "PYTHONUTF8": "1"}
        done = subprocess.run(
            [sys.executable, str(script), str(figure)],
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{script.name} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        keep(figure, HERE / f"{script.stem}.webp")
        thumbnail(figure, HERE / "thumbnails" / f"{script.stem}.webp")
    return tidy(done.stdout)


def keep(figure: Path, target: Path) -> None:
    """A smaller copy of a figure."""
    with Image.open(figure) as picture:
        full = picture.convert("RGB")
    for longest in FIGURE:
        small = full.copy()
        small.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        small.save(target, quality=QUALITY, method=6)
        if target.stat().st_size <= BYTES:
            break


def thumbnail(figure: Path, target: Path) -> None:
    """The figure on a white card, all of one size."""
    target.parent.mkdir(exist_ok=True)
    with Image.open(figure) as picture:
        small = ImageOps.pad(
            picture.convert("RGB"), THUMBNAIL, Image.Resampling.LANCZOS, color="white"
        )
    small.save(target, quality=QUALITY, method=6)


def main(names: Sequence[str]) -> None:
    for script in SCRIPTS:
        target = HERE / f"{script.stem}.md"
        if names == ["--pages"]:
            output = tidy(output_of(target.read_text(encoding="utf-8")))
        elif names and script.stem not in names:
            continue
        else:
            print(script.stem, flush=True)
            output = run(script)
        target.write_text(page(read(script), output), encoding="utf-8")
    (HERE / "index.md").write_text(index([read(script) for script in SCRIPTS]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
