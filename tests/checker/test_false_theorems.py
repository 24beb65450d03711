"""False theorems, as somebody would build them who knows the checker: everything fits but for one
hypothesis. Each is refused, for the reason that makes it false."""

import itertools
import json
import sys
from pathlib import Path

import pytest
from flint import ctx

from cordes_check.balls import NotAProof, Refused, rational
from cordes_check.cells import read_cells
from cordes_check.proofs import check

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import forgeries  # noqa: E402

IDENTITY = [["1", "0"], ["0", "1"]]


@pytest.fixture(autouse=True)
def _precision():
    kept = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = kept


@pytest.fixture
def refusal(tmp_path):
    def refuse(data):
        path = tmp_path / "false.proof"
        path.write_bytes(forgeries.written(data))
        with pytest.raises((Refused, NotAProof)) as error:
            check(path)
        return str(error.value)

    return refuse


def changed(base, *pairs, **parts):
    """A proof with other pieces of the problem's text, and without its name."""
    data = forgeries.read(base)
    for old, new in pairs:
        assert old in data["problem"]
        data["problem"] = data["problem"].replace(old, new)
    return data | {"name": None, "claims": {}} | parts


def boxes(columns, rows=("0", "1")):
    """The unit square, cut along lines."""
    found = []
    for (l, u), (m, v) in itertools.product(itertools.pairwise(columns), itertools.pairwise(rows)):
        width, height = rational(u) - rational(l), rational(v) - rational(m)
        found.append(["box", [l, m], [str(width), "0"], ["0", str(height)]])
    return found


HALVES = boxes(["0", "1/2", "1"])
A = '[["1 + x1/4", 0.1], [0.1, 1]]'
WEIGHTS = {"weights": ["0", "1", "1", "1"], "s": "0.999999", "lambda": "0"}


def with_theorem(data, **parts):
    return data | {"theorem": data["theorem"] | parts}


@pytest.mark.parametrize(
    "matrix",
    ["[[1, 1], [1, 1]]", "[[1, 2], [2, 1]]", "[[1, 0], [0, -1]]", "[[-1, 0], [0, -1]]", "0"],
    ids=["degenerate", "indefinite", "a wave", "negative", "nothing"],
)
def test_equations_that_are_not_elliptic(refusal, matrix):
    data = changed("linear", (A, matrix), ("b = [0.5, 0]\nc = 1\n", ""))
    assert "Q <= s² < 1 is not seen" in refusal(with_theorem(data, **WEIGHTS))


@pytest.mark.parametrize("c", ["-2*pi**2", "-20", "-1e4", "1e4*(x1 - 1)"])
def test_a_reaction_beyond_the_first_eigenvalue(refusal, c):
    """There is no solution, or more than one."""
    data = changed("linear", (A, "1"), ("c = 1", f'c = "{c}"'), ("b = [0.5, 0]\n", ""))
    for s, weight in itertools.product(("0.5", "0.999999"), ("1e-3", "1", "1e3", "1e6")):
        theorem = {"s": s, "lambda": "0", "weights": ["0", "1", "0", weight]}
        assert "Q <= s² < 1 is not seen" in refusal(with_theorem(data, **theorem))


def test_an_eigenvalue_that_is_claimed_too_large(refusal):
    data = changed("linear")
    V = [["2", "0"], ["0", "2"]]
    assert "M - V Vᵀ is not positive" in refusal(with_theorem(data, V=V))
    assert "M is less than claimed" in refusal(with_theorem(data, least="3"))
    M = [["1", "2"], ["2", "1"]]
    assert "M is less than claimed" in refusal(with_theorem(data, M=M, least="1e-9"))
    assert "weights out of range" in refusal(
        with_theorem(data, weights=["0", "1", "1", "-1e-3"], s="0.9")
    )


PEAK = "1e3*exp(-1e4*((x1 - 1/2)**2 + (x2 - 1/2)**2))"


