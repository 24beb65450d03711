"""Problem files of kind "hjb" and "monge-ampere": what is read must mean what it says, what is
refused must be refused with its place and a remedy."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CoefficientError, FileError, OptionError
from cordes.formulas.written.toml import Expression, is_reserved, parse
from cordes.jet import Jet, jet_of
from cordes.problems.written.files import load_problem
from cordes.problems.written.toml_file import problem_from_toml

PAGE = Path(__file__).parents[2] / "docs" / "toml.md"
SQUARE = 'type = "box"\nlower = [0, 0]\nupper = [1, 1]'


def toml(equation, kind="hjb", definitions="", domain=SQUARE):
    return (
        "schema = 1\nkind = "
        f'"{kind}"\n[domain]\n{domain}\n[equation]\n{equation}\n[definitions]\n{definitions}\n'
    )


def documented():
    """The two complete examples of the documentation; the first two blocks there belong to linear
    equations."""
    blocks = [
        block.split("```")[0] for block in PAGE.read_text(encoding="utf-8").split("```toml\n")[1:]
    ]
    return {
        block.split('kind = "')[1].split('"')[0]: block
        for block in blocks
        if block.startswith("schema")
    }


def test_the_documented_control_problem_is_what_it_says():
    problem = problem_from_toml(documented()["hjb"], "page.toml")
    assert isinstance(problem, cordes.HJB)
    assert problem.sense == "inf"
    angles, drifts = np.pi * np.arange(8) / 8, [-1, 0, 1]
    np.testing.assert_allclose(
        problem.controls, [[angle, drift] for angle in angles for drift in drifts], atol=1e-15
    )
    x, a = jnp.array([0.2, -0.5]), jnp.array([0.7, -1.0])
    cosine, sine = math.cos(0.7), math.sin(0.7)
    rotation = np.array([[cosine, -sine], [sine, cosine]])
    np.testing.assert_allclose(problem.A(x, a), rotation @ np.diag([3, 1]) @ rotation.T, atol=1e-15)
    np.testing.assert_array_equal(problem.b(x, a), [-1.0, 0.0])
    assert [float(problem.c(x, a)), float(problem.f(x, a)), float(problem.g(x))] == [
        1.0,
        -2.25,
        0.0,
    ]
    # The infimum at one state, by a loop over the controls.
    jet = Jet(jnp.asarray(0.3), jnp.array([0.1, -0.2]), jnp.array([[0.4, 1.0], [1.0, -0.8]]))
    values = []
    for angle, drift in problem.controls:
        A = np.array(
            [
                [2 + math.cos(2 * angle), math.sin(2 * angle)],
                [math.sin(2 * angle), 2 - math.cos(2 * angle)],
            ]
        )
        values.append(np.sum(A * np.asarray(jet.hessian)) + drift * 0.1 - 0.3 + 1 + 0.25 + drift**2)
    assert float(problem.residual(x, jet)) == pytest.approx(min(values), rel=1e-13)


def test_the_documented_determinant_is_the_one_of_the_gallery():
    problem, same = (
        problem_from_toml(documented()["monge-ampere"]),
        cordes.gallery["ex4.6-monge-ampere"],
    )
    assert isinstance(problem, cordes.MongeAmpere)
    points = problem.domain.interior_points(50, seed=1)
    np.testing.assert_array_equal(problem.domain.bounding_box, same.domain.bounding_box)
    for name in ("f", "g", "exact"):
        here, there = (np.asarray(jax.vmap(getattr(one, name))(points)) for one in (problem, same))
        np.testing.assert_allclose(here, there, rtol=1e-14)
    residual = jax.jit(jax.vmap(lambda x: problem.residual(x, jet_of(problem.exact)(x))))(points)
    assert np.max(np.abs(residual)) < 1e-12


def test_a_file_and_its_text_bring_the_same_problem(tmp_path):
    path = tmp_path / "exit.toml"
    path.write_text(documented()["hjb"], encoding="utf-8")
    problem = load_problem(path)
    assert problem.name == "exit"
    again = problem_from_toml(problem.source["toml"], "other")
    np.testing.assert_array_equal(again.controls, problem.controls)
    x, a = jnp.array([0.3, 0.1]), jnp.array([0.2, 1.0])
    np.testing.assert_array_equal(again.A(x, a), problem.A(x, a))


@pytest.mark.parametrize(
    ("controls", "expected"),
    [
        ('[0, 1, "pi"]', [0, 1, math.pi]),
        ('{from = 1, to = "1/2", count = 3}', [1, 0.75, 0.5]),
        ("[[0, 1], [2, 3], [4, 5]]", [[0, 1], [2, 3], [4, 5]]),
        ("[[0], [1]]", [[0], [1]]),
        ("[{from = 0, to = 1, count = 2}]", [[0], [1]]),
        (
            "[{from = 0, to = 1, count = 2}, {from = 5, to = 7, count = 3}]",
            [[0, 5], [0, 6], [0, 7], [1, 5], [1, 6], [1, 7]],
        ),
    ],
)
def test_controls(controls, expected):
    problem = problem_from_toml(toml(f"controls = {controls}\nA = 1\nf = 1"))
    np.testing.assert_allclose(problem.controls, expected, rtol=1e-15)
    assert problem.controls.shape == np.shape(expected)
    name = "a" if np.ndim(expected) == 1 else f"a{np.shape(expected)[1]}"
    problem = problem_from_toml(
        toml(f'controls = {controls}\nA = 1\nf = "k"', definitions=f'k = "10*{name} + x2"')
    )
    for a in problem.controls:
        assert float(problem.f(jnp.array([0.5, 0.25]), jnp.asarray(a))) == pytest.approx(
            10 * np.ravel(a)[-1] + 0.25
        )


def test_constants_stay_constants_and_all_keys_are_read():
    text = toml(
        (
            'controls = [0, 1]\nA = "1 + k*a"\nb = [0, "0"]\nc = "k*a"\nf = "x1*a"\ng = "1 + '
            'x1*s"\nexact = 2\ninterfaces = ["x1 - 1/2"]\nsense = "sup"'
        ),
        definitions='k = "1/4"\ns = "x2"',
    )
    problem = problem_from_toml(text, "all.toml")
    x, a = jnp.array([0.5, 0.2]), jnp.asarray(1.0)
    np.testing.assert_array_equal(problem.A(x, a), 1.25 * np.eye(2))
    assert [
        float(problem.c(x, a)),
        float(problem.f(x, a)),
        float(problem.g(x)),
        float(problem.exact(x)),
    ] == [0.25, 0.5, 1.1, 2.0]
    assert float(problem.interfaces[0](x)) == 0.0
    assert (problem.has_drift, problem.has_reaction, problem.name) == (False, True, "all")


def test_the_name_of_the_control_is_free_in_other_files():
    problem = problem_from_toml(toml('A = 1\nf = "a*a1"', "linear", 'a = "2*x1"\na1 = 3'))
    assert float(problem.f(jnp.array([0.5, 0.5]))) == 3.0
    assert is_reserved("a1", controlled=True)
    assert not is_reserved("a1")
    assert not is_reserved("area", controlled=True)
    # What does not use the control says so, and takes one all the same.
    free, bound = (parse(text, 2, {}, controls=("a",)) for text in ("x1", "x1*a"))
    assert isinstance(free, Expression)
    assert isinstance(bound, Expression)
    assert (free.controlled, bound.controlled) == (False, True)
    assert float(free(jnp.array([2.0, 0.0]), jnp.asarray(5.0))) == 2.0


BASE = "A = 1\nf = 1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (toml(BASE), "equation: controls is missing"),
        (toml("controls = [1]\nf = 1"), "equation: A is missing"),
        (
            toml(f"controls = [1]\n{BASE}\nepsilon = 0.5"),
            "no key 'epsilon'.*Allowed: controls, A, f, b",
        ),
        (toml(f"controls = [1]\n{BASE}\nmaximiser = 'x1'"), "no key 'maximiser'"),
        (toml(f"controls = 1\n{BASE}"), r"equation.controls must be a list of numbers, .* not 1"),
        (
            toml(f"controls = 'x1'\n{BASE}"),
            r"equation.controls must be a list of numbers, .* not 'x1'",
        ),
        (toml(f"controls = []\n{BASE}"), r"equation.controls must be .* not \[\]"),
        (
            toml(f"controls = [[]]\n{BASE}"),
            r"equation.controls, row 1 must be a list of numbers, not \[\]",
        ),
        (toml(f"controls = [1, [2]]\n{BASE}"), r"equation.controls must be .* not \[1, \[2\]\]"),
        (
            toml(f"controls = [1, {{from = 1, to = 2, count = 3}}]\n{BASE}"),
            "equation.controls must be ",
        ),
        (
            toml(f"controls = [[1, 2], [3]]\n{BASE}"),
            "equation.controls, row 2 has 1 entries, but 2 are needed",
        ),
        (
            toml(f"controls = [1, nan]\n{BASE}"),
            r"equation.controls\[2\] = nan is not a finite number",
        ),
        (
            toml(f"controls = [1, true]\n{BASE}"),
            r"equation.controls\[2\] must be a number.* not True",
        ),
        (
            toml(f"controls = ['x1']\n{BASE}"),
            r"equation.controls\[1\], column 1: x1 depends on the point",
        ),
        (
            toml(f"controls = ['k']\n{BASE}", definitions="k = 1"),
            r"equation.controls\[1\], column 1: there is no name 'k'",
        ),
        (
            toml(f"controls = {{from = 1, to = 2}}\n{BASE}"),
            "equation.controls: count is missing. Allowed: from, to, count",
        ),
        (toml(f"controls = {{from = 1, to = 2, cuont = 3}}\n{BASE}"), "Did you mean count"),
        (toml(f"controls = {{from = 1, to = 1, count = 3}}\n{BASE}"), "from and to are both 1"),
        (
            toml(f"controls = {{from = 1, to = [2], count = 3}}\n{BASE}"),
            r"equation.controls.to must be a number.*\[2\]",
        ),
        (
            toml(f"controls = {{from = 1, to = 2, count = 2.5}}\n{BASE}"),
            "equation.controls.count = 2.5 must be a whole number from 2",
        ),
        (
            toml(f"controls = {{from = 1, to = 2, count = true}}\n{BASE}"),
            "equation.controls.count = True",
        ),
        (
            toml(f"controls = {{from = 1, to = 2, count = 1}}\n{BASE}"),
            "equation.controls.count = 1",
        ),
        (
            toml(f"controls = {{from = 1, to = 2, count = 1000000000000}}\n{BASE}"),
            "equation.controls.count = 1000000000000 must",
        ),
        (
            toml(f"controls = [{', '.join(['{from = 0, to = 1, count = 99999}'] * 9)}]\n{BASE}"),
            "combinations; at most 100000 are allowed",
        ),
        (
            toml(f"controls = [{{from = 0, to = 1, count = 0}}]\n{BASE}"),
            r"equation.controls\[1\].count = 0",
        ),
        (
            toml('controls = [0, 1]\nA = 1\nf = "a1"'),
            r"equation.f, column 1: there is no a1: the control is a\.",
        ),
        (
            toml('controls = [[0, 1]]\nA = 1\nf = "1 + a"'),
            r"equation.f, column 5: there is no a: the control is a1, a2\.",
        ),
        (toml('controls = [[0, 1]]\nA = 1\nf = "a3"'), "there is no a3: the control is a1, a2"),
        (toml('controls = [0, 1]\nA = 1\nf = "a[0]"'), "subscripts are not allowed"),
        (toml('controls = [0, 1]\nA = 1\nf = "a.size"'), "attribute"),
        (toml('controls = [0, 1]\nA = 1\nf = "a(1)"'), "no function 'a'"),
        (
            toml('controls = [0, 1]\nA = 1\nf = 1\ng = "x1*a"'),
            "equation.g, column 4: a is the control, and here only the point counts",
        ),
        (
            toml('controls = [0, 1]\nA = 1\nf = 1\nexact = "k"', definitions='k = "j"\nj = "a"'),
            "definitions.k, column 1: there is no name 'j'",
        ),
        (
            toml(
                'controls = [0, 1]\nA = 1\nf = 1\nexact = "k"', definitions='j = "a"\nk = "1 + j"'
            ),
            "equation.exact, column 1: k depends on the control",
        ),
        (
            toml('controls = [0, 1]\nA = 1\nf = 1\ninterfaces = ["x1 - a"]'),
            r"equation.interfaces\[1\], column 6: a is the control",
        ),
        (
            toml(f"controls = [0, 1]\n{BASE}", definitions="a = 1"),
            "definitions: a already has a meaning",
        ),
        (
            toml(f"controls = [0, 1]\n{BASE}", definitions="a12 = 1"),
            "definitions: a12 already has a meaning",
        ),
        (toml('A = 1\nf = "a"', "linear"), "equation.f, column 1: there is no name 'a'"),
        (toml("controls = [1]\nA = 1\nf = 1", "linear"), "no key 'controls'"),
        (toml("g = 1", "monge-ampere"), "equation: f is missing. Allowed: f, g, interfaces, exact"),
        (toml(BASE, "monge-ampere"), "no key 'A'"),
        (toml("f = 1\nsense = 'inf'", "monge-ampere"), "no key 'sense'"),
        (toml('f = "a"', "monge-ampere"), "there is no name 'a'"),
        (
            toml(BASE, "navier-stokes"),
            "kind = 'navier-stokes' is not for files.*Allowed: 'linear', 'hjb', 'isaacs', 'monge",
        ),
        (
            "schema = 1\nkind = 'hjb'\ncontrols = [1]",
            r"controls belongs into the table \[equation\]",
        ),
    ],
)
def test_faulty_toml_is_refused(text, message):
    with pytest.raises(FileError, match=f"(?s){message}") as caught:
        problem_from_toml(text, "faulty.toml")
    assert str(caught.value).startswith("faulty.toml")


def test_errors_of_the_problems_name_the_file():
    with pytest.raises(OptionError, match=r"^faulty.toml: equation: sense = 'SUP': 'sup' or 'inf'"):
        problem_from_toml(toml(f"controls = [1]\n{BASE}\nsense = 'SUP'"), "faulty.toml")
    with pytest.raises(
        CoefficientError,
        match=r"^faulty.toml: equation: A is not positive definite.*control 1, a = -1",
    ):
        problem_from_toml(toml('controls = [1, -1]\nA = "a"\nf = 1'), "faulty.toml")
    with pytest.raises(CoefficientError, match=r"^faulty.toml: equation: f is negative"):
        problem_from_toml(toml('f = "x1 - 0.5"', "monge-ampere"), "faulty.toml")
