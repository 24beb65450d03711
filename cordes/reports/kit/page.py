"""A self-contained page: sections, tables, pictures and numbers as HTML, with the style, the script
and the data inside the file.

Whatever comes from a problem or a file passes `html.escape`, and a content security policy forbids
every request, so that a page may be passed on.
"""

import base64
import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cordes.certificates.certificate import directed
from cordes.runtime.files import write_file
from cordes.runtime.plain import as_json

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
MINUS = "−"
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Section(NamedTuple):
    """A part of a page. `body` is safe HTML; the title is plain text and may be empty."""

    title: str
    body: str
    identifier: str = ""


def write_page(
    path: str | Path,
    title: str,
    summary: str,
    sections: Sequence[Section],
    data: Mapping[str, Any] | None = None,
    scripts: Sequence[str] = (),
) -> Path:
    """The whole page as a file. `title` is plain text, `summary` (what stands below it) is safe
    HTML; sections without a body are left out; `data` goes into the element with the identifier
    `data`, where scripts read it; `scripts` are sources that run after the page's own."""
    sections = [section for section in sections if section.body]
    contents = "\n".join(_section(section) for section in sections)
    links = "".join(
        f'<a href="#{html.escape(each.identifier)}">{html.escape(each.title)}</a>'
        for each in sections
        if each.identifier and each.title
    )
    navigation = f'<nav aria-label="Sections">{links}</nav>' if links else ""
    embedded = ""
    if data is not None:
        embedded = f'<script type="application/json" id="data">{as_script_data(data)}</script>'
    programs = "\n".join(
        f"<script>{_program(source)}</script>" for source in (resource("script.js"), *scripts)
    )
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="cordes">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{resource("style.css")}</style>
</head>
<body>
<header class="page">
<div class="bar"><span class="mark">cordes</span>{navigation}<button type="button" id="theme"
title="Light or dark" hidden>◐ <span>theme</span></button></div>
<h1>{html.escape(title)}</h1>
<div class="summary">{summary}</div>
</header>
<main>
{contents}
</main>
{embedded}
{programs}
</body>
</html>
"""
    # Half a surrogate pair, in the name of a file, is no text: its escape is, and JSON too.
    return write_file(path, page.encode(errors="backslashreplace"))


def _section(section: Section) -> str:
    identifier = f' id="{html.escape(section.identifier)}"' if section.identifier else ""
    heading = f"<h2>{html.escape(section.title)}</h2>" if section.title else ""
    return f"<section{identifier}>{heading}\n{section.body}\n</section>"


@cache
def resource(name: str, beside: str = __file__) -> str:
    """The text of a style or script file beside a module: this one, or the one that asks."""
    return (Path(beside).parent / name).read_text(encoding="utf-8")


def _program(source: str) -> str:
    # Inside a script element nothing but its end tag and an HTML comment have a meaning.
    return source.replace("</", "<\\/").replace("<!--", "<\\!--")


def as_script_data(data: Any) -> str:
    """JSON that may stand inside a script element: no `<`, and null for what is not finite."""
    text = json.dumps(as_json(data), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def text(value: Any) -> str:
    """Plain text as safe HTML."""
    return html.escape(str(value))


def plain_title(title: str) -> str:
    """A title of a figure as plain text: indices and stars need no tags there."""
    lowered = re.sub(r"<sub>(.*?)</sub>", lambda found: found[1].translate(SUBSCRIPTS), title)
    return html.unescape(re.sub(r"<[^>]+>", "", lowered)).replace("∗", "*")


def number(value: float | None, digits: int = 3, fact: str = "", up: bool | None = None) -> str:
    """A number for people, 3.1·10⁻⁹ or 0.25, with the exact value in the attribute data-value; a
    dash where there is none. `fact` names its place in the JSON that lies beside the page, such as
    certificate.rms. An upper bound is rounded `up`, a lower one down."""
    place = f' data-fact="{html.escape(fact)}"' if fact else ""
    if value is None:
        return f'<span class="number none" data-value="null"{place}>—</span>'
    exact = html.escape(json.dumps(as_json(value)))
    shown = digits_of(value, digits, up)
    return f'<span class="number" data-value="{exact}"{place}>{shown}</span>'


def digits_of(value: float, digits: int = 3, up: bool | None = None) -> str:
    """The digits of `number`, as HTML without the attribute."""
    if up is not None:
        value = directed(value, digits, up)
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f").replace("-", MINUS)
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    if value == 0 or 1e-3 <= abs(value) < 10**6:
        # 99.96 has more places before the point than two digits fill.
        fits = abs(float(f"{value:.{digits}g}")) < 10**digits
        shown = f"{value:.{digits}g}" if fits else f"{value:,.0f}".replace(",", "\u202f")
        return shown.replace("-", MINUS)
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa.replace('-', MINUS)}·10<sup>{str(int(exponent)).replace('-', MINUS)}</sup>"


def table(rows: Sequence[tuple[str, str]], caption: str = "") -> str:
    """Two columns, what and how much: names in plain text, values in safe HTML."""
    body = "".join(_row(html.escape(name), value) for name, value in rows)
    return _table("facts", caption, f"<tbody>{body}</tbody>")


def grid_table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table: its head is plain text, cells are safe HTML, the first of a row is its name."""
    columns = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(_row(*row) for row in rows)
    return _table("grid", caption, f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody>")


def _row(name: str, *cells: str) -> str:
    return f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _table(kind: str, caption: str, body: str) -> str:
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table class="{kind}">{title}{body}</table></div>'


def picture(png: bytes | Path, caption: str, alternative: str) -> str:
    """A figure inside the page. Its caption and alternative text are plain text. Figures are drawn
    on white: the style keeps them so in the dark."""
    raw = png if isinstance(png, bytes) else Path(png).read_bytes()
    return still(embedded("png", raw), caption, alternative)


def still(address: str, caption: str, alternative: str | None = None) -> str:
    """A figure of any kind of picture; without another text its caption stands for it too."""
    said = html.escape(caption if alternative is None else alternative)
    return (
        f'<figure class="picture"><img src="{address}" alt="{said}">{figcaption(caption)}</figure>'
    )


def embedded(kind: str, raw: bytes) -> str:
    """The address of a picture that is inside of the page."""
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode('ascii')}"


def figcaption(caption: str) -> str:
    return f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""


def columns(*bodies: str) -> str:
    """Pieces of a page side by side, where it is wide enough."""
    return f'<div class="columns">{"".join(bodies)}</div>'


def slides(labels: Sequence[str], bodies: Sequence[str]) -> str:
    """Pieces of a page of which one is seen at a time, with a slider; all of them without the
    page's script."""
    shown = "".join(f'<div class="slide">{body}</div>' for body in bodies)
    last = len(bodies) - 1
    names = html.escape(json.dumps(list(labels)))
    slider = (
        f'<label class="slider" hidden><input type="range" min="0" max="{last}" value="{last}" '
        f'data-labels="{names}" aria-label="time">'
        f"<output>{html.escape(labels[-1])}</output></label>"
    )
    return f'<div class="slides">{slider}{shown}</div>'


def command_box(command: str) -> str:
    """A command with a button that copies it."""
    return (
        f'<div class="command"><pre><code>{html.escape(command)}</code></pre><button '
        'type="button" class="copy" hidden>copy</button></div>'
    )


def code_box(source: str) -> str:
    """Source text as it was written."""
    return f'<pre class="source"><code>{html.escape(source)}</code></pre>'


def note(message: str) -> str:
    """A remark in plain text."""
    return f'<p class="note">{html.escape(message)}</p>'
