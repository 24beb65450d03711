"""The documentation says what the program does: what pages quote is what the code prints, every
public name is described, every link leads somewhere.

`make docs` builds the site in strict mode; here is what needs neither MkDocs nor minutes.
"""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from quoting import compare, form

import cordes
from cordes.certificates.hjb.coverage import CommonTriangle, CommonWeighted
from cordes.certificates.theorem import Citation, Modifier, Theorem
from cordes.certificates.theorems.energy import Tightened, TraceSplit, Triangle, Weighted
from cordes.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

import reference_tables  # noqa: E402
import regenerate  # noqa: E402

PAGES = sorted(DOCS.rglob("*.md"))
# The README and its like, and the forms of a forge.
BESIDE = sorted([*ROOT.glob("*.md"), *ROOT.glob(".github/**/*.md")])
# The others together take minutes: `python docs/regenerate.py` runs them.
CHEAP = ("../README.md", "errors.md", "faq.md", "index.md", "tour.md")


def test_comparison_sees_words_and_numbers_and_overlooks_seconds():
    line = "│ root mean square error: ≤ 8.85e-07 │ the cost 0.2745 │ solve 5.3"
    assert (
        compare(
            line,
            line.replace("8.85e-07", "3e-07").replace("5.3", "17.2").replace("0.2745", "0.2746"),
        )
        == []
    )
    assert compare(line, line.replace("8.85e-07", "3e-08")) == ["8.85e-07 became 3e-08"]
    assert compare(line, line.replace("0.2745", "0.2759")) == ["0.2745 became 0.2759"]
    assert len(compare(line, line.replace("≤ 8.85e-07", "no bound"))) == 2


def test_comparison_joins_the_lines_of_a_long_row():
    row = "  level" + 19 * " " + "quadrature: {:,} points, n and 2n per direction agree to {} %; "
    quoted, printed = row.format(30960, 0.12), row.format(6525, 0.4)
    end = "converged, not proved"
    assert compare(quoted.rstrip() + "\n" + 26 * " " + end, printed + end) == []
    assert len(compare(quoted + end, printed + end.removesuffix(", not proved"))) == 2


def test_the_form_of_an_output_has_no_numbers_and_no_lengths_of_loops():
    row = "residual {:.1e} with {} features\n"
    three = "".join(row.format(10.0**-step, 100 * step) for step in range(3))
    assert form(three + "the end") == form(row.format(0.5, 1) + "the end")
    assert form(three + "the end") != form("the end")
    assert form(three + "the end") != form(three + "an end")


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("page", CHEAP)
def test_quoted_output_is_what_the_code_prints(page):
    text = text_of(page)
    with regenerate.scratch_folder():
        outputs = regenerate.outputs_of(page, text)
    assert outputs
    for output in outputs:
        different = compare(text[output.place], output.text)
        assert not different, f"{output.step.text}{different}; python docs/regenerate.py {page}"


@pytest.mark.parametrize("page", regenerate.PAGES)
def test_every_step_of_a_page_has_its_output(page):
    text = text_of(page)
    steps = list(regenerate.steps(text))
    assert steps
    for step in steps:
        if step.kind == "run":
            compile(step.text, page, "exec")
        if step.place is not None:
            assert len(text[step.place].strip()) > 1, f"python docs/regenerate.py {page}"


def test_pages_have_outputs_and_no_directives():
    """A page reads well where it lies, in an editor or on a forge."""
    for page in regenerate.PAGES:
        assert any(step.place is not None for step in regenerate.steps(text_of(page))), page
    directive = re.compile(r"^--8<--|\]\[cordes|\)\{|^<style", re.MULTILINE)
    for path in PAGES:
        assert directive.search(path.read_text(encoding="utf-8")) is None, path


def test_no_line_of_prose_or_code_is_wider_than_100():
    """Rows of tables cannot be broken, nor can links."""
    wide = [
        f"{path.name}:{number}"
        for path in [*PAGES, *BESIDE]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > regenerate.LONGEST and not line.startswith(("| ", "|-", "["))
    ]
    assert wide == []


