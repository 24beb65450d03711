"""Hostile formulas and problem files: nothing may run, hang, fill the memory, or end in anything
but a message.

    python benchmarks/faults/formulas.py FORMULAS FILES WHOLE [SEED]

FORMULAS go through the parser (every twentieth is evaluated), FILES through the reader with the
constructors left out, WHOLE through all of it.
"""

import json
import random
import re
import string
import sys
from unittest import mock

import jax.numpy as jnp
import numpy as np
from judging import Tally

from cordes.formulas.written.toml import FUNCTIONS, Expression, parse
from cordes.problems.written import toml_file
from cordes.problems.written.toml_file import problem_from_toml

NAMES = ["x1", "x2", "x3", "x", "r", "t", "pi", "e", "a", "a1", "s", "bump", "x0", "x99999999", "y"]
NAMES += ["__class__", "__import__", "eval", "open", "lambda", "nan"]
HOSTILE = [
    *("__import__('os').system('touch executed')", "().__class__.__bases__[0].__subclasses__()"),
    *("(lambda: 1)()", "[x1 for x1 in (1,2)]", "{1:2}", "f'{x1}'", "x1.__class__", "x1[0]"),
    *("9**9**9", "(10**1000)**1000", "1e308*10", "1/0", "0**-1", "(-1)**0.5", "nan", "1e400"),
    *("'a'*10**9", "print(1)", "exec('1')", "open('/etc/passwd')", "x1 if x1 else x2", "x1 := 3"),
    *("yield", "await x1", "*x1", "min(*x1, 2)", "sin(x=1)", "x1, x2", "...", "1j", "b'a'", "~x1"),
    *("not x1", "x1 < x2", "x1 @ x2", "x1 // 2", "x1 << 9999999", "x1 is None", "where(1,2,3)"),
    *(
        "where(x1>0 or x1<0,1,2)",
        "where(0<x1<x2<1,1,2)",
        "norm()",
        "norm(x, x1)",
        "sin",
        "sin(1,2)",
    ),
    *("x1;x2", "x1\nx2", "x1#c", "x1\\", "x1\0", "\ufeffx1", "x１", "π", "x1²", "½", "1_000"),
    *("0x" + "f" * 1900, "9" * 1999, "-" * 1990 + "1", "(" * 199 + "1" + ")" * 199),
    *("(" * 999 + "1" + ")" * 999, "sin(" * 59 + "x1" + ")" * 59, "sin(" * 300 + "x1" + ")" * 300),
    *("+".join(["x1"] * 660), "**".join(["2"] * 600), "x1" + "**x1" * 400, "a" * 2001),
    *("where(" * 100 + "x1>0" + ",1,2)" * 100, "x1**1001", "x1**-1000", "2**x1**x2**9", "r" * 500),
    *("exp(exp(exp(x1)))", "log(x1-x1)", "`x1`", "$x1", "<script>", "import os", "x1 = 2", "", " "),
]
UNICODE = (
    "\u200b\u202e\ufeff\u00e9\u03c0\U0001d431\uff58\u2028\u0660\u00b2\U0001f600\x7f\x01\x1b\u0301"
)
VALUES = [
    *("true", "nan", "inf", "1e400", "9" * 5000, "0x" + "f" * 5000, "-0", "[]", "{}", "[[]]", '""'),
    *('"x1"', '"x1/0"', "1979-05-27", "07:32:00", "[1, [2]]", "[1, 2, 3]", '["x1"]', "{a = 1}"),
    *("1e308", "-1e308", "1e-320", "0", "-1", '"\\u0000"', '"<b>"', "[nan]", "[[1, 2], [3]]"),
    *("{from = 0, to = 1, count = 100000}", "{from = 0, to = 1, count = 99999999999}", "1001"),
    *("[" * 200 + "]" * 200, "[" * 3000 + "]" * 3000, '"' + "(" * 1500 + '"', "[1e200, 1e200]"),
    *("{a = " * 50 + "1" + "}" * 50, '"' + "n" * 10_000 + '"', f"{[0] * 1000}", f"{[0] * 100_000}"),
    *(f"{[[k, k * k] for k in range(2000)]}", '["x1-0.1", "x2"]', '"1e308*10"', '"hjb"', "1.5"),
]
LINES = [
    *("[domain]", "[definitions]", "[[equation]]", "zzz = 1", "__class__ = 1", 's = "t"', "x1 = 1"),
    *('"" = 1', '"x y" = 2', "é = 1", "a.b.c = 1", "[a.b.c]", "[__proto__]", "k" * 5000 + " = 1"),
    *(
        "a." * 50 + "a = 1",
        "[" + "a." * 5000 + "a]",
        '"a".' * 40 + "a = 1",
        'name = "' + "n" * 9999,
    ),
]
FILES = [
    """schema = 1\nkind = "linear"\nname = "n"\n[domain]\ntype = "box"\nlower = [-1, -1]
upper = [1, "pi"]\n[definitions]\ns = "sign(x1*x2)"\n[equation]\nA = [["2", "s"], ["s", "2"]]
b = ["x1", "x2"]\nc = 3\nf = 2\ng = "x1"\nepsilon = 0.5\nexact = "x1*x2"
interfaces = ["x1", "x2"]\n""",
    """schema = 1\nkind = "hjb"\n[domain]\ntype = "ball"\ncenter = [0, 0]\nradius = 1\n[equation]
controls = [{from = 0, to = "pi", count = 8}, {from = -1, to = 1, count = 3}]\nsense = "inf"
A = [["2 + cos(a1)", 0], [0, "2 - cos(a1)"]]\nb = ["a2", 0]\nc = 1\nf = "-1 - a2**2"\n""",
    """schema = 1\nkind = "monge-ampere"\n[domain]\ntype = "regular-polygon"\nsides = 5\nradius = 1
angle = "pi/2"\n[equation]\nf = "(1 + r**2)*exp(r**2)"\ng = "exp(r**2/2)"\n""",
    """schema = 1\nkind = "linear"\n[domain]\ntype = "ellipsoid"\ncenter = [0, 0, 0]
axes = [1, 2, 3]\n[equation]\nA = "2 + x3"\nf = 1\n""",
    """schema = 1\nkind = "hjb"\n[domain]\ntype = "polygon"\nvertices = [[0, 0], [1, 0], [0, 1]]
[equation]\ncontrols = [[0, 1], [1, 0]]\nA = "1 + a1**2"\nf = "a2"\n""",
    """schema = 2\nkind = "linear"\n[domain]\ntype = "difference"\nof = [
{ type = "box", lower = [-1, -1], upper = [1, 1] },
{ type = "ball", center = [0, 0], radius = 0.3 },
{ type = "polygon", vertices = [[0.5, 0.5], [0.7, 0.5], [0.6, 0.8]] },\n]
[equation]\nA = 1\nf = 1\n""",
    """schema = 2\nkind = "linear"\n[domain]\ntype = "polygon"
vertices = [[0, 0], [3, 0], [3, 3], [1, 1], [0, 3]]
holes = [[[0.2, 0.2], [0.4, 0.2], [0.3, 0.4]], [[1, 0.3], [1.4, 0.3], [1.2, 0.5]]]
[equation]\nA = 1\nf = 1\n""",
    """schema = 2\nkind = "parabolic"\n[domain]\ntype = "box"\nlower = [-1, -1]\nupper = [1, 1]
[definitions]\ns = "exp(-t)*sign(x1)"\n[equation]\nhorizon = 0.5\nA = [["2", "s"], ["s", "2"]]
b = ["t", "x1"]\nc = "1 + t"\nf = "x1*t"\ng = "t"\ninitial = "x1*x2"\ninterfaces = ["x1"]\n""",
    """schema = 2\nkind = "obstacle"\n[domain]\ntype = "box"\nlower = [0]\nupper = [2]\n[equation]
A = [["x1**2/50 + 0.1"]]\nb = ["x1/20"]\nc = 0.05\nf = 0\ng = "max(1 - x1, 0)"\nhorizon = 1
terminal = "max(1 - x1, 0)"\nbelow = "max(1 - x1, 0)"\nabove = "3 + t"\n""",
    """schema = 2\nkind = "hjb"\n[domain]\ntype = "ball"\ncenter = [0, 0]\nradius = 1\n[equation]
controls = {from = 0, to = 1, count = 3}\nhorizon = 2\nterminal = "r**2"\nA = "1 + a*t"
f = "a + t"\ng = "1"\nexact = "r**2"\n""",
    """schema = 2\nkind = "linear"\n[domain]\ntype = "box"\nlower = [0, 0]\nupper = [1, 1]
[definitions]\nk = {values = [[1, 2], [3, 4]], order = 1, image = true}\n[equation]\nA = "k"
f = "k*x1"\n""",
    """schema = 2\nkind = "linear"\n[domain]\ntype = "box"\nlower = [0, 0]\nupper = [1, 1]
[boundary]\nleft = {type = "neumann", h = "x2"}\nright = {type = "robin", kappa = 2, h = "1 - x2"}
outer = {type = "dirichlet", g = "x1"}\n[equation]\nA = 1\nb = [1, "x1"]\nf = "x1*x2"\n""",
    """schema = 2\nkind = "parabolic"\n[domain]\ntype = "box"\nlower = [0]\nupper = [1]
[boundary]\nleft = {type = "periodic"}\nright = {type = "periodic"}\n[equation]\nhorizon = 1\nA = 1
f = "t"\ninitial = "sin(2*pi*x1)"\n""",
]
# A value inside of a line: of a table, or in a list.
INNER = re.compile(r"(?<=[=,\[{] )[^=,\[\]{}]+(?=[,}\]])")


