"""What a proof may not cost: an answer, a file of somebody else, the patience of a shell."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import pytest

import cordes
from cordes.commands import prove as command
from cordes.proofs import prove as proofs
from cordes.runtime.clock import Clock
from cordes.runtime.signals import pause

CHECKER = [sys.executable, "-m", "cordes_check"]
SQUARE = """schema = 1\nkind = "linear"\n[domain]\ntype = "box"\nlower = [0, 0]\nupper = [1, 1]
[equation]\nA = 1\nf = "x1"\n"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Files that tell of faults.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "faults"))
    (tmp_path / "faults").mkdir()
    (tmp_path / "square.toml").write_text(SQUARE)
    return tmp_path


@pytest.fixture
def solving(monkeypatch):
    """Small answers."""
    solve = cordes.solve

    def small(problem, *_, **__):
        return solve(problem, "least-squares", features=20, certify=False, progress=False)

    monkeypatch.setattr(cordes, "solve", small)


@pytest.mark.parametrize("name", ["square.proof", "square.cordes", "square-proved.cordes"])
def test_what_is_there_is_neither_replaced_nor_solved_for(invoke, folder, name):
    (folder / name).write_text("mine")
    for more, said in ((), "--overwrite replaces it"), (["--overwrite"], "would be lost"):
        status, stdout, _ = invoke("prove", "square.toml", *more, "--json")
        assert (status, json.loads(stdout)["error"]["kind"]) == (2, "file")
        assert name in stdout
        assert said in stdout
    assert (folder / name).read_text() == "mine"
    assert {path.name for path in folder.iterdir()} == {name, "square.toml", "faults"}


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_limit_that_is_none_is_refused(invoke, folder, seconds):
    status, _, stderr = invoke("prove", "square.toml", "--max-seconds", seconds)
    assert status == 2
    assert "max_seconds" in stderr
    assert {path.name for path in folder.iterdir()} == {"square.toml", "faults"}


def stopped(*_, **__):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
    pause()


def broken(*_, **__):
    raise ZeroDivisionError("of the proof")


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "status", "reason"), [(stopped, 143, "interrupted"), (broken, 70, "of the proof")]
)
def test_a_proof_that_ends_early_costs_no_answer(
    invoke, monkeypatch, solving, folder, what, status, reason
):
    monkeypatch.setattr(proofs, "proven", what)
    found, stdout, _ = invoke("prove", "square.toml", "--json")
    assert found == status
    assert reason in stdout
    assert cordes.load("square.cordes").method == "least-squares"
    assert not (folder / "square.proof").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "status", "reason"), [(stopped, 143, "interrupted"), (broken, 1, "of the proof")]
)
def test_a_solve_whose_proof_ends_early_has_its_files(
    invoke, monkeypatch, solving, folder, what, status, reason
):
    monkeypatch.setattr(proofs, "proven", what)
    words = ["solve", "square.toml", "--prove", "--out", "out", "--max-seconds", "60", "--json"]
    found, stdout, _ = invoke(*words)
    facts = json.loads(stdout)
    assert found == status
    assert reason in facts["not_proved"]
    assert all(Path(file).exists() for file in facts["files"])
    assert cordes.load("out/answer.cordes").method == "least-squares"


def test_the_checker_ends_with_a_signal_and_with_the_time(monkeypatch):
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    start = time.monotonic()
    with pytest.raises(cordes.NotProvedError, match="time was up"):
        proofs._run(waits, Clock(0.3))
    monkeypatch.setattr(proofs, "check_deadline", interrupted)
    with pytest.raises(KeyboardInterrupt):
        proofs._run(waits, Clock())
    assert time.monotonic() - start < 30


@pytest.mark.long
def test_a_disk_that_is_full_is_told_with_a_status_of_its_own(invoke, monkeypatch, solving, folder):
    def full(path, _):
        raise cordes.FileError(f"{path} cannot be written: No space left on device.")

    monkeypatch.setattr(command, "write_file", full)
    status, stdout, _ = invoke("prove", "square.toml", "--json")
    facts = json.loads(stdout)
    assert (status, facts["proved"], facts["files"]) == (1, False, [])
    assert "No space left" in facts["reason"]


def interrupted():
    raise KeyboardInterrupt


# The checker as a program ------------------------------------------------------------------------


def checked(*words):
    words = [*CHECKER, *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def forged(path, **facts):
    body = json.dumps(facts).encode()
    path.write_bytes(f"cordes-proof 1 {hashlib.sha256(body).hexdigest()}\n".encode() + body)
    return path


@pytest.mark.long
def test_the_checker_refuses_what_is_no_proof(folder):
    key = forged(folder / "key.proof", name=None, problem="a." * 60_000 + "a = 1")
    (folder / "not.proof").write_bytes(b"PK\0\0")
    os.mkfifo(folder / "pipe.proof")
    for path in (key, "not.proof", "pipe.proof", "nothing.proof", folder, "/dev/zero"):
        done = checked(path)
        assert (done.returncode, done.stdout[:10]) == (2, "NO PROOF: "), path
        assert not done.stderr


@pytest.mark.long
def test_an_answer_that_unpacks_to_gigabytes_is_not_unpacked(folder):
    with zipfile.ZipFile(folder / "a.cordes", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weight0.npy", bytes(60 << 20))
    sha = hashlib.sha256((folder / "a.cordes").read_bytes()).hexdigest()
    network = {"weights": [], "biases": [], "coefficients": []}
    answer = {"file": "a.cordes", "sha256": sha}
    done = checked(
        forged(folder / "a.proof", name=None, problem="", answer=answer, network=network)
    )
    assert (done.returncode, done.stdout) == (1, "REFUSED: a.cordes is too large\n")


@pytest.mark.long
def test_what_the_checker_says_may_find_no_reader(folder):
    (folder / "not.proof").write_bytes(b"")
    command = f"{' '.join(CHECKER)} not.proof"
    for rest, status in (("> /dev/full", 1), (">&- 2>&-", 2), ("| true", 0)):
        done = subprocess.run(
            f"{command} {rest}", shell=True, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == status, rest
        assert "Traceback" not in done.stderr
