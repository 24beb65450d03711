"""Formulas as short plain text, and two functions that have a source."""

import re

import jax
import jax.numpy as jnp
import numpy as np
from formula_reading import Reading

from cordes.formulas.written.mathml import letter, mathml, typeset
from cordes.formulas.written.writing import verify, write

TIMES, APPLY = "<mo>&#x2062;</mo>", "<mo>&#x2061;</mo>"
# How far a formula may lie from its function, as a share of the largest value.
EXACT = 1e-9


def shown(function, names=("x1", "x2"), point=None):
    """The formula of a function in letters: fractions, powers, roots and brackets are marked, so
    that the structure is seen. It is compared with the function, as terms and as it is read."""
    written = write(function, names, point)
    samples = np.random.default_rng(7).uniform(-1.5, 1.5, (24, len(names)))
    verify(written, names, samples, function)
    compare_as_read(written, {}, [], names, samples, function)
    return plain(typeset(written.entries))


def compare_as_read(written, looks, definitions, names, samples, function):
    """Each entry of a formula, read from its MathML, has the values of the function. `looks` is the
    MathML of named terms, `definitions` pairs of names and formulas."""
    reading = Reading()
    for name, column in zip(names, samples.T, strict=True):
        reading.meaning(letter(name), column)
    point = [column for name, column in zip(names, samples.T, strict=True) if name[0] == "x"]
    reading.meaning("<mi>x</mi>", np.linalg.norm(point, axis=0))
    expected = np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(samples)), dtype=float)
    with np.errstate(all="ignore"):
        for left, right in definitions:
            reading.define(left, right)
        for place, entry in np.ndenumerate(written.entries):
            right = expected[(slice(None), *place)]
            good = np.isfinite(right)
            found = np.broadcast_to(reading.value(mathml(entry, looks)), right.shape)
            scale = np.max(np.abs(right[good]), initial=1e-300)
            np.testing.assert_allclose(found[good], right[good], rtol=0, atol=EXACT * scale + 1e-14)


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
