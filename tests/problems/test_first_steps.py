"""What people write at first, and what they are told: what is meant, or what to write instead."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.errors import CordesError
from cordes.problems.written.toml_file import problem_from_toml

SQUARE = cordes.Box([0, 0], [1, 1])
EYE = np.eye(2)
TABLE = jnp.array([1.0, 2.0, 3.0])
FILE = """
schema = 1
kind = "linear"
domain = {type = "box", lower = [0, 0], upper = [1, 1]}
[equation]
A = 1
f = 1
"""


def poisson(**data):
    return cordes.Linear(**{"domain": SQUARE, "A": EYE, "f": -1.0} | data)


def controlled(**data):
    given = {"domain": SQUARE, "controls": [1.0, 2.0], "A": lambda x, a: a * EYE, "f": -1.0}
    return cordes.HJB(**given | data)


SAID = {
    "time": (lambda: controlled(T=1.0), r"no argument 'T'.*cordes.Parabolic"),
    "boundary": (lambda: poisson(bc="neumann"), r"no argument 'bc'.*boundary=cordes.Neumann"),
    "typo": (lambda: poisson(interface=[]), "no argument 'interface'. Known: domain, A, f, b"),
    "degenerate": (lambda: poisson(A=np.diag([1.0, 0.0])), "time as a coordinate.*not covered"),
    "volatility": (lambda: controlled(controls=[0.0, 1.0]), "volatility of zero.*multiple of the"),
    "re-entrant": (
        lambda: cordes.MongeAmpere(
            cordes.Polygon([[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]), 1.0
        ),
        "not convex: there only Linear problems are posed.*a convex domain that contains it",
    ),
    "text": (lambda: poisson(A="1"), "A is the text '1'.*TOML files.*A=lambda x: …"),
    "text of two": (lambda: controlled(f="a"), "f=lambda x, a: …"),
    "list": (lambda: poisson(A=lambda x: [[1.0, 0], [0, 1]]), r"returns list.*jnp.array\(\[…\]\)"),
    "table": (lambda: controlled(A=lambda x, a: TABLE[a] * EYE), r"a\.astype\(int\)"),
    "names": (lambda: controlled(controls=["calm", "storm"]), r"controls=range\(3\)"),
    "samples": (
        lambda: cordes.Transport(SQUARE, source=np.zeros((1000, 2))),
        r"Samples of a density.*cordes\.density\(samples, domain\)",
    ),
    "image": (lambda: poisson(f=np.zeros((64, 64))), r"cordes\.interpolate\(values, domain\)"),
    "pairs": (lambda: cordes.Box((0, 1), (0, 1)), "two corners, not a pair for each axis"),
    "derivative": (
        lambda: jax.grad(lambda p: poisson(A=p * EYE).c(0) + p)(1.0),
        "A is traced by JAX.*Solve once for each value",
    ),
    "batch": (
        lambda: jax.vmap(lambda p: poisson(f=lambda x: p * x[0]).c(0) + p)(TABLE),
        "f is traced by JAX",
    ),
    "parabolic file": (
        lambda: problem_from_toml(FILE.replace("linear", "parabolic")),
        "equation: horizon is missing",
    ),
    "transport file": (
        lambda: problem_from_toml('kind = "transport"\n[source]\n'),
        r"kind = 'transport'.*cordes.Transport\(…\)",
    ),
    "normal derivative in a file": (
        lambda: problem_from_toml(FILE + "neumann = 0"),
        "equation.neumann: What holds on the boundary.*Allowed: A, f, b, c, g",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_not_there_is_answered(name):
    make, message = SAID[name]
    with pytest.raises(CordesError, match=f"(?s){message}"):
        make()


def test_unknown_arguments_are_type_errors_too():
    with pytest.raises(TypeError):
        poisson(horizon=1.0)


def test_a_file_lists_its_keys_once():
    with pytest.raises(CordesError) as error:
        problem_from_toml(FILE + "fluks = 0")
    assert str(error.value).count("interfaces") == 1


@pytest.mark.parametrize(
    ("name", "what"), [("Heat", r"cordes\.Parabolic"), ("Flux", r"cordes\.Neumann")]
)
def test_names_that_are_missing_are_answered(name, what):
    with pytest.raises(AttributeError, match=what):
        getattr(cordes, name)


def test_two_controls_are_no_interval():
    """(0, 1) reads like one: the controls are written out."""
    assert repr(controlled(controls=(1, 2))).endswith("2 controls: 1, 2)")


def test_maxima_are_suprema():
    assert controlled(sense="max").sense == "sup"
    assert controlled(sense="min").sign == -1


def test_single_precision_is_no_jump():
    with pytest.warns(cordes.UndeclaredJumpWarning, match="single precision") as record:
        poisson(f=lambda x: jnp.sin(x.astype(jnp.float32)[0]))
    assert len(record) == 1


def test_no_lambda_helps():
    drift = poisson(b=np.array([20.0, 10.0]))
    assert "whatever λ" in str(cordes.check(drift))
    assert "best λ" in str(cordes.check(poisson(b=np.array([0.5, 0.0]), c=1.0)))


def test_a_matrix_that_degenerates_on_a_side_is_named():
    side = poisson(A=lambda x: jnp.array([[x[0], 0.0], [0.0, 1.0]]))
    certificate = cordes.certify(side, lambda x: 0.0 * x[0])
    assert certificate.rms is None
    assert "A degenerates on the boundary" in certificate.reason
