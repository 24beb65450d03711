"""Expressions and problem files: what is read must mean what it says, what is refused must be
refused with its place and a remedy."""

import math
import textwrap
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes  # noqa: F401  (float64)
from cordes.errors import CoefficientError, CordesError, DomainError, FileError
from cordes.formulas.written.toml import FUNCTIONS, Expression, parse
from cordes.problems.written.files import load_problem
from cordes.problems.written.toml_file import problem_from_toml

EXAMPLES = Path(__file__).parents[2] / "examples"
POINT = np.array([0.3, -0.7])
X1, X2 = POINT


def value(text, point=POINT, **definitions):
    result = parse(text, len(point), definitions)
    return float(result(jnp.asarray(point))) if isinstance(result, Expression) else result


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x1 - x2 - 1", X1 - X2 - 1),
        ("x1 / x2 / 2 * 4", X1 / X2 / 2 * 4),
        ("-x2**2", -(X2**2)),
        ("2**-x1", 2 ** (-X1)),
        ("2**3**2*x1", 512 * X1),
        ("x2**3 + x2**-1 + x2**0", X2**3 + 1 / X2 + 1),
        ("x1**x1 - x1**0.5", X1**X1 - X1**0.5),
        ("+(x1)", X1),
        ("r + norm(x)", 2 * math.hypot(X1, X2)),
        ("norm(x1 - 1, x2, 2)", math.sqrt((X1 - 1) ** 2 + X2**2 + 4)),
        ("min(x1, x2, -2)", -2.0),
        ("max(x2, x1)", X1),
        ("arctan2(x2, x1)", math.atan2(X2, X1)),
        ("where(x1*x2 > 0, 1, -1)", -1.0),
        ("where(-1 < x2 <= x1 < 0.5, 3, 4)", 3.0),
        ("where(-1 < x2 < x1 < 0.2, 3, 4)", 4.0),
        ("where(not x1 > 0 or x2 == -0.7 and x1 != 0, x1, 0)", X1),
        ("where(2 > 1, x1, x2)", X1),
        ("e**x1 - pi", math.e**X1 - math.pi),
        ("1_000*x1 + .5e1", 1000 * X1 + 5),
        ("x1\n  + 2*\n\tx2", X1 + 2 * X2),
    ],
)
def test_values(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize(
    "name", [name for name, function in FUNCTIONS.items() if function.most == 1]
)
def test_functions_are_those_of_mathematics(name):
    reference = {
        "arcsin": math.asin,
        "arccos": math.acos,
        "arctan": math.atan,
        "abs": abs,
        "sign": lambda t: math.copysign(1, t),
        "floor": math.floor,
    }
    function = reference.get(name) or getattr(math, name, None) or np.cbrt
    assert value(f"{name}(x1)") == pytest.approx(function(X1), rel=1e-14)
    assert parse(f"{name}(0.3)", 2) == pytest.approx(function(0.3), rel=1e-14)


def test_constants_are_folded_to_floats():
    assert parse("2*pi/sqrt(4) + where(1 < 2, 1, 0) + min(3, 4) - norm(3, 4)", 2) == pytest.approx(
        math.pi - 1
    )
    assert type(parse("2", 2)) is float
    assert parse("3*k", 2, {"k": 2.0}) == 6.0
    assert isinstance(parse("0*x1", 2), Expression)


def test_expressions_are_functions_for_jax():
    expression = parse("x1**2*abs(x2) + where(x1 > 0, 1, -1)", 2)
    points = jnp.asarray([[0.5, -2.0], [-0.5, 3.0]])
    np.testing.assert_allclose(jax.jit(jax.vmap(expression))(points), [1.5, -0.25])
    np.testing.assert_allclose(jax.grad(expression)(points[0]), [2.0, -0.25])
    assert expression(jnp.zeros(2, jnp.float32)).dtype == jnp.float32
    assert parse("where(x1 > 0, 1, 2)", 2)(jnp.zeros(2)).shape == ()
    # Whole powers have derivatives at zero and for negative numbers, and the length has one at the
    # origin.
    np.testing.assert_allclose(
        jax.hessian(parse("x1**2 + x2**3", 2))(jnp.array([0.0, -1.0])), [[2.0, 0.0], [0.0, -6.0]]
    )
    np.testing.assert_array_equal(jax.grad(parse("r + norm(x1, x2)", 2))(jnp.zeros(2)), [0.0, 0.0])


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("2*sn(x1)", 3, "no function 'sn'. Did you mean sin"),
        ("1 + bmup", 5, "no name 'bmup'. Did you mean bump?"),
        ("1 + x3", 5, "the domain has dimension 2, its coordinates are x1, x2"),
        ("2 + x", 5, "x is the whole point"),
        ("x[0]", 1, "subscripts are not allowed"),
        ("x1 + x2^2", 8, r"written with \*\*"),
        ("1 + ().__class__", 5, "attribute"),
        ("x1.real", 1, "attribute"),
        ("__import__('os')", 1, "no function '__import__'"),
        ("norm(x)(1)", 1, "can be called"),
        ("(lambda: 1)()", 2, "can be called"),
        ("[x1 for x1 in x]", 1, "list comp"),
        ("(x1 := 2)", 2, "named expr"),
        ("'x1'", 1, "not a real number"),
        ("2j + 1", 1, "not a real number"),
        ("True", 1, "not a real number"),
        ("f'{x1}'", 1, "joined str"),
        ("x1 if x2 else 1", 1, "use where"),
        ("x1 // 2", 1, "//"),
        ("x1 < 0", 1, "only as the first argument of where"),
        ("abs(x1 < 0)", 5, "only as the first argument of where"),
        ("where(x1, 1, 2)", 7, "must be a comparison"),
        ("where(x1 in x2, 1, 2)", 7, "comparison is not allowed"),
        ("where(x1 > 0, 1)", 1, "where takes 3 arguments, and has 2"),
        ("sin()", 1, "sin takes 1 argument, and has 0"),
        ("max(x1)", 1, "max takes 2 or more arguments"),
        ("max(*x, 1)", 5, "starred"),
        ("sin(x=x1)", 7, "no arguments by name"),
        ("sin + 1", 1, "sin is a function"),
        ("1 + 1/0", 5, "the value inf"),
        ("(0-8)**(1/3)", 1, "the value nan"),
        ("1e999", 1, "too large"),
        ("x1 # + x2", 4, "character '#'"),
        ("x1 +", 5, "not an arithmetic expression"),
        ("x1 x2", 4, "not an arithmetic expression"),
        ("2 + é*(", 7, "not an arithmetic expression"),
        ("é + y", 1, "no name 'é'"),
    ],
)
def test_everything_else_is_refused_at_its_place(text, column, message):
    with pytest.raises(FileError, match=message) as caught:
        parse(text, 2, {"bump": 1.0}, "sample.toml: equation.f")
    first, shown, caret, allowed = str(caught.value).splitlines()
    assert first.startswith(f"sample.toml: equation.f, column {column}: ")
    assert shown.strip() == text
    assert caret.index("^") == 4 + column - 1
    assert all(
        word in allowed for word in ("x1, x2", "pi", "bump", "where(condition, a, b)", "cbrt")
    )


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "x1**1e9",
        "10**(10**3)",
        "9" * 1999,
        "-" * 1999 + "1",
        "(" * 900 + "1" + ")" * 900,
        "sin(" * 61 + "x1" + ")" * 61,
        "2**" * 600 + "2",
        "where(" * 300 + "x1",
        "x1+" * 700 + "x1",
        "",
        "x1\0",
    ],
)
def test_hostile_expressions_are_refused_at_once(text):
    begin = time.perf_counter()
    with pytest.raises(FileError) as caught:
        parse(text, 2)
    assert time.perf_counter() - begin < 5.0
    assert all(len(line) < 600 for line in str(caught.value).splitlines())