def test_outputs_are_renewed_in_their_places():
    page = (
        "```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nx = 1\n```\n\nA text:\n\n"
        "```text\nnot an output\n```\n\n```console\n$ pip install .\n$ echo a \\\n    b\n…\n"
        "$ echo c\nold\nolder\n```\n"
    )
    outputs = regenerate.outputs_of("page.md", page)
    assert [output.text for output in outputs] == ["1\n", "a b\n", "c\n"]
    assert regenerate.renewed(page, outputs) == (
        page.replace("2\n```", "1\n```").replace("…", "a b").replace("old\nolder", "c")
    )


def test_code_that_prints_must_show_it():
    with pytest.raises(RuntimeError, match="prints, and the page shows nothing"):
        regenerate.outputs_of("page.md", "```python\nprint(1)\n```\n\nNo output.\n")


def test_no_picture_is_left_that_no_page_shows():
    shown = {
        name
        for page in PAGES
        for name in re.findall(r"outputs/([\w.-]+)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in (DOCS / "outputs").iterdir()} == shown


def test_tables_are_those_of_the_code():
    made, shown = reference_tables.tables(), set()
    for path in PAGES:
        for name, text in regenerate.TABLE.findall(path.read_text(encoding="utf-8")):
            if name in made:
                assert text == made[name], f"{name}: python docs/regenerate.py tables"
                shown.add(name)
    assert shown == made.keys()


def test_every_result_has_its_sentence_and_remedy_in_the_documentation():
    page = text_of("errors.md")
    for result in cordes.Result:
        assert f"| `{result.value}` | {result.sentence} | {result.remedy} |" in page


def test_every_public_name_is_in_the_reference():
    described = {
        name
        for page in (DOCS / "api").glob("*.md")
        for name in re.findall(r"^::: cordes\.(\w+)$", page.read_text(), re.MULTILINE)
    }
    assert described == set(cordes.__all__)


@pytest.mark.parametrize("command", ["solve", "surface", "study", "report", "new"])
def test_quoted_help_has_the_options_of_the_command(command):
    page = text_of("cli.md")
    (quoted,) = (
        page[step.place]
        for step in regenerate.steps(page)
        if step.text == f"cordes {command} --help" and step.place is not None
    )
    made: Any = typer.main.get_command(app)
    options = {
        name
        for parameter in made.commands[command].params
        for name in parameter.opts
        if name.startswith("--")
    }
    assert set(re.findall(r"^│ +(--[\w-]+)", quoted, re.MULTILINE)) == options | {"--help"}, (
        "python docs/regenerate.py cli.md"
    )


def test_theory_proves_every_theorem_that_a_certificate_names():
    """Headings or entries of the first table of the page."""
    page = " ".join(text_of("theory.md").split())
    schemes = (TraceSplit, Tightened, Weighted, Triangle, CommonTriangle, CommonWeighted)
    modified = [
        Citation(Theorem.ABP).with_(Modifier.drift),
        Citation(Theorem.T4).with_(Modifier.shifted),
        Citation(Theorem.T5).with_(Modifier.shrunk),
        *(Citation(Theorem.T5, variant) for variant in ("ii", "ii'", "increasing")),
    ]
    printed = (
        {theorem.label for theorem in Theorem}
        | {str(scheme._field_defaults["theorem"]) for scheme in schemes}
        | {str(citation) for citation in modified}
    )
    assert {"T1b", "T1c", "T2", "T4", "T4 with shift", "T5"} <= printed
    missing = [name for name in sorted(printed) if name not in page]
    assert not missing


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, *BESIDE]:
        text = re.sub(
            r"^```.*?^```|`[^`]*`",
            "",
            page.read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        )
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_pages_name_are_there():
    """By their names, or by the ends of their paths."""
    there = [
        f"/{path.relative_to(ROOT)}"
        for folder in ("checker", "cordes", "benchmarks", "docs", "examples", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {
        (page.name, name)
        for page in [*PAGES, *BESIDE]
        for name in re.findall(r"`([a-z_\d/]+\.py)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 30
    missing = {one for one in named if not any(path.endswith(f"/{one[1]}") for path in there)}
    assert missing == set()


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"([\w./-]+\.md)$", navigation, re.MULTILINE))
    pages = {str(path.relative_to(DOCS)) for path in PAGES}
    assert listed <= pages
    assert {name for name in pages - listed if not name.startswith("examples/")} == set()
