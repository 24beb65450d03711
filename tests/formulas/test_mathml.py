"""Formulas: what users write as MathML, entry by entry, and read back."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formula_text import APPLY, TIMES, plain, shown, wave

from cordes.reports.pages.mathml import (
    Untypeset,
    array,
    components,
    constant,
    formula,
    node,
    symbol,
    typeset,
)
from cordes.reports.pages.reading import Reading, verify
from cordes.reports.pages.sources import source_text
from cordes.reports.pages.written import from_function, from_text

X1, X2 = "<msub><mi>x</mi><mn>1</mn></msub>", "<msub><mi>x</mi><mn>2</mn></msub>"


SCALE = 0.25
WEIGHTS = np.array([1.0, 2.0])


def test_exact_markup():
    assert (
        typeset(from_function(lambda x: 2 * x[0], components("x", 2)).value)
        == f"<mn>2</mn>{TIMES}{X1}"
    )
    assert (
        typeset(from_function(lambda x: jnp.sin(x[1]), components("x", 2)).value)
        == f"<mi>sin</mi>{APPLY}<mrow><mo>(</mo>{X2}<mo>)</mo></mrow>"
    )
    matrix = from_function(lambda x: jnp.array([[2, x[0]], [x[0], 1]]), components("x", 2)).value
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
        (lambda x: jnp.exp(-(x[0] ** 2)) * jnp.pi, "^{e−^{x12}} π"),
        (lambda x: jnp.linalg.norm(x) + jnp.dot(x, x) + jnp.sum(x**2), "|x|+^{|x|2}+^{x12}+^{x22}"),
        (lambda x: jnp.where(x[0] > 0, 2.0, x[1]), "2,if x1>0,;x2,otherwise,;"),
        (lambda x: SCALE * x[0] + WEIGHTS @ x, "0.25 x1+x1+2 x2"),
        (lambda x: jnp.array([x[1], -x[0]]), "x2,;−x1,;"),
        (lambda x: 3 * jnp.eye(2) + jnp.outer(x, x), "3+^{x12},x1 x2,;x2 x1,3+^{x22},;"),
        (lambda x: (1 + x[0] ** 2) * jnp.eye(2), "(1+^{x12}) I"),
        (lambda x: jnp.array([3.0 * entry for entry in x]), "3 x1,;3 x2,;"),
        (lambda x: 1e-7 * x[0], "^{10−7} x1"),
    ],
)
def test_functions_are_read(function, expected):
    assert shown(function) == expected


def test_names_inside_functions_are_kept():
    def A(x):
        """Two names and a function of a number."""

        def bump(t):
            return t * jnp.exp(1 - jnp.abs(t))

        s = jnp.sign(x[0] * x[1])
        return jnp.array([[2, s], [s, bump(x[0])]])

    found = from_function(A, components("x", 2))
    assert plain(typeset(found.value)) == "2,s,;s,bump(x1),;"
    assert {plain(name): plain(value.mathml) for name, value in found.definitions.items()} == {
        "s": "sign(x1 x2)",
        "bump(t)": "t ^{e1−|t|}",
    }


def test_two_functions_on_one_line_are_told_apart():
    first, second = (lambda x: x[0] + 1), (lambda x: x[1] + 2)
    assert (shown(first), shown(second)) == ("x1+1", "x2+2")
    assert source_text(second) == "lambda x: x[1] + 2"


def test_derivatives_get_primes_and_are_never_taken_for_the_function():
    slope = jax.grad(wave)
    found = from_function(lambda x: slope(x[0]) * wave(x[1]), components("x", 2))
    assert plain(typeset(found.value)) == "^{wave′}(x1) wave(x2)"
    assert [plain(name) for name in found.definitions] == ["wave(z)"]
    # The gradient of a function of the point is no function of a number: its own value must not
    # appear.
    with pytest.raises(Untypeset):
        from_function(jax.grad(lambda x: x[0] ** 2 * x[1]), components("x", 2))
    assert shown(jax.jit(lambda x: x[0] + 5)) == "x1+5"


def test_what_cannot_be_read_is_refused():
    def loop(x):
        total = 0
        for k in range(2):
            total = total + x[k]
        return total

    for function in (
        loop,
        lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x[1]),
        lambda x: jnp.fft.fft(x)[0],
        np.sin,
        lambda x: x[0] if x[1] > 0 else 1.0,
    ):
        with pytest.raises((Untypeset, TypeError)):
            from_function(function, components("x", 2))


def test_expressions_of_files_are_read():
    names = {"x1": symbol("x1"), "x2": symbol("x2"), "pi": symbol("pi"), "s": symbol("s")}
    assert plain(from_text("2 + sin(pi*x1)*abs(x2)", names).mathml) == "2+sin(π x1) |x2|"
    assert (
        plain(from_text("where(x1 < 0 and x2 >= 1, s, max(x1, x2, 0))", names).mathml)
        == "s,if x1<0 and x2≥1,;max(x1,x2,0),otherwise,;"
    )
    assert plain(from_text("norm(x1, x2)", names).mathml) == "|x|"
    with pytest.raises(Untypeset):
        from_text("y + 1", names)


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
    assert plain(typeset(array(np.array([[1.0, 0.0], [0.0, 1.0]])))) == "I"
    with pytest.raises(Untypeset):
        constant(float("nan"))
    with pytest.raises(Untypeset):
        node("text")


# Formulas read back -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mathml", "expected"),
    [
        ("<mn>2</mn><mo>+</mo><mn>3</mn><mo>·</mo><mn>4</mn>", 14),
        (
            "<mrow><mn>2</mn><mo>+</mo><mn>3</mn></mrow><mo>·</mo><mn>4</mn>",
            14,
        ),  # A group that nobody sees.
        (f"<mo>−</mo><msup><mn>3</mn><mn>2</mn></msup><mo>−</mo>{node(-2.0).within(2)}", -7),
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
    with pytest.raises(Untypeset):
        Reading().value(mathml)


def test_a_formula_of_another_function_is_refused():
    x, samples = components("x", 2), [np.random.default_rng(0).uniform(-1, 1, (24, 2))]
    verify(x[0] + 2 * x[1], {}, [x], samples, lambda x: x[0] + 2 * x[1])
    for formula_, function in (
        (x[0] + 2 * x[1], lambda x: x[0] + 2.00001 * x[1]),
        (x, lambda x: x[0]),
        (symbol("s"), lambda x: x[0]),
        (x[0], lambda x: x[0] * jnp.nan),
    ):
        with pytest.raises(Untypeset):
            verify(formula_, {}, [x], samples, function)
    with pytest.raises(Untypeset):
        verify(x[0], {x[0].mathml: x[1]}, [x], samples, lambda x: x[1])