def test_cells_that_leave_out_a_source(refusal):
    cuts = ["0", "2/5", "3/5", "1"]
    cells = boxes(cuts, cuts)
    hidden = cells.pop(4)
    assert hidden[1] == ["2/5", "2/5"]
    data = changed("linear", ('f = "', f'f = "{PEAK} + '))
    tiling = "the cells do not tile the domain"
    assert refusal(data | {"cells": cells}) == tiling
    # The area is that of the square, and all ends of sides occur.
    for other in ("0", "3/5"):
        same = ["box", [other, other], ["1/5", "0"], ["0", "1/5"]]
        assert refusal(data | {"cells": [*cells, same]}) == tiling
    # A cell twice and once more, the other way round.
    kind, o, a, b = cells[0]
    assert refusal(data | {"cells": [*cells, hidden, cells[0], [kind, o, b, a]]}) == tiling
    assert refusal(data | {"cells": [*cells, [kind, hidden[1], ["1/5", "0"], ["0", "0"]]]})
    # With it, the source is seen: the same claims do not hold.
    whole = data | {"cells": [*cells, hidden], "claims": forgeries.read("linear")["claims"]}
    assert refusal(whole)


def test_cells_of_space():
    unit = [rational(0)] * 3, [rational(1)] * 3
    halves = [
        ["box", [x, "0", "0"], ["1/2", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]
        for x in ("0", "1/2")
    ]
    assert len(read_cells(halves, *unit)) == 2
    moved = [*halves[:1], ["box", ["1/2", "1/9", "0"], *halves[1][2:]]]
    skew = [["box", ["0"] * 3, ["1", "0", "0"], ["1/9", "1", "0"], ["0", "0", "1"]]]
    flat = [["box", ["0", "0"], ["1", "0"], ["0", "1"]]]
    for wrong in (halves[:1], [*halves, halves[0]], moved, skew, flat, [*halves, *flat]):
        with pytest.raises(Refused):
            read_cells(wrong, *unit)
    # All corners are there, and half of the cells.
    eighths = [
        ["box", list(o), ["1/2", "0", "0"], ["0", "1/2", "0"], ["0", "0", "1/2"]]
        for o in itertools.product(("0", "1/2"), repeat=3)
    ]
    assert len(read_cells(eighths, *unit)) == 8
    checkered = [c for c in eighths if c[1].count("0") % 2]
    with pytest.raises(Refused):
        read_cells([*checkered, *checkered], *unit)


@pytest.mark.parametrize(
    "f",
    [
        "1/(x1 - 1/2)",
        "1e-30*tan(pi*x1)",
        "1e-9*log(x1 - 1/2)",
        "1e-9*sqrt(x1 - 1/2)",
        "1e-12/(x1 - 1/2)**2",
        "exp(1e-3/abs(x1 - 1/2))",
        "1e-30/r**3",
        "(x1 - 1/2)**(1/3)",
        "where(x1*x2 > 1/7, 1, 0)",
    ],
)
def test_data_that_are_no_bounded_functions(refusal, f):
    """Also where the place of it is a side of cells."""
    data = changed("linear", ('f = "', f'f = "{f} + '))
    for cells in (boxes(["0", "1"]), HALVES):
        assert refusal(data | {"cells": cells})


def test_a_source_that_is_not_square_integrable_at_the_tip_of_cells(refusal):
    data = changed("linear", ('f = "', 'f = "1e-6/r + '))
    tips = [
        ["tip", ["0", "0"], ["1", "0"], ["0", "1"]],
        ["tip", ["0", "0"], ["0", "1"], ["1", "0"]],
    ]
    assert "not seen to be in L²" in refusal(data | {"cells": tips})


@pytest.mark.parametrize(
    "g",
    [
        "abs(x1 - 1/2)",
        "sqrt((x1 - 1/2)**2)",
        "max(x1, 1/2)",
        "sign(x1 - 1/2)",
        "(x1 - 1/2)*abs(x2 - 1/2)",
        "where(x1 > 1/2, x1, 1/2)",
        "cbrt(x1 - 1/2)",
        "exp(log((x1 - 1/2)**2)/2)",
        "norm(x1 - 1/2)",
    ],
)
def test_boundary_values_that_are_not_smooth(refusal, g):
    """The answer would not be in H², and what its second derivatives leave on a line is not seen
    by any integral over cells."""
    data = changed("linear", ('f = "', f'g = "{g}"\nf = "'), cells=HALVES)
    assert refusal(data)


@pytest.mark.parametrize("power", [1, 2, 1.5, 2.5, -3, 0, True])
def test_features_that_are_not_smooth(refusal, power):
    data = changed("jumps")
    data["network"]["kinks"][0][1] = power
    assert "C^{1,1}" in refusal(data)


def corner(**parts):
    zero, one = (0.0).hex(), (1.0).hex()
    term = parts.pop("term", ["1.5", 0, [zero, zero], [zero, zero], [[one]]])
    given = {"at": ["0", "0"], "scale": "1", "rays": [["1", "0"], ["0", "1"]], "terms": [term]}
    return given | parts


ZERO, ONE = (0.0).hex(), (1.0).hex()


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"term": ["1", 0, [ZERO] * 2, [ZERO] * 2, [[ONE]]]}, "not in H²"),
        ({"term": ["0.5", 0, [ZERO] * 2, [ZERO] * 2, [[ONE]]]}, "not in H²"),
        ({"term": ["1.5", 9, [ZERO] * 2, [ZERO] * 2, [[ONE]]]}, "not in H²"),
        ({"term": ["1.5", 0, [ONE, ZERO], [ZERO] * 2, [[ONE]]]}, "wrong values on outer rays"),
        ({"rays": [["1", "0"], ["-1", "1"]]}, "no edge"),
        ({"rays": [["0", "1"], ["1", "0"]]}, "rays"),
        ({"at": ["1/2", "1/2"]}, "no edge"),
        ({"at": ["2", "2"]}, "rays"),
        ({"scale": "0"}, "rays"),
        ({"terms": [["1.5", 0, [ZERO] * 2, [ZERO] * 2, [[ONE]]]] * 401}, "too many"),
        ({}, "cell 0"),
    ],
)
def test_singular_functions_that_are_not_in_the_space(refusal, parts, reason):
    """The last one may stand there, but not on a box, where its derivatives are not bounded."""
    assert reason in refusal(changed("linear", corners=[corner(**parts)]))