def test_limits_leave_room_for_long_sums_and_deep_calls():
    assert value("+".join(["x1"] * 600)) == pytest.approx(600 * X1)
    assert math.isfinite(value("sin(" * 59 + "x1" + ")" * 59))


def test_definitions_that_double_are_evaluated_once_each():
    definitions = {"a0": parse("x1", 1)}
    for k in range(200):
        definitions[f"a{k + 1}"] = parse(f"(a{k} + a{k})/2", 1, definitions)
    expression = parse("a200 + 1", 1, definitions)
    assert float(jax.jit(expression)(jnp.array([0.25]))) == 1.25


def toml(
    equation="A = 1\nf = 1",
    domain='type = "box"\nlower = [0, 0]\nupper = [1, 1]',
    head='schema = 1\nkind = "linear"',
    definitions="",
):
    return f"{head}\n[domain]\n{domain}\n[equation]\n{equation}\n[definitions]\n{definitions}\n"


def test_square_example_is_the_problem_that_it_says():
    problem = load_problem(EXAMPLES / "square.toml")
    assert problem.name == "square"
    np.testing.assert_array_equal(problem.domain.bounding_box, [[-1, -1], [1, 1]])
    x = jnp.array([0.5, -0.25])
    np.testing.assert_array_equal(problem.A(x), [[2, -1], [-1, 2]])
    np.testing.assert_array_equal(problem.b(x), x)
    assert [float(function(x)) for function in (problem.c, problem.f, problem.g)] == [3, 2, 0]
    assert [float(phi(x)) for phi in problem.interfaces] == [0.5, -0.25]
    assert problem.exact is None
    assert problem.has_drift
    assert problem.has_reaction
    again = problem_from_toml(problem.source["toml"], "other")
    np.testing.assert_array_equal(again.A(-x), problem.A(-x))
    assert again.name == "square"


