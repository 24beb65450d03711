"""Formulas as short plain text, and two functions that have a source."""

import re

import jax.numpy as jnp

from cordes.reports.pages.mathml import components, typeset
from cordes.reports.pages.written import from_function

TIMES, APPLY = "<mo>&#x2062;</mo>", "<mo>&#x2061;</mo>"


def shown(function, *arguments):
    """The formula of a function of two coordinates in letters: fractions, powers, roots and
    brackets are marked, so that the structure is seen."""
    return plain(typeset(from_function(function, *(arguments or (components("x", 2),))).value))


def plain(mathml):
    for tag, left, right in (
        ("mfrac", "frac{", "}"),
        ("msup", "^{", "}"),
        ("msub", "", ""),
        ("msqrt", "root{", "}"),
        ("mroot", "root{", "}"),
    ):
        mathml = mathml.replace(f"<{tag}>", left).replace(f"</{tag}>", right)
    mathml = (
        mathml.replace("</mtr>", ";").replace("</mtd>", ",").replace(TIMES, " ").replace(APPLY, "")
    )
    return (
        re.sub(r"<[^>]+>", "", mathml)
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("\xa0", " ")
    )


def wave(z):
    return z**2 + jnp.sin(z)


class Method:
    def f(self, x):
        return x[0]