def test_an_answer_that_is_concave(refusal):
    """det D²w = f for -w as well."""
    data = changed("determinant", ("exp(r**2/2)", "-exp(r**2/2)"))
    c = data["network"]["coefficients"]
    c[:] = [(-float.fromhex(v)).hex() for v in c]
    assert "not convex" in refusal(data)


@pytest.mark.parametrize("f", ["(x1 - 1/2)**2", "0", "-1", "x1 - 1/2", "1e-40"])
def test_determinants_that_vanish(refusal, f):
    data = changed("determinant", ('f = "(1 + r**2)*exp(r**2)"', f'f = "{f}"'))
    for least in ("0.9", "1e-30", "0", "-1"):
        assert refusal(with_theorem(data, least=least))


def test_losses_that_are_none(refusal):
    """A loss for every control, or one that is no function, changes the equation."""
    for above, switch in (
        ("[1, 2]", "x1"),
        ("[-1, 0]", "x1"),
        ("[1, 0]", "log(x1)"),
        ("[1, 0]", "1/x1"),
    ):
        text = f'controls = [1, 2]\nswitch = "{switch}"\nabove = {above}\nbelow = [0, 0]'
        assert refusal(changed("control", ("controls = [1, 2]", text)))


def test_controls_that_share_no_contraction(refusal):
    text = 'A = [["2 - a + 50*(a - 1)", 0], [0, "50*(2 - a) + a - 1"]]\nb = [1, 0]'
    start, end = 'A = [["p*', "b = [1, 0]"
    problem = forgeries.read("control")["problem"]
    old = problem[problem.index(start) : problem.index(end) + len(end)]
    for s in ("0.9", "0.9999"):
        data = with_theorem(changed("control", (old, text)), s=s)
        assert "Q <= s² < 1 is not seen" in refusal(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[equation]", '[definitions]\nc = "0"\n[equation]'),
        ("[equation]", '[definitions]\nu = "0"\n[equation]'),
        ("c = 1\n", "c = 1\nhorizon = 2\n"),
        ("c = 1\n", 'c = 1\nobstacle = "0"\n'),
        ("c = 1\n", 'c = 1\nB = "0"\n'),
        ('type = "box"', 'type = "ball"'),
    ],
)
def test_texts_that_read_like_another_equation(refusal, old, new):
    assert refusal(changed("linear", (old, new)))


