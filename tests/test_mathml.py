"""Formulas: what users write as MathML, entry by entry, and nothing where it cannot be read."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.problems.files import problem_from_toml
from cordes.problems.structured import DiagonalPlusRank
from cordes.reports.html.equation import equation
from cordes.reports.html.mathml import Untypeset, array, components, constant, formula, node, symbol, typeset
from cordes.reports.html.written import from_function, from_text, source_text

X1, X2 = "<msub><mi>x</mi><mn>1</mn></msub>", "<msub><mi>x</mi><mn>2</mn></msub>"
TIMES, APPLY = "<mo>&#x2062;</mo>", "<mo>&#x2061;</mo>"
SCALE = 0.25
WEIGHTS = np.array([1.0, 2.0])


def shown(function, *arguments):
    """The formula of a function of two coordinates in letters: fractions, powers, roots and brackets are marked, so that the structure is seen."""
    return plain(typeset(from_function(function, *(arguments or (components("x", 2),))).value))


def plain(mathml):
    for tag, left, right in (("mfrac", "frac{", "}"), ("msup", "^{", "}"), ("msub", "", ""), ("msqrt", "root{", "}"), ("mroot", "root{", "}")):
        mathml = mathml.replace(f"<{tag}>", left).replace(f"</{tag}>", right)
    mathml = mathml.replace("</mtr>", ";").replace("</mtd>", ",").replace(TIMES, " ").replace(APPLY, "")
    return re.sub(r"<[^>]+>", "", mathml).replace("&lt;", "<").replace("&gt;", ">").replace("\xa0", " ")


def test_exact_markup():
    assert typeset(from_function(lambda x: 2 * x[0], components("x", 2)).value) == f"<mn>2</mn>{TIMES}{X1}"
    assert typeset(from_function(lambda x: jnp.sin(x[1]), components("x", 2)).value) == f"<mi>sin</mi>{APPLY}<mrow><mo>(</mo>{X2}<mo>)</mo></mrow>"
    matrix = from_function(lambda x: jnp.array([[2, x[0]], [x[0], 1]]), components("x", 2)).value
    rows = f"<mtr><mtd><mn>2</mn></mtd><mtd>{X1}</mtd></mtr><mtr><mtd>{X1}</mtd><mtd><mn>1</mn></mtd></mtr>"
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
    assert {plain(name): plain(value.mathml) for name, value in found.definitions.items()} == {"s": "sign(x1 x2)", "bump(t)": "t ^{e1−|t|}"}


def test_two_functions_on_one_line_are_told_apart():
    first, second = (lambda x: x[0] + 1), (lambda x: x[1] + 2)
    assert (shown(first), shown(second)) == ("x1+1", "x2+2")
    assert source_text(second) == "lambda x: x[1] + 2"


def wave(z):
    return z**2 + jnp.sin(z)


def test_derivatives_get_primes_and_are_never_taken_for_the_function():
    slope = jax.grad(wave)
    found = from_function(lambda x: slope(x[0]) * wave(x[1]), components("x", 2))
    assert plain(typeset(found.value)) == "^{wave′}(x1) wave(x2)"
    assert [plain(name) for name in found.definitions] == ["wave(z)"]
    # The gradient of a function of the point is no function of a number: its own value must not appear.
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
    assert plain(from_text("2 + sin(pi*x1)*abs(x2)", names).value.mathml) == "2+sin(π x1) |x2|"
    assert plain(from_text("where(x1 < 0 and x2 >= 1, s, max(x1, x2, 0))", names).value.mathml) == "s,if x1<0 and x2≥1,;max(x1,x2,0),otherwise,;"
    assert plain(from_text("norm(x1, x2)", names).value.mathml) == "|x|"
    with pytest.raises(Untypeset):
        from_text("y + 1", names)


def test_numbers():
    assert [plain(constant(value).mathml) for value in (2.0, -0.5, 1e-9, 3.5e12, np.pi, 0.0, -0.0)] == [
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


# Whole equations ----------------------------------------------------------------------------------------------------------------------------------------

SQUARE = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [-1, -1]
upper = [1, 1]
[definitions]
unused = "x1"
s = "sign(x1*x2)"
[equation]
A = [["2", "s"], ["s", "2"]]
b = ["x1", "x2"]
c = 3
f = "exp(-x1)"
interfaces = ["x1", "x2"]
"""


def test_problem_of_a_file():
    found = equation(problem_from_toml(SQUARE))
    assert plain(found.headline) == "A:^{D2}u+b·∇u−3 u=fin Ω, u=0on ∂Ω"
    lines = plain(found.parts)
    for line in ("Ω=^{(−1,1)2}", "A(x)=2,s,;s,2,;", "where s=sign(x1 x2)", "b(x)=x", "f(x)=^{e−x1}", "interfaces x1=0,x2=0"):
        assert line in lines
    assert "unused=" not in lines.split("The problem file")[0]
    assert "schema = 1" in found.parts


def test_gallery_equations():
    parts = plain(equation(cordes.gallery["ex4.2-discontinuous"]).parts)
    assert "A(x)=2,s,;s,2,;" in parts
    assert "where s=sign(x1) sign(x2)" in parts
    assert "f(x) makes ^{u∗} the solution" in parts
    controlled = equation(cordes.gallery["ex4.5-hjb"])
    assert plain(controlled.headline).startswith("supa∈𝒜(A:^{D2}u+b·∇u−u−f)=0")
    assert "A(x,1)=2+sign(x1) sign(x2),0.5+0.5 sign(x1) sign(x2),;0.5+0.5 sign(x1) sign(x2),1.5+0.5 sign(x1) sign(x2),;" in plain(controlled.parts)
    square = equation(cordes.gallery["ex5.1-square"])
    assert plain(square.headline) == "ν(∇u)det^{D2}u=μin X, ∇u(X)=Y"
    assert "μ(x)∝1+4 (q2 r+q r2)+16 (q r q2 r2−^{q12} ^{r12})" in plain(square.parts)
    assert "where q1=^{wave′}(x1)" in plain(square.parts)


def test_structured_matrices_and_constants():
    disk = cordes.Ball([0, 0], 1)
    problem = cordes.Linear(disk, DiagonalPlusRank(lambda x: 2 + jnp.sin(x), lambda x: x[:, None]), -1.0)
    assert "A(x)=2+sin(x1)+^{x12},x1 x2,;x2 x1,2+sin(x2)+^{x22},;" in plain(equation(problem).parts)
    assert plain(equation(cordes.Linear(disk, 1.0, -1.0)).headline) == "Δu=−1in Ω, u=0on ∂Ω"
    convex = cordes.MongeAmpere(disk, lambda x: jnp.exp(x[0]), g=2.0)
    assert plain(equation(convex).headline) == "det^{D2}u=fin Ω, u convex, u=2on ∂Ω"


def test_what_is_not_understood_is_shown_as_written():
    def f(x):
        total = 0.0
        for k in range(2):
            total = total + jnp.tanh(x[k] < 3)
        return total

    found = equation(cordes.Linear(cordes.Box([0, 0], [1, 1]), np.array([[2.0, 0.5], [0.5, 1.0]]), f))
    assert "A=2,0.5,;0.5,1,;" in plain(found.parts)
    assert "total = total + jnp.tanh(x[k] &lt; 3)" in found.parts
    assert "f(x)=" not in plain(found.parts).replace(" ", "")