class Fuzz:
    """Random formulas and files of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def formula(self, depth: int) -> str:
        choose, sub = self.random.choice, lambda: self.formula(depth - 1)
        kind = self.random.random()
        if depth <= 0 or kind < 0.2:
            numbers = ("0", "1", "2", "0.5", "1e308", "1e-320", repr(self.random.uniform(-9, 99)))
            return choose([*("x1", "x2", "r", "pi", "s", "bump") * 2, *numbers, choose(NAMES)])
        if kind < 0.6:
            return f"({sub()} {choose(['+', '-', '*', '/', '**'])} {sub()})"
        if kind < 0.9:
            name = choose(sorted(FUNCTIONS))
            if name == "where":
                return f"where({sub()} {choose(['<', '>=', '=='])} {sub()}, {sub()}, {sub()})"
            count = FUNCTIONS[name].least + (FUNCTIONS[name].most is None)
            return f"{name}({', '.join(sub() for _ in range(count))})"
        return f"-{sub()}"

    def mutated(self, text: str) -> str:
        for _ in range(self.random.randint(1, 4)):
            kind, i = self.random.random(), self.random.randint(0, len(text))
            j = self.random.randint(0, len(text))
            added = self.random.choice(string.printable + UNICODE)
            if kind < 0.25:
                added = self.random.choice(HOSTILE)[:80]
            elif kind < 0.4:
                added = self.random.choice(
                    ["9" * 40, "(" * 30, "**9" * 10, "..", '"""', "'''", "\\"]
                )
            elif kind < 0.6:
                added = text[j : j + 30]
            text = text[:i] + added + text[i + (self.random.randint(0, 5) if kind > 0.5 else 0) :]
        return text

    def text(self) -> str:
        kind = self.random.random()
        if kind < 0.1:
            return self.random.choice(HOSTILE)
        if kind < 0.9:
            made = self.formula(self.random.randint(1, 6))
            return made if kind < 0.45 else self.mutated(made)
        return "".join(
            self.random.choices(string.printable + UNICODE, k=self.random.randint(1, 60))
        )

    def file(self) -> str:
        lines = self.random.choice(FILES).split("\n")
        for _ in range(self.random.randint(1, 3)):
            kind, i = self.random.random(), self.random.randrange(len(lines))
            inner = list(INNER.finditer(lines[i]))
            if kind < 0.25 and inner:
                place = self.random.choice(inner)
                value = self.random.choice([*VALUES, json.dumps(self.text())])
                lines[i] = lines[i][: place.start()] + value + lines[i][place.end() :]
            elif kind < 0.6 and "=" in lines[i]:
                value = self.random.choice([*VALUES, *(json.dumps(self.text()) for _ in range(40))])
                lines[i] = f"{lines[i].split('=')[0].strip()} = {value}"
            elif kind < 0.7:
                lines.pop(i) if len(lines) > 1 else None
            elif kind < 0.8:
                lines.insert(i, self.random.choice(LINES))
            elif kind > 0.9:
                lines = self.mutated("\n".join(lines)).split("\n")
        return "\n".join(lines)