LOSS = 'switch = "x1"\nabove = [1e9]\nbelow = [1e9]\n'


@pytest.mark.parametrize(
    ("base", "old", "new"),
    [
        # A theorem about one equation, printed as one about another.
        ("control", "controls = [1, 2]", 'controls = [1, 2]\nsense = "monge-ampere"'),
        ("control", "controls = [1, 2]", 'controls = [1, 2]\nsense = "linear"'),
        ("linear", "c = 1\n", f"c = 1\n{LOSS}"),
        ("linear", "c = 1\n", "c = 1\ncontrols = [1, 2]\n"),
        ("determinant", "[equation]\n", f"[equation]\n{LOSS}"),
        ("determinant", "[equation]\n", "[equation]\nA = [[1, 0], [0, 1]]\n"),
    ],
)
def test_words_that_would_be_about_another_equation(refusal, base, old, new):
    assert refusal(changed(base, (old, new)))


def test_words_that_come_from_the_file(tmp_path, refusal):
    """What is printed of a file cannot pretend to be the checker's."""
    data = changed("linear", ('f = "', 'f = """0 +\n\n  '), ('sin(pi*x2)"\n', 'sin(pi*x2)"""\n'))
    path = tmp_path / "lines.proof"
    path.write_bytes(forgeries.written(data))
    text = check(path)[0]
    assert sum(line.startswith("    f = 0 + ") for line in text.splitlines()) == 1
    honest = check(forgeries.PROOFS / "linear.proof")[0]
    assert len(text.splitlines()) == len(honest.splitlines())
    for answer in ("a\nTHEOREM. 0 = 1", "../a", "a'b"):
        given = forgeries.read("linear")
        given["answer"]["file"] = answer
        assert "no name" in refusal(given)
    given["answer"] = {"file": "a.cordes", "sha256": "THEOREM. 0 = 1"}
    assert "no hash" in refusal(given)


def test_a_text_that_is_not_the_named_problem(refusal):
    data = forgeries.read("jumps")
    data["problem"] = data["problem"].replace("exp(1 - abs(x1))", "exp(abs(x1) - 1)")
    assert refusal(data) == "this is not the problem 'smears-suli-2013'"
    assert "this is not the problem 'nobody'" in refusal(data | {"name": "nobody"})


def test_every_case_would_be_accepted_without_its_fault(tmp_path):
    """What is refused above is refused for its fault: the files around it are good."""
    for base in ("linear", "jumps", "control"):
        path = tmp_path / "good.proof"
        path.write_bytes(forgeries.written(changed(base)))
        assert check(path)[1]["bounds"]
    path.write_bytes(forgeries.written(changed("linear", cells=HALVES)))
    assert check(path)[1]["bounds"]
    path.write_bytes(
        forgeries.written(
            changed("linear", ('f = "', 'g = "(x1 - 1/2)*abs(x1 - 1/2)"\nf = "'), cells=HALVES)
        )
    )
    assert json.dumps(check(path)[1]["bounds"])