def test_pentagon_example_is_the_problem_that_it_says():
    problem = load_problem(EXAMPLES / "pentagon.toml")
    x = jnp.array([0.1, 0.2])
    np.testing.assert_array_equal(problem.A(x), [[3, 1], [1, 2]])
    assert float(problem.f(x)) == 1
    assert problem.constant_A
    assert not problem.has_drift
    assert not problem.has_reaction
    assert problem.domain.volume == pytest.approx(2.5 * math.sin(2 * math.pi / 5))
    corners = problem.domain.vertices
    assert len(corners) == 5
    assert np.min(np.linalg.norm(corners - [0, 1], axis=1)) < 1e-14


def test_all_keys_of_an_equation():
    text = toml(
        (
            'A = "2 + k*x1**2"\nb = [0, "0"]\nc = "k"\nf = "-w"\ng = "x1 + 1"\nepsilon = "1 - '
            '1e-3"\nexact = 1.5\ninterfaces = []'
        ),
        'type = "ellipsoid"\ncenter = [1, 0, "pi"]\naxes = [1, 2, "sqrt(2)"]',
        definitions='k = "1/4"\nw = "x1*k"',
    )
    text = text.replace('b = [0, "0"]', 'b = [0, "0", "k - k"]')
    problem = problem_from_toml(text, "all.toml")
    x = jnp.array([2.0, 0.0, 3.0])
    np.testing.assert_allclose(problem.A(x), 3 * np.eye(3))
    assert problem.has_drift is False
    assert [
        float(function(x)) for function in (problem.c, problem.f, problem.g, problem.exact)
    ] == [0.25, -0.5, 3.0, 1.5]
    assert problem.epsilon == 0.999
    assert problem.name == "all"
    assert problem.interfaces == ()
    np.testing.assert_allclose(
        problem.domain.bounding_box, [[0, -2, math.pi - 2**0.5], [2, 2, math.pi + 2**0.5]]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "schema = 1\nkind = linear",
            r"not TOML.*line 2, column 8.*\n    kind = linear\n           \^",
        ),
        ("a = " + "[" * 5000, "nested too deeply|not TOML"),
        ("kind = 'linear'", "schema is missing"),
        (
            toml(head='schema = 3\nkind = "linear"'),
            "schema = 3, but this version of cordes reads schema = 1 to 2",
        ),
        (toml(head='schema = true\nkind = "linear"'), "schema = True"),
        (toml(head='schema = 1\nkind = "games"'), "'games' is not for files.*'linear'"),
        (toml(head="schema = 1\nkind = [1]"), r"kind = \[1\]"),
        (toml(head='schema = 1\nkind = "linear"\nnmae = "a"'), "no key 'nmae'. Did you mean name"),
        (toml(head='schema = 1\nkind = "linear"\nf = 2'), r"f belongs into the table \[equation\]"),
        (toml(head='schema = 1\nkind = "linear"\nname = 3'), "name must be a text"),
        (
            "schema = 1\nkind = 'linear'\ndomain = 3\nequation = 3",
            r"domain must be a table \[domain\], not 3",
        ),
        ("schema = 1\nkind = 'linear'", "domain, equation are missing"),
        (toml("A = 1"), "equation: f is missing"),
        (toml("A = 1\nf = 1\nintefaces = []"), "Did you mean interfaces"),
        (
            toml("A = 1\nf = [1]"),
            r"equation.f must be a number or an expression in quotes, not \[1\]",
        ),
        (toml("A = 1\nf = true"), "equation.f must be a number.* not True"),
        (toml("A = 1\nf = inf"), "equation.f = inf is not a finite number"),
        (toml("A = 1\nf = 1" + "0" * 400), "not a finite number"),
        (
            toml("A = [[1, 0, 0], [0, 1, 0]]\nf = 1"),
            "equation.A must have 2 rows of 2 entries each",
        ),
        (toml("A = [1, 1]\nf = 1"), "equation.A must have 2 rows of 2 entries each"),
        (toml('A = [[1, "x1+"], [0, 1]]\nf = 1'), r"equation.A, row 1\[2\], column 4"),
        (toml("A = 1\nf = 1\nb = [1]"), "equation.b has 1 entries, but 2 are needed"),
        (toml('A = 1\nf = 1\nb = "x1"'), "equation.b must be a list of numbers or expressions"),
        (toml("A = 1\nf = 1\ninterfaces = [1]"), r"interfaces\[1\] = 1 is constant"),
        (toml('A = 1\nf = 1\nepsilon = "x1"'), "x1 depends on the point"),
        (toml('A = 1\nf = "x3"'), "dimension 2"),
        (
            toml('A = 1\nf = "t"', definitions='s = "t"\nt = "1"'),
            "definitions.s, column 1: there is no name 't'",
        ),
        (toml(definitions='sin = "x1"'), "sin already has a meaning"),
        (toml(definitions='x7 = "x1"'), "x7 already has a meaning"),
        (toml(definitions='"a b" = "x1"'), "'a b' cannot be a name"),
        (toml(definitions='lambda = "x1"'), "'lambda' cannot be a name"),
        (toml(domain="lower = [0]"), "type is missing. Allowed: box, ball"),
        (toml(domain='type = "bal"'), "no type of domain 'bal'. Did you mean ball"),
        (toml(domain='type = "box"\nlower = [0, 0]'), "domain: upper is missing"),
        (toml(domain='type = "box"\nlower = [0, 0]\nuper = [0, 0]'), "Did you mean upper"),
        (
            toml(domain='type = "box"\nlower = [0, 0]\nupper = [1, 1, 1]'),
            "domain.upper has 3 entries, but 2 are needed",
        ),
        (
            toml(domain='type = "box"\nlower = 0\nupper = [1, 1, 1]'),
            "domain.lower must be a list of numbers, not 0",
        ),
        (
            toml(domain='type = "box"\nlower = ["x1", 0]\nupper = [1, 1]'),
            r"domain.lower\[1\], column 1: x1 depends on the point",
        ),
        (
            toml(domain='type = "ball"\ncenter = [0, 0]\nradius = [1]'),
            "domain.radius must be a number",
        ),
        (
            toml(domain='type = "ellipsoid"\ncenter = [0, 0]\naxes = [[1, 0]]'),
            "domain.axes has 1 rows, but 2 are needed",
        ),
        (
            toml(domain='type = "polygon"\nvertices = [[0, 0], [1, 0], [0, 1, 2]]'),
            "domain.vertices, row 3 has 3 entries, but 2",
        ),
        (
            toml(domain='type = "regular-polygon"\nsides = 2.5\nradius = 1'),
            "sides = 2.5 must be a whole number",
        ),
        (
            toml(domain='type = "regular-polygon"\nsides = 5\nradius = -1'),
            "radius = -1 must be positive",
        ),
    ],
)
def test_faulty_toml_is_refused(text, message):
    with pytest.raises(FileError, match=f"(?s){message}") as caught:
        problem_from_toml(text, "faulty.toml")
    assert str(caught.value).startswith("faulty.toml")


