"""Whole equations of problems and files: headlines, parts and definitions, and the source where a
formula cannot be read."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formula_text import Method, compare_as_read, plain, wave

import cordes
from cordes.commands.templates import fill_in
from cordes.formulas.written.mathml import constant
from cordes.problems.coefficients import DiagonalPlusRank
from cordes.problems.problem import AbstractProblem
from cordes.problems.written.toml_file import problem_from_toml
from cordes.reports.pages import coefficients
from cordes.reports.pages.equation import equation, shape_of
from cordes.reports.pages.sources import source_text

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
    for line in (
        "Ω=^{(−1,1)2}",
        "A(x)=2,s,;s,2,;",
        "where s=sign(x1 x2)",
        "b(x)=x",
        "f(x)=^{e−x1}",
        "interfaces x1=0,x2=0",
    ):
        assert line in lines
    assert "unused=" not in lines.split("The problem file")[0]
    assert "schema = 1" in found.parts


def test_gallery_equations():
    parts = plain(equation(cordes.gallery["ex4.2-discontinuous"]).parts)
    assert "A(x)=2,sign(x1) sign(x2),;sign(x1) sign(x2),2,;" in parts
    assert "f(x) makes ^{u∗} the solution" in parts
    controlled = equation(cordes.gallery["ex4.5-hjb"])
    assert plain(controlled.headline).startswith("supa∈𝒜(A:^{D2}u+b·∇u−u−f)=0")
    assert "A(x,1)=2+sign(x1) sign(x2),s,;s,1.5+0.5 sign(x1) sign(x2),;" in plain(controlled.parts)
    assert "where s=0.5+0.5 sign(x1) sign(x2)" in plain(controlled.parts)
    square = equation(cordes.gallery["ex5.1-square"])
    assert plain(square.headline) == "ν(∇u)det^{D2}u=μin X, ∇u(X)=Y"
    # One function of two coordinates is written once.
    lines = plain(square.parts)
    assert "μ(x)∝1+4 (y(x1) v(x2)+v(x1) y(x2))+16 (v(x1) v(x2) y(x1) y(x2)−w(x1) w(x2))" in lines
    assert "where v(t)=p(t) q(t)+frac{t32 ^{π2}} s(t)" in lines
    assert lines.count("where p(t)=−frac{^{t2}8 π}+frac{1256 ^{π3}}+frac{132 π}") == 1


def test_structured_matrices_and_constants():
    disk = cordes.Ball([0, 0], 1)
    problem = cordes.Linear(
        disk, DiagonalPlusRank(lambda x: 2 + jnp.sin(x), lambda x: x[:, None]), -1.0
    )
    assert "A(x)=2+sin(x1)+^{x12},x1 x2,;x1 x2,2+sin(x2)+^{x22},;" in plain(equation(problem).parts)
    assert plain(equation(cordes.Linear(disk, 1.0, -1.0)).headline) == "Δu=−1in Ω, u=0on ∂Ω"
    convex = cordes.MongeAmpere(disk, lambda x: jnp.exp(x[0]), g=2.0)
    assert plain(equation(convex).headline) == "det^{D2}u=fin Ω, u convex, u=2on ∂Ω"


def test_what_is_not_understood_is_shown_as_written():
    def f(x):
        total = 0.0
        for k in range(2):
            total = total + jnp.tanh(x[k] < 3)
        return total

    found = equation(
        cordes.Linear(cordes.Box([0, 0], [1, 1]), np.array([[2.0, 0.5], [0.5, 1.0]]), f)
    )
    assert "A=2,0.5,;0.5,1,;" in plain(found.parts)
    assert "total = total + jnp.tanh(x[k] &lt; 3)" in found.parts
    assert "f(x)=" not in plain(found.parts).replace(" ", "")


# Parts that are shown as they were written, for the problems where there are any; ex5.2-surface has
# a table for its density and is slow to make.
AS_WRITTEN = {"smears-suli-2014": 1}


ALIKE = (
    "coupled",
    "ex5.2",
    "ex4.4",
    "smears-suli-2013",
    "constant-3d",
    "turning-3d",
    "transport-disk",
    "transport-ellipses",
)


@pytest.mark.parametrize(
    "name",
    [name for name in cordes.gallery if name.endswith("nonuniform") or not name.startswith(ALIKE)],
)
def test_gallery_is_typeset(name, monkeypatch):
    """Each formula of these pages is read from its MathML and compared with the function in the
    domain; what is not shown as a formula is shown as source."""
    checked, seen = [], []
    verify, looks_of = coefficients.verify, coefficients.FormulaReader._looks
    monkeypatch.setattr(coefficients, "verify", lambda *given: (seen.append(given), verify(*given)))

    def looked(self, written):
        looks = looks_of(self, written)
        definitions = [
            re.split("<mo>[=≈]</mo>", line.removeprefix(coefficients.WHERE), maxsplit=1)
            for line in looks.where
        ]
        same, *given = seen[-1]
        assert same is written
        compare_as_read(written, looks.names, definitions, *given)
        checked.append(written)
        return looks

    monkeypatch.setattr(coefficients.FormulaReader, "_looks", looked)
    parts = equation(cordes.gallery[name]).parts
    assert parts.count("as written:") == AS_WRITTEN.get(name, 0)
    assert checked or "(x)" not in plain(parts)


def test_rounded_numbers_say_so():
    assert plain(constant(1 / 3).mathml) == "frac{13}"
    assert plain(constant(np.pi**2).mathml) == "^{π2}"
    assert plain(constant(0.1 + 0.2).mathml) == "0.3"
    matrix = np.array([[1, 0.99999999], [0.99999999, 1]])
    assert "A=1,0.99999999,;0.99999999,1,;" in plain(
        equation(cordes.Linear(BOX, matrix, -1.0)).parts
    )
    found = equation(cordes.Linear(BOX, 1.0, 0.12345678901234))
    assert "Δu=f" in plain(found.headline)
    assert "f≈0.123457" in plain(found.parts)


BOX = cordes.Box([0, 0], [1, 1])


class Steered(cordes.HJB):
    pass


class Convex(cordes.MongeAmpere):
    pass


def operator(k):
    def value(x):
        return k * x[0]

    return value


def as_function(k):
    return lambda x: k * x[0]


def test_headlines():
    # A function of the user may be called like one of the package.
    assert "f(x)=2 x1" in plain(equation(cordes.Linear(BOX, 1.0, as_function(2.0))).parts)

    steered = Steered(BOX, [-1.0, 1.0], 1.0, lambda x, a: -1 + a * x[0])
    assert plain(equation(steered).headline).startswith("supa∈𝒜(A:^{D2}u−f)=0")
    assert plain(equation(Convex(BOX, 1.0)).headline).startswith("det^{D2}u=1")
    assert plain(
        equation(cordes.HJB(BOX, [0.0, 1.0], lambda x, a: (2 + a) * jnp.eye(2), -1.0)).headline
    ).startswith("supa∈𝒜(A:^{D2}u+1)=0")
    assert "f(x)=3 x1" in plain(equation(cordes.Linear(BOX, 1.0, operator(3.0))).parts)
    transport = cordes.Transport(
        BOX, 4.0, cordes.Box([0, 0], [2, 1]), lambda y: 1 + y[0], normalise=True
    )
    parts = plain(equation(transport).parts)
    assert "μ uniform" in parts
    assert "ν(x)∝1+x1" in parts


def test_a_continuum_of_controls_is_called_one():
    parts = plain(equation(cordes.gallery["smears-suli-2014"]).parts)
    assert "𝒜 is a continuum of controls; the best is given in closed form" in parts


def test_the_template_keeps_its_definition_and_the_unknown_apart():
    text = fill_in("hjb", ".toml", "t")
    parts = plain(equation(problem_from_toml(text)).parts)
    assert "where u~=cos(x1) cos(x2)" in parts
    assert "g(x)=u~" in parts


def test_a_kind_without_an_equation_is_named():
    with pytest.raises(NotImplementedError, match="the equation of dict is shown"):
        shape_of({})  # pyright: ignore[reportArgumentType]
    for kind in AbstractProblem.__subclasses__():
        if kind.__module__.startswith("cordes."):
            assert shape_of.dispatch(kind) is not shape_of.dispatch(object)


def test_length_in_a_file():
    problem = problem_from_toml(SQUARE.replace("exp(-x1)", "r**2 + 1"))
    assert "f(x)=^{|x|2}+1" in plain(equation(problem).parts)


def test_two_coefficients_with_one_name():
    def f(x):
        s = x[1] ** 2 - 3
        return s * x[0]

    def A(x):
        s = jnp.sin(x[0]) + 1
        return (2 + s) * jnp.eye(2)

    parts = plain(equation(cordes.Linear(BOX, A, f)).parts)
    assert "A(x)=(2+sin(x1)+1) I" in parts
    assert "f(x)=(^{x22}−3) x1" in parts


def test_domains_are_stated_in_full():
    def lines(domain):
        return plain(equation(cordes.Linear(domain, 1.0, -1.0)).parts)

    assert "Ω={|x−e1|<1}" in lines(cordes.Ball([1.0] + [0.0] * 9, 1))
    assert "Ω={|x−(1,0)|<1}" in lines(cordes.Ball([1, 0], 1))
    assert "1.5, 2.5, 3.5, 4.5" in lines(cordes.Ball([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5], 1))
    assert "Ω={|^{2,0.5,;0,1,;−1}(x−(1,0))|<1}" in lines(
        cordes.Ellipsoid([1, 0], [[2, 0.5], [0, 1]])
    )
    assert "Ω={^{(frac{x1−12})2}+^{x22}<1}" in lines(cordes.Ellipsoid([1, 0], [2, 1]))


def test_sources_of_methods_and_gradients():
    assert "def f(self, x):" in (source_text(Method().f) or "")
    assert (source_text(jax.grad(wave)) or "").startswith("# jax.grad of\ndef wave(z):")
    parts = equation(cordes.Linear(BOX, 1.0, Method().f)).parts
    assert "def f(self, x):" in parts
    assert "f(x)=x1" in plain(parts)