def fuzz(formulas: int, files: int, whole: int, seed: int = 1) -> Tally:
    made, tally, point = Fuzz(seed), Tally(), jnp.array([0.3, -0.7])
    definitions = {"s": parse("sign(x1*x2)", 2), "bump": parse("exp(-4*norm(x1, x2)**2)", 2)}
    for k in range(formulas):
        text = made.text()

        def read(text: str = text, evaluated: bool = k % 20 == 0) -> None:
            found = parse(text, 2, definitions, "f", ("a",) if evaluated else ())
            if isinstance(found, float):
                assert np.isfinite(found)
            elif evaluated and isinstance(found, Expression):
                assert found(point, jnp.array([0.5])).shape == ()

        tally.judge("formula, evaluated" if k % 20 == 0 else "formula, parsed", text, read)
    unmade = {
        kind: (lambda *_, **__: mock.MagicMock(), *rest)
        for kind, (_, *rest) in toml_file._EQUATIONS.items()
    }
    with mock.patch.dict(toml_file._EQUATIONS, unmade):
        for _ in range(files):
            text = made.file()
            tally.judge("file, read", text, lambda text=text: problem_from_toml(text, "p.toml"))
    for _ in range(whole):
        text = made.file()
        tally.judge("file, whole", text, lambda text=text: problem_from_toml(text, "p.toml"))
    return tally


if __name__ == "__main__":
    sys.exit(min(1, fuzz(*map(int, sys.argv[1:])).report()))
