"""The checker of proofs on honest files: what it prints, what it imports, how it ends."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from flint import ctx

from cordes_check.proofs import check

ROOT = Path(__file__).parents[2]
PROOFS, CHECKER = ROOT / "tests" / "data" / "proofs", ROOT / "checker"
BASES = ("linear", "jumps", "control", "determinant", "length")
each = pytest.mark.parametrize("base", BASES)


def data_of(base):
    return json.loads((PROOFS / f"{base}.proof").read_bytes().partition(b"\n")[2])


@pytest.fixture(autouse=True)
def _precision():
    kept = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = kept


@each
def test_an_honest_proof_is_a_theorem(base):
    text, facts = check(PROOFS / f"{base}.proof")
    assert text.startswith("THEOREM. Let")
    assert "There is exactly one u" in text
    assert "Not claimed: anything of values" in text
    for name, claim in data_of(base)["claims"].items():
        assert 0 < float(facts["bounds"][name]) <= float(claim)


def run(*words, blocked=("cordes", "jax", "numpy", "scipy", "jaxlib")):
    """The checker in a process of its own in which these packages cannot be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))"
    start = f"sys.path.insert(0, {str(CHECKER)!r}); sys.argv = ['', *{list(map(str, words))!r}]"
    code = f"{block}; {start}; import runpy; runpy.run_module('cordes_check', run_name='__main__')"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_it_runs_without_cordes_and_jax_and_says_how_it_ended(tmp_path):
    done = run(PROOFS / "linear.proof")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("THEOREM")
    done = run(PROOFS / "linear.proof", "--json")
    assert done.returncode == 0
    assert {"L2", "Linf", "H1", "H2"} == {*json.loads(done.stdout)["bounds"]}
    path = tmp_path / "forged.proof"
    path.write_bytes((PROOFS / "linear.proof").read_bytes().replace(b"0.5", b"0.6"))
    done = run(path)
    assert (done.returncode, done.stdout.strip()) == (
        1,
        "REFUSED: the file was changed after it was written",
    )
    path.write_bytes(b"no proof at all")
    assert run(path).returncode == 2
    assert run(tmp_path / "nowhere.proof").returncode == 2
    assert run().returncode == 2
    done = run(PROOFS / "length.proof", "--seconds", "0.3")
    assert (done.returncode, "0.3 seconds" in done.stdout) == (1, True)


def test_it_imports_python_flint_and_the_standard_library_alone():
    found = set()
    for path in (CHECKER / "cordes_check").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    assert found - {*sys.stdlib_module_names} == {"cordes_check", "flint"}
    text = "".join(p.read_text(encoding="utf-8") for p in (CHECKER / "cordes_check").glob("*.py"))
    assert (
        re.findall(
            r"\b(eval|exec|compile|__import__|pickle|getattr)\(", text.replace("re.compile(", "")
        )
        == []
    )
