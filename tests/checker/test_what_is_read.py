"""What the checker reads is what it prints, and what it compares: files in which they would not be
the same are refused."""

import hashlib
import io
import json
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx, fmpq

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import forgeries
from forged_parts import TEXTS

from cordes_check.__main__ import NO_PROOF, PROVED, REFUSED, outcome
from cordes_check.balls import NotAProof, Refused, binary, rounded
from cordes_check.equations import Equation
from cordes_check.proofs import check, check_answer, read


@pytest.fixture(autouse=True)
def _precision():
    kept = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = kept


READINGS = (
    "f that goes on after many spaces",
    "a radius defined",
    "a sine defined",
    "e defined",
    "a norm of another",
    "b as a text",
    "rows as texts",
    "conditions on the boundary",
    "a hole",
    "a time of its own",
)


@pytest.mark.parametrize("kind", READINGS)
def test_a_text_that_people_read_otherwise(kind):
    """It would be printed as an equation of which nothing has been shown."""
    problem = forgeries.read("linear")["problem"]
    old, new = TEXTS[kind]
    assert old in problem
    with pytest.raises((Refused, NotAProof)):
        Equation(problem.replace(old, new))


def test_controls_that_are_keys_of_a_table():
    problem = forgeries.read("control")["problem"]
    with pytest.raises(NotAProof, match="no list"):
        Equation(problem.replace("controls = [1, 2]", "controls = {1 = 5, 2 = 6}"))


def test_the_norm_of_x_is_the_radius_whatever_stands_before_it():
    problem = forgeries.read("linear")["problem"]
    made = Equation(problem.replace('f = "', 'f = "2*norm(x) + '))
    assert "2*norm(x) + " in "".join(made.words())
    with pytest.raises(NotAProof, match="no x"):
        Equation(problem.replace('f = "', 'f = "xnorm(x) + '))


def test_a_number_is_read_to_its_end():
    """The exponent of a double stands behind its digits."""
    assert binary("0x1.8p+3") == 12
    with pytest.raises(NotAProof):
        binary("0x1." + 40 * "0" + "p+3")


def test_a_key_that_stands_twice(tmp_path):
    body = b'{"name": null, "name": "ex4.2-continuous"}'
    path = tmp_path / "twice.proof"
    path.write_bytes(forgeries.written({}).partition(b"\n")[0] + b"\n" + body)
    with pytest.raises(Refused, match="changed"):
        read(path)
    path.write_bytes(f"cordes-proof 1 {hashlib.sha256(body).hexdigest()}\n".encode() + body)
    with pytest.raises(Refused, match="stands twice"):
        read(path)


@pytest.mark.parametrize("value", ["1/3", "2/3", "123456789/1000", "1/700000007", "-2/3"])
def test_printed_digits_are_on_the_right_side(value):
    exact = Fraction(value)
    ball = arb(fmpq(exact.numerator, exact.denominator))
    assert Fraction(rounded(ball, False)) <= exact <= Fraction(rounded(ball, True))
    assert Fraction(rounded(ball, True)) - exact <= abs(exact) / 10**5


def test_what_a_file_says_stays_on_the_line_of_the_refusal(tmp_path):
    data, path = forgeries.read("linear"), tmp_path / "a.proof"
    path.write_bytes(forgeries.written(data | {"name": "a\nTHEOREM. 0 = 1\x1b[2J"}))
    status, said, _ = outcome(path)
    assert (status, said.count("\n"), "\x1b" in said) == (REFUSED, 0, False)
    path.write_bytes(forgeries.written(data | {"claims": {"L2\nTHEOREM": "1"}}))
    assert outcome(path)[1].count("\n") == 0


# The answer beside a proof --------------------------------------------------------------------


def answer_of(data, **changes):
    """An answer with the numbers of a proof, but for some arrays."""
    number = lambda values: np.array([float.fromhex(v) for v in values])  # noqa: E731
    network = data["network"]
    facts = {"network": {"layers": 1, "activation": network["activation"]}}
    arrays = {
        "weight0": np.array([number(row) for row in network["weights"]]),
        "bias0": number(network["biases"]),
        "coefficients": number(network["coefficients"]),
        "amplitudes": np.zeros(3),
    }
    arrays |= {name: value for name, value in changes.items() if name != "facts"}
    facts["network"] |= changes.get("facts", {})
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.fixture
def compared(tmp_path):
    """Whether an answer is that of the proof of a linear equation."""

    def compare(content):
        data = forgeries.read("linear")
        data["answer"]["sha256"] = hashlib.sha256(content).hexdigest()
        (tmp_path / data["answer"]["file"]).write_bytes(content)
        return check_answer(data, tmp_path)

    return compare


def test_an_answer_with_these_numbers(compared):
    data = forgeries.read("linear")
    assert compared(answer_of(data))
    weights = np.array([[float.fromhex(v) for v in row] for row in data["network"]["weights"]])
    unseen = np.concatenate([weights, -np.zeros((2, weights.shape[1]))])
    assert compared(answer_of(data, weight0=unseen, amplitudes=-np.zeros(2)))


def test_an_answer_that_others_read_otherwise(compared):
    """The bytes may be the same, and the numbers are not."""
    data = forgeries.read("linear")
    numbers = {
        name: np.array([[float.fromhex(v) for v in row] for row in rows])
        for name, rows in (("w", data["network"]["weights"]), ("c", [data["network"]["biases"]]))
    }
    w, c = numbers["w"], numbers["c"][0]
    for changes in (
        {"weight0": np.asfortranarray(w.ravel().reshape(w.shape[::-1]).T)},
        {"weight0": w.reshape(1, -1)},
        {"weight0": np.append(w.ravel(), np.zeros(w.shape[1])).reshape(-1, 3)},
        {"bias0": np.frombuffer(c.tobytes(), ">f8")},
        {"bias0": np.frombuffer(c.tobytes(), "<i8")},
        {"bias0": np.append(c, 0.0)},
        {"bias0": c + 1e-12},
        {"amplitudes": np.array([0.0, 1.0])},
        {"facts": {"layers": 2}},
        {"facts": {"activation": "tanh"}},
    ):
        with pytest.raises(Refused, match=r"other|no array"):
            compared(answer_of(data, **changes))


def test_an_archive_that_is_none(compared):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("weight0.npy", b"\x93NUMPY\x02\x00" + bytes(200))
    with pytest.raises(Refused, match="no array"):
        compared(archive.getvalue())


@pytest.mark.parametrize("name", ["weight0", "weight0.npy"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_stands_twice(compared, name):
    """NumPy reads the one without its ending, others the first."""
    content = io.BytesIO(answer_of(forgeries.read("linear")))
    with zipfile.ZipFile(content, "a") as file:
        file.writestr(name, b"\x93NUMPY\x01\x00" + bytes(200))
    with pytest.raises(Refused, match="twice"):
        compared(content.getvalue())


def test_statuses_are_told_apart(tmp_path):
    assert outcome(forgeries.PROOFS / "linear.proof")[0] == PROVED
    (tmp_path / "a.proof").write_bytes(b"")
    assert outcome(tmp_path / "a.proof")[0] == NO_PROOF
    assert "Q <= 0.178630²" in check(forgeries.PROOFS / "linear.proof")[0]
