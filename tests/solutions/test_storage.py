"""Saved answers come back as they were, and nothing else is taken for one."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes import storage
from cordes.domains import boundary_fit
from cordes.errors import FileError
from cordes.formulas.fingerprint import fingerprint
from cordes.problems.written.files import load_problem
from cordes.reports.facts import certificate_of

EXAMPLES = Path(__file__).parents[2] / "examples"
SQUARE = cordes.Box([-1, -1], [1, 1])
POINTS = SQUARE.interior_points(20, seed=3) / 2
ADAM = {"width": 8, "depth": 2, "points": 100, "epochs": 10}


def python_problem(f=1.0, domain=SQUARE, A=1.0, **data):
    return cordes.Linear(domain, A, f, **data)


@pytest.fixture(scope="module")
def python_answer():
    return cordes.solve(python_problem(), features=40, progress=False)


@pytest.fixture
def saved(python_answer, tmp_path):
    return python_answer.save(tmp_path / "answer.cordes")


def same(solution, loaded):
    assert np.array_equal(solution(POINTS), loaded(POINTS))
    np.testing.assert_allclose(
        loaded.hessian(POINTS), solution.hessian(POINTS), rtol=1e-12, atol=1e-12
    )
    assert loaded.result is solution.result
    assert loaded.residual_rms == solution.residual_rms
    assert loaded.history == solution.history
    assert loaded.seconds == solution.seconds
    assert loaded.facts == solution.facts
    assert loaded.parameters == solution.parameters
    assert loaded.points == solution.points


@pytest.mark.parametrize("options", [{}, {"method": "adam", **ADAM}], ids=["least-squares", "adam"])
def test_gallery_problems_come_back_by_themselves(options, tmp_path, solved):
    solution = solved("ex4.2-continuous", **options)
    loaded = cordes.load(solution.save(tmp_path / "answer.cordes"))
    same(solution, loaded)
    assert loaded.problem is solution.problem
    assert loaded.error() == solution.error()


def test_problems_of_files_come_back_by_themselves(tmp_path):
    solution = cordes.solve(load_problem(EXAMPLES / "pentagon.toml"), features=40, progress=False)
    loaded = cordes.load(solution.save(tmp_path / "answer.cordes"))
    same(solution, loaded)
    assert repr(loaded.problem.domain) == repr(solution.problem.domain)


def test_problems_in_python_must_be_passed_in(python_answer, saved):
    with pytest.raises(
        FileError,
        match=r"written in Python, which is not kept: pass it in again, cordes.load\(.*, problem=",
    ):
        cordes.load(saved)
    same(python_answer, cordes.load(saved, problem=python_problem()))


def test_a_loaded_answer_can_be_continued(python_answer, saved):
    loaded = cordes.load(saved, problem=python_problem())
    longer = cordes.solve(loaded.problem, start=loaded, progress=False)
    assert longer.residual_rms < python_answer.residual_rms


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"domain": cordes.Box([-1, -1], [1, 2])},
            "holds an answer on Box.*but the problem passed in has the domain",
        ),
        ({"f": 2.0}, "other coefficients"),
        ({"c": 1.0}, "singular functions|other coefficients"),
        ({"g": lambda x: 1 + x[0]}, "does not give back its own values"),
        (
            {"A": [[2, 1], [1, 2]]},
            "singular functions, the problem|does not give back|other coefficients",
        ),
        (
            {
                "A": lambda x: (1 + 0.5 * jnp.sign(x[0])) * jnp.eye(2),
                "interfaces": [lambda x: x[0]],
            },
            "not the problem",
        ),
    ],
)
def test_another_problem_is_refused(saved, other, message):
    with pytest.raises(FileError, match=message):
        cordes.load(saved, problem=python_problem(**other))


# Damage -------------------------------------------------------------------------------------------


def test_no_file(tmp_path):
    with pytest.raises(FileError, match="There is no file"):
        cordes.load(tmp_path / "nothing.cordes")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_truncated_files_are_refused(saved, share):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(FileError, match="is not a saved answer of cordes, or it is damaged"):
        cordes.load(saved, problem=python_problem())


def test_flipped_bytes_are_refused(saved):
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 0xFF
    saved.write_bytes(bytes(data))
    with pytest.raises(FileError, match=r"damaged|does not give back"):
        cordes.load(saved, problem=python_problem())


def test_a_wrong_byte_anywhere_is_refused_or_harmless(saved, tmp_path):
    """Which exception the archive raises depends on the byte: zlib.error, NotImplementedError,
    BadZipFile and others have been seen."""
    data, path, refused = saved.read_bytes(), tmp_path / "damaged.cordes", 0
    whole, facts = storage._read(saved.read_bytes(), str(saved))
    positions = np.unique(
        np.concatenate(
            [
                np.arange(0, 120),
                np.linspace(0, len(data) - 1, 300).astype(int),
                np.arange(len(data) - 200, len(data)),
            ]
        )
    )
    for position in positions:
        damaged = bytearray(data)
        damaged[position] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            found, found_facts = storage._read(path.read_bytes(), str(path))
        except FileError:
            refused += 1
        else:
            # Bytes that nobody reads, such as dates of the archive.
            assert found_facts == facts
            assert all(np.array_equal(found[name], whole[name]) for name in whole)
    assert refused > 300


@pytest.mark.parametrize("text", ["u = 3", "{}", "PK"])
def test_text_is_refused(tmp_path, text):
    path = tmp_path / "answer.cordes"
    path.write_text(text)
    with pytest.raises(FileError, match="not a saved answer"):
        cordes.load(path)


class Harmful:
    """Would leave a mark if it were unpickled."""

    mark: Path

    def __reduce__(self):
        return Path.write_text, (Harmful.mark, "executed")


def test_pickled_objects_are_refused_and_never_executed(tmp_path):
    Harmful.mark = tmp_path / "mark"
    path = tmp_path / "answer.npz"
    np.savez(path, facts=np.array([Harmful()], dtype=object), allow_pickle=True)
    with pytest.raises(FileError, match="not a saved answer"):
        cordes.load(path)
    assert not Harmful.mark.exists()
    # The same archive is harmful to whoever allows pickles, so the test can fail.
    with np.load(path, allow_pickle=True) as archive:
        archive["facts"]
    assert Harmful.mark.exists()


def rewritten(path, change):
    with np.load(path) as archive:
        arrays = dict(archive)
    facts = json.loads(arrays["facts"].tobytes())
    change(facts, arrays)
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda facts, arrays: facts.update(format=99),
            "has format 99; this version reads format 1",
        ),
        (
            lambda facts, arrays: facts["network"].update(kind="transformer"),
            "unknown kind 'transformer'",
        ),
        (lambda facts, arrays: arrays.update(weight0=np.zeros((3, 3))), "holds weights of shapes"),
        (
            lambda facts, arrays: arrays.update(coefficients=2 * arrays["coefficients"]),
            "does not give back its own values",
        ),
        (lambda facts, arrays: arrays.update(amplitudes=np.zeros(1)), "has 1 singular functions"),
        (lambda facts, arrays: facts["network"].pop("kind"), r"network\.kind is missing"),
        (
            lambda facts, arrays: facts["network"].update(layers=10**8),
            "layers = 1000000",
        ),
        (
            lambda facts, arrays: (
                facts["network"].update(kind="mlp", layers=2),
                arrays.update(
                    coefficients=np.zeros(10**5), weight1=np.ones((2, 2)), bias1=np.ones(2)
                ),
            ),
            "holds weights of shapes",
        ),
        (lambda facts, arrays: facts.update(result="x"), "There is no result 'x'"),
        (lambda facts, arrays: facts.update(result=[]), r"There is no result '\[\]'"),
        (
            lambda facts, arrays: facts["facts"].update(richness=10**6),
            "richness = 1000000: ",
        ),
        (lambda facts, arrays: facts["facts"].update(boundary=3), "boundary"),
        (lambda facts, arrays: facts.update(history=[1]), r"history\[0\] = 1: an object is needed"),
        (lambda facts, arrays: facts.update(fits=[[10**5, [], 1]]), r"fits\[0\]\[0\] = 100000"),
        (lambda facts, arrays: arrays.pop("weight0"), "array weight0 is missing"),
        (lambda facts, arrays: arrays.pop("values"), "lacks values"),
        (lambda facts, arrays: arrays.update(bias0=np.array(["a"])), "bias0 is <U1"),
        (lambda facts, arrays: arrays.update(probes=np.zeros((0, 2))), "different lengths"),
        (
            lambda facts, arrays: arrays.update(
                coefficients=np.zeros(10**6), weight0=np.zeros((2, 10**6)), bias0=np.zeros(10**6)
            ),
            "coefficients has 1000000 entries; answers have at most 100000",
        ),
        (
            lambda facts, arrays: arrays.update(
                probes=np.zeros((2000, 2)), values=np.zeros(2000), equation=np.zeros((2000, 8))
            ),
            "probes has 2000 entries; answers have at most 1000",
        ),
    ],
)
def test_changed_files_are_refused(saved, change, message):
    rewritten(saved, change)
    with pytest.raises(FileError, match=message):
        cordes.load(saved, problem=python_problem())


# Writing ------------------------------------------------------------------------------------------


def test_unwritable_places_are_refused(python_answer, tmp_path, monkeypatch):
    with pytest.raises(FileError, match="is a folder"):
        python_answer.save(tmp_path)
    with pytest.raises(FileError, match="does not exist: make it first"):
        python_answer.save(tmp_path / "nowhere" / "answer.cordes")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match="permission denied"):
        python_answer.save(tmp_path / "answer.cordes")


def test_a_failed_write_leaves_the_old_file(python_answer, saved, monkeypatch):
    before = saved.read_bytes()

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(storage.np, "savez_compressed", fail)
    with pytest.raises(KeyboardInterrupt):
        python_answer.save(saved)
    assert saved.read_bytes() == before


def test_saving_leaves_one_file(saved):
    assert [path.name for path in saved.parent.iterdir()] == ["answer.cordes"]


def test_the_fit_of_the_lift_is_kept(tmp_path, monkeypatch):
    """Fits that agree on the boundary differ inside, and rounding chooses among them: a machine
    that rounds otherwise must not build another lift."""
    problem = cordes.gallery["ex4.1-singular"]
    solution = cordes.solve(problem, features=60, progress=False)
    path = solution.save(tmp_path / "answer.cordes")
    x = problem.domain.interior_points(100, 3)

    def other(y, heights, values):
        return found._replace(coefficients=found.coefficients * (1 + 1e-3))

    found = boundary_fit.Fit(solution.fits[0].basis, solution.fits[0].coefficients)
    monkeypatch.setattr(boundary_fit, "best_fit", other)
    np.testing.assert_array_equal(cordes.load(path)(x), solution(x))
    # Continued on such a machine, it starts where it was.
    again = cordes.solve(problem, start=cordes.load(path), features=60, progress=False)
    assert again.fits[0].coefficients.tolist() == solution.fits[0].coefficients.tolist()
    # The replaced fit is used where none was kept; the problem itself keeps what it was prepared
    # with.
    fresh = cordes.solve(copy.copy(problem), features=60, progress=False)
    assert fresh.fits[0].coefficients.tolist() != solution.fits[0].coefficients.tolist()


# Fingerprints -------------------------------------------------------------------------------------


def hidden(x):
    """Another f in a disk that none of the points compared lies in."""
    return 1.0 + 100.0 * jnp.exp(-jnp.sum((x - 0.37) ** 2) / 0.003**2)


def written(x):
    return 1.0 + 0.5 * x[0]


@pytest.mark.filterwarnings("ignore:.*jump")
@pytest.mark.parametrize(
    ("data", "other", "name"),
    [
        ({}, {"f": hidden}, "f"),
        ({"f": written}, {"f": lambda x: 1.0 + x[0] * 0.5 + 1e-9 * jnp.sin(90 * x[1])}, "f"),
        ({}, {"g": lambda x: 1e-12 * x[0]}, "g"),
        (
            {"A": lambda x: (1 + 0 * x[0]) * jnp.eye(2)},
            {"A": lambda x: (1 + 1e-11 * x[0]) * jnp.eye(2)},
            "A",
        ),
    ],
)
def test_another_formula_is_noticed_between_the_points(data, other, name, tmp_path):
    solution = cordes.solve(python_problem(**data), features=120, progress=False)
    assert solution.converged
    path = solution.save(tmp_path / "answer.cordes")
    with pytest.warns(storage.OtherProblemWarning, match=rf"not the one .*\({name}\b"):
        loaded = cordes.load(path, python_problem(**{**data, **other}))
    assert loaded.result is cordes.Result.converged_uncertified
    for said in (certificate_of(loaded).reason, loaded.verdict):
        assert "is not the one that was solved" in said
    assert cordes.load(path, python_problem(**data)).converged


@pytest.mark.long
def test_a_changed_f_is_certified_as_what_it_is(tmp_path):
    """What was loaded for another f has a bound of its true error once it is certified."""
    path = cordes.solve(python_problem(), features=120, progress=False).save(tmp_path / "a.cordes")
    bump = python_problem(f=lambda x: 1.0 + 100.0 * jnp.exp(-jnp.sum((x - 0.37) ** 2) / 2e-6))
    with pytest.warns(storage.OtherProblemWarning):
        loaded = cordes.load(path, bump)
    # The true difference at the bump: f of mass 2π·1e-6·100 gives about (mass/2π) log(1/width).
    assert loaded.certify().Linf > 5e-4


def test_the_same_formula_made_anew_is_the_same():
    """One entry of a table makes another one; the rounding of another machine does not."""

    def found(shift=0.0):
        values, knots = np.linspace(0, 1, 5000), np.linspace(-1, 1, 5000)
        values[2500] += shift
        return fingerprint(lambda x: 1 + jnp.interp(x[0], knots, values), np.zeros(2))

    assert found() == found() == found(1e-16)
    assert found(1e-6) != found()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda facts, arrays: facts.pop("fingerprint"), "the file has no fingerprint"),
        (
            lambda facts, arrays: facts["fingerprint"].update(jax="0.0.1"),
            r"fingerprints of JAX 0\.0\.1 and .* differ",
        ),
        (
            lambda facts, arrays: facts["fingerprint"]["parts"].update(f=None),
            "calls back into Python",
        ),
    ],
)
def test_older_files_stay_readable_and_claim_nothing(change, reason, tmp_path):
    solution = cordes.solve(python_problem(), features=120, progress=False)
    assert solution.converged
    path = solution.save(tmp_path / "answer.cordes")
    rewritten(path, change)
    loaded = cordes.load(path, python_problem())
    assert loaded.result is cordes.Result.converged_uncertified
    assert re.search(reason, certificate_of(loaded).reason)
    assert np.array_equal(loaded(POINTS), solution(POINTS))


def test_a_callback_has_no_fingerprint():
    import jax

    def called(x):
        shape = jax.ShapeDtypeStruct((), jnp.float64)
        return jax.pure_callback(lambda x: np.float64(x[0]), shape, x)

    assert fingerprint(called, np.zeros(2)) is None
    assert fingerprint(lambda x: x[0], np.zeros(2)) is not None


@pytest.mark.long
def test_fingerprints_are_the_same_in_another_process():
    names = ("ex4.2-discontinuous", "ex4.5-hjb", "ex4.6-monge-ampere", "transport-ellipses")
    code = (
        "import cordes, json; from cordes.storage import _fingerprint; "
        f"print(json.dumps([_fingerprint(cordes.gallery[name]) for name in {names!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "5"},
        capture_output=True,
        check=True,
        text=True,
    )
    found = [storage._fingerprint(cordes.gallery[name]) for name in names]
    assert json.loads(done.stdout) == json.loads(json.dumps(found))
    assert len({each["parts"]["the equation"] for each in found}) == len(names)
