"""A hook of MkDocs: formulas are turned into MathML when the site is built, so that pages show them
without scripts and without a network."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What the extension pymdownx.arithmatex leaves of $…$ and $$…$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


# Bars and slashes belong to what they stand beside; browsers set them apart as operators.
TIGHT = re.compile(r"<mo[^>]*>(?=(?:&#x0007C;|&#x02016;|&#x0002F;|[|‖∥/])</mo>)")


def on_page_content(content: str, **_: Any) -> str:
    """Every formula of a page as MathML."""
    return FORMULA.sub(_formula, content)


def _formula(match: re.Match[str]) -> str:
    block = match[2] == "["
    formula = convert(html.unescape(match[3]).strip(), display="block" if block else "inline")
    formula = TIGHT.sub(lambda mark: mark[0][:-1] + ' lspace="0" rspace="0">', formula)
    return f'<div class="formula">{formula}</div>' if block else formula
