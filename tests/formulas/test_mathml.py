"""Formulas: what users write as MathML, entry by entry, and read back."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formula_reading import MisreadError, Reading
from formula_text import APPLY, TIMES, plain, shown, wave

from cordes.formulas.terms import Unwritable, add, multiply, number, symbol
from cordes.formulas.written.mathml import constant, formula, typeset
from cordes.formulas.written.toml import parse
from cordes.formulas.written.writing import Written, verify, write
from cordes.reports.pages.sources import source_text

X1, X2 = "<msub><mi>x</mi><mn>1</mn></msub>", "<msub><mi>x</mi><mn>2</mn></msub>"


XY = ("x1", "x2")
SCALE = 0.25
WEIGHTS = np.array([1.0, 2.0])


def test_exact_markup():
    assert typeset(write(lambda x: 2 * x[0], XY).entries) == f"<mn>2</mn>{TIMES}{X1}"
    assert (
        typeset(write(lambda x: jnp.sin(x[1]), XY).entries)
        == f"<mi>sin</mi>{APPLY}<mrow><mo>(</mo>{X2}<mo>)</mo></mrow>"
    )
    matrix = write(lambda x: jnp.array([[2, x[0]], [x[0], 1]]), XY).entries
    rows = (
        f"<mtr><mtd><mn>2</mn></mtd><mtd>{X1}</mtd></mtr>"
        f"<mtr><mtd>{X1}</mtd><mtd><mn>1</mn></mtd></mtr>"
    )
    assert typeset(matrix) == f'<mtable class="matrix">{rows}</mtable>'
    assert formula(X1) == f'<math displaystyle="true"><mrow>{X1}</mrow></math>'


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x[0] + x[1] - 1, "x1+x2−1"),
        (lambda x: (x[0] - x[1]) * (x[0] + 1), "(x1−x2) (x1+1)"),
        (lambda x: x[0] - (x[1] - 1), "x1−(x2−1)"),
        (lambda x: -(x[0] + 1), "−(x1+1)"),
        (lambda x: x[0] * 0.5, "0.5 x1"),
        (lambda x: 1 * x[0] + 0 * x[1], "x1"),
        (lambda x: x[0] / 2 / x[1], "frac{frac{x12}x2}"),
        (lambda x: x[0] ** 2 + (x[0] + 1) ** (8 / 3), "^{x12}+^{(x1+1)frac{83}}"),
        (lambda x: jnp.sin(x[0]) ** 2, "^{sin2}(x1)"),
        (lambda x: jnp.maximum(x[0], 0) ** 2, "^{(max(x1,0))2}"),
        (lambda x: jnp.abs(x[1]) ** 0.5 + jnp.sign(x[0] * x[1]), "^{|x2|0.5}+sign(x1 x2)"),
        (lambda x: jnp.sqrt(x[0]) + jnp.cbrt(x[1]), "root{x1}+root{x23}"),
        (lambda x: jnp.exp(-(x[0] ** 2)) * jnp.pi, "π ^{e−^{x12}}"),
        (lambda x: jnp.linalg.norm(x) + jnp.dot(x, x) + jnp.sum(x**2), "|x|+^{|x|2}+^{|x|2}"),
        (lambda x: jnp.where(x[0] > 0, 2.0, x[1]), "2,if x1>0,;x2,otherwise,;"),
        (lambda x: SCALE * x[0] + WEIGHTS @ x, "0.25 x1+x1+2 x2"),
        (lambda x: jnp.array([x[1], -x[0]]), "x2,;−x1,;"),
        (lambda x: 3 * jnp.eye(2) + jnp.outer(x, x), "3+^{x12},x1 x2,;x1 x2,3+^{x22},;"),
        (lambda x: (1 + x[0] ** 2) * jnp.eye(2), "(1+^{x12}) I"),
        (lambda x: jnp.array([3.0 * entry for entry in x]), "3 x1,;3 x2,;"),
        (lambda x: 1e-7 * x[0], "^{10−7} x1"),
    ],
)
def test_functions_are_read(function, expected):
    assert shown(function) == expected


def test_names_and_functions_inside_functions_are_followed():
    def A(x):
        """Two names and a function of a number."""

        def bump(t):
            return t * jnp.exp(1 - jnp.abs(t))

        s = jnp.sign(x[0] * x[1])
        return jnp.array([[2, s], [s, bump(x[0])]])

    assert shown(A) == "2,sign(x1 x2),;sign(x1 x2),x1 ^{e1−|x1|},;"


def test_two_functions_on_one_line_are_told_apart():
    first, second = (lambda x: x[0] + 1), (lambda x: x[1] + 2)
    assert (shown(first), shown(second)) == ("x1+1", "x2+2")
    assert source_text(second) == "lambda x: x[1] + 2"


def test_derivatives_are_never_taken_for_the_function():
    slope = jax.grad(wave)
    assert shown(lambda x: slope(x[0]) * wave(x[1])) == "(cos(x1)+2 x1) (^{x22}+sin(x2))"
    assert shown(jax.grad(lambda x: x[0] ** 2 * x[1])) == "2 x2 x1,;^{x12},;"
    assert shown(jax.jit(lambda x: x[0] + 5)) == "x1+5"


def test_what_cannot_be_read_is_refused():
    for function in (
        lambda x: jnp.fft.fft(x)[0],
        np.sin,
        lambda x: x[0] if x[1] > 0 else 1.0,
    ):
        with pytest.raises((Unwritable, TypeError)):
            write(function, XY)


def test_loops_and_choices_are_read():
    def loop(x):
        total = 0
        for k in range(2):
            total = total + x[k]
        return total

    assert shown(loop) == "x1+x2"
    assert (
        shown(lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x[1]))
        == "sin(x2),if x1>0,;cos(x2),otherwise,;"
    )
    assert shown(lambda x: jax.lax.fori_loop(0, 3, lambda _, t: t * x[0], x[1])) == "x2 ^{x13}"


def test_expressions_of_files_are_read():
    def read(text):
        return shown(parse(text, 2))

    assert read("2 + sin(pi*x1)*abs(x2)") == "2+sin(π x1) |x2|"
    assert (
        read("where(x1 < 0 and x2 >= 1, x1*x2, max(x1, x2, 0))")
        == "x1 x2,if x1<0 and x2≥1,;max(x1,x2,0),otherwise,;"
    )
    assert read("norm(x1, x2)") == read("r") == "|x|"


def test_numbers():
    assert [
        plain(constant(value).mathml) for value in (2.0, -0.5, 1e-9, 3.5e12, np.pi, 0.0, -0.0)
    ] == [
        "2",
        "−0.5",
        "^{10−9}",
        "3.5·^{1012}",
        "π",
        "0",
        "0",
    ]
    assert plain(typeset(np.vectorize(number, otypes=[object])(np.eye(2)))) == "I"
    with pytest.raises(Unwritable):
        constant(float("nan"))
    with pytest.raises(Unwritable):
        number(float("nan"))


# Formulas read back -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mathml", "expected"),
    [
        ("<mn>2</mn><mo>+</mo><mn>3</mn><mo>·</mo><mn>4</mn>", 14),
        (
            "<mrow><mn>2</mn><mo>+</mo><mn>3</mn></mrow><mo>·</mo><mn>4</mn>",
            14,
        ),  # A group that nobody sees.
        (f"<mo>−</mo><msup><mn>3</mn><mn>2</mn></msup><mo>−</mo>{constant(-2.0).within(2)}", -7),
        (
            f"<msup><mi>cos</mi><mn>2</mn></msup>{APPLY}<mo>(</mo><mn>1</mn><mo>)</mo>",
            math.cos(1) ** 2,
        ),
        (f"<mi>q</mi>{APPLY}<mo>(</mo><mn>3</mn><mo>)</mo>", 10),
        (f"<msup><mi>q</mi><mo>′</mo></msup>{APPLY}<mo>(</mo><mn>3</mn><mo>)</mo>", 6),
        (
            "<mo>|</mo><mn>1</mn><mo>−</mo><mn>3</mn><mo>|</mo><mo>·</mo><mo>|</mo><mi>π</mi><mo>|</mo>",
            2 * math.pi,
        ),
        (
            "<mfrac><mn>1</mn><mn>4</mn></mfrac><mo>+</mo><msqrt><mn>9</mn></msqrt><mo>+</mo><mroot><mn>8</mn><mn>3</mn></mroot>",
            5.25,
        ),
    ],
)
def test_formulas_are_read_as_a_person_does(mathml, expected):
    reading = Reading()
    reading.define(
        f"<mi>q</mi>{APPLY}<mo>(</mo><mi>t</mi><mo>)</mo>",
        "<msup><mi>t</mi><mn>2</mn></msup><mo>+</mo><mn>1</mn>",
    )
    assert reading.value(mathml) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "mathml",
    [
        f"<mn>5</mn>{TIMES}<msup><mn>2</mn><mn>3</mn></msup>",
        f"<mn>3</mn>{TIMES}<mfrac><mn>1</mn><mn>2</mn></mfrac>",
        f"<msup><mi>sin</mi><mrow><mo>−</mo><mn>1</mn></mrow></msup>{APPLY}<mo>(</mo><mn>1</mn><mo>)</mo>",
        "<mn>1</mn><mo>−</mo><mo>−</mo><mn>1</mn>",
        "<msup><msup><mn>2</mn><mn>3</mn></msup><mn>2</mn></msup>",
        '<mtable class="cases"/><mo>+</mo><mn>1</mn>',
        "<mi>y</mi>",
    ],
)
def test_formulas_that_mislead_are_refused(mathml):
    with pytest.raises(MisreadError):
        Reading().value(mathml)


def test_a_formula_of_another_function_is_refused():
    x1, x2 = symbol("x1"), symbol("x2")
    samples = np.random.default_rng(0).uniform(-1, 1, (24, 2))

    def written(*terms):
        entries = np.array(terms if len(terms) > 1 else terms[0], dtype=object)
        return Written(entries, {})

    sum_ = add(x1, multiply(number(2), x2))
    verify(written(sum_), XY, samples, lambda x: x[0] + 2 * x[1])
    for formula_, function in (
        (written(sum_), lambda x: x[0] + 2.00001 * x[1]),
        (written(x1, x2), lambda x: x[0]),
        (written(x1), lambda x: x[0] * jnp.nan),
    ):
        with pytest.raises(Unwritable):
            verify(formula_, XY, samples, function)
    with pytest.raises(KeyError):
        verify(written(symbol("s")), XY, samples, lambda x: x[0])


def test_two_meanings_of_a_name_are_refused():
    reading = Reading()
    reading.meaning(X1, 2.0)
    with pytest.raises(MisreadError):
        reading.define(X1, X2)