def test_errors_of_domains_and_problems_name_the_file():
    crossing = 'type = "polygon"\nvertices = [[0, 0], [1, 1], [1, 0], [0, 1]]'
    with pytest.raises(DomainError, match=r"^faulty.toml: domain: ") as caught:
        problem_from_toml(toml(domain=crossing), "faulty.toml")
    assert caught.value.kind == "domain"
    with pytest.raises(CoefficientError, match=r"^faulty.toml: equation: .*not positive definite"):
        problem_from_toml(toml("A = [[1, 2], [2, 1]]\nf = 1"), "faulty.toml")


def write(folder, name, text):
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_python_file_gives_its_problem(tmp_path):
    write(tmp_path, "beside.py", "factor = 3.0\n")
    path = write(
        tmp_path,
        "mine.py",
        """
        import jax.numpy as jnp
        from beside import factor
        from cordes.domains.box import Box
        from cordes.problems.linear import Linear
        assert __name__ != "__main__"
        offset = 1.0
        problem = Linear(Box([0, 0], [1, 1]), A=factor, f=lambda x: jnp.sin(x[0]) + offset)
        """,
    )
    problem = load_problem(str(path))
    x = jnp.array([0.5, 0.5])
    np.testing.assert_array_equal(problem.A(x), 3 * np.eye(2))
    assert float(problem.f(x)) == pytest.approx(math.sin(0.5) + 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problm = 1\n", "defines no variable named problem"),
        ("problem = 1\n", "problem is 1, which is no problem"),
        ("x = 1\nproblem = (\n", "line 2: SyntaxError: '\\(' was never closed"),
        ("def f():\n    return 1/0\n\nf()\n", "line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('no licence')\n", "line 2: SystemExit: no licence"),
        ("from cordes.domains.box import Box\n\nBox([1, 1], [0, 0])\n", "line 3: DomainError: "),
    ],
)
def test_faulty_python_is_refused_with_its_line(tmp_path, text, message):
    path = write(tmp_path, "faulty.py", text)
    with pytest.raises(FileError, match=f"faulty.py.*{message}"):
        load_problem(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        load_problem(tmp_path / "missing.toml")
    with pytest.raises(FileError, match=r"ends in \.toml or \.py"):
        load_problem(write(tmp_path, "problem.json", "{}"))
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(CordesError, match="UTF-8"):
        load_problem(tmp_path / "latin.toml")


def test_examples_in_the_documentation_are_valid():
    page = (EXAMPLES.parent / "docs" / "toml.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in page.split("```toml\n")[1:]]
    problem = problem_from_toml(
        blocks[0].replace(
            "[equation]",
            blocks[1].replace("[definitions]\n", "").replace('s = "sign(x1*x2)"\n', "")
            + "[equation]",
        )
    )
    assert len(problem.interfaces) == 2
    assert all(
        f"`{name}" in page or f" {name} " in page or f" {name}`" in page for name in FUNCTIONS
    )
