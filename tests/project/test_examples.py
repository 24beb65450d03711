"""The examples run as they are, draw their figures, stay short, and their pages show them as they
are."""

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from quoting import form

ROOT = Path(__file__).resolve().parents[2]
GALLERY = ROOT / "docs" / "examples"
sys.path.insert(0, str(GALLERY))

import make  # noqa: E402

NAMES = [script.stem for script in make.SCRIPTS]
each = pytest.mark.parametrize("script", make.SCRIPTS, ids=NAMES)
# Examples are for users: what the package offers by name, the parts that have a page of their own,
# and one figure.
PUBLIC = {"cordes", "cordes.surfaces", "cordes.surfaces.pages.plots"}
# A second on a quiet machine is several on a busy one; whoever takes longer hangs.
LIMIT = 240


def blank(path: Path) -> bool:
    """Whether a picture shows hardly anything but its background."""
    with Image.open(path) as picture:
        grey = np.asarray(picture.convert("L"), dtype=float)
    return min(grey.shape) < 80 or float(np.mean(np.abs(grey - np.median(grey)) > 20)) < 0.01


@each
@pytest.mark.long
def test_example_runs_and_draws(script, tmp_path, monkeypatch, capsys):
    """Its own assertion is the test of its number; its page quotes what it prints, but for numbers.
    Warnings that the script does not speak of are errors. What starts processes of its own runs in
    one; the others share this one, whose imports they need not wait for."""
    if "distribution" in script.read_text(encoding="utf-8"):
        settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"}
        command = [sys.executable, "-W", "error::UserWarning", str(script), "figure.png"]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        printed = done.stdout
    else:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(script), "figure.png"])
        runpy.run_path(str(script), run_name="__main__")
        printed = capsys.readouterr().out
    page = (GALLERY / f"{script.stem}.md").read_text(encoding="utf-8")
    assert form(make.output_of(page)) == form(printed), (
        f"python docs/examples/make.py {script.stem}"
    )
    assert not blank(tmp_path / "figure.png")
    # Nothing else is left than what the script names.
    left = {path.name for path in tmp_path.iterdir()} - {"figure.png", "figure.cordes"}
    text = script.read_text(encoding="utf-8")
    assert all(Path(name).stem in text for name in left), left


@each
def test_example_is_short_and_says_what_it_shows(script):
    source = script.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 45
    example = make.read(script)
    assert re.fullmatch(r"[A-Z][^\n.]{3,45}", example.title)
    assert 2 <= len(re.findall(r"[.:?](?:\s|$)", example.text)) <= 12
    # The figure goes where it is told, and by default into the current folder under the example's
    # name.
    assert f'"{script.stem}.png"' in source
    assert "sys.argv[1" in source


@each
def test_example_asserts_one_number_and_says_which(script):
    asserts = [
        node
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert len(asserts) == 1
    assert isinstance(asserts[0].test, ast.Compare)
    assert isinstance(asserts[0].msg, ast.Constant)


@each
def test_example_uses_public_names(script):
    import cordes

    tree = ast.parse(script.read_text(encoding="utf-8"))
    imported = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cordes")
    ]
    assert {node.module for node in imported} <= PUBLIC
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "cordes"
    }
    assert used <= set(cordes.__all__)


@each
def test_page_shows_the_example_as_it_is(script):
    page = (GALLERY / f"{script.stem}.md").read_text(encoding="utf-8")
    example = make.read(script)
    assert page == make.page(example, make.output_of(page)), "python docs/examples/make.py --pages"
    assert example.code in page
    for picture, most in (
        (GALLERY / f"{script.stem}.webp", 70_000),
        (GALLERY / "thumbnails" / f"{script.stem}.webp", 20_000),
    ):
        assert not blank(picture)
        assert picture.stat().st_size < most


def test_index_lists_all_examples():
    assert 12 <= len(NAMES) <= 24
    assert [name[:2] for name in NAMES] == [f"{number:02}" for number in range(1, len(NAMES) + 1)]
    assert (GALLERY / "index.md").read_text(encoding="utf-8") == make.index(
        [make.read(script) for script in make.SCRIPTS]
    )


def test_no_page_is_left_without_its_example():
    assert {path.stem for path in GALLERY.glob("[0-9]*")} == set(NAMES)
    assert {path.stem for path in (GALLERY / "thumbnails").iterdir()} == set(NAMES)
