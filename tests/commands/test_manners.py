"""What surrounds the solver: `cordes new`, completion in shells, `cordes doctor`, citations, and
the files that speak about the project."""

import importlib
import importlib.metadata
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import cordes
from cordes.citation import TITLE
from cordes.commands import doctor
from cordes.commands.arguments import COMMANDS, gallery_names
from cordes.commands.new import new_problem
from cordes.commands.templates import KINDS, TEMPLATES
from cordes.errors import CordesError
from cordes.problems.written.files import load_problem
from cordes.problems.written.toml_file import _EQUATIONS
from cordes.runtime.packages import numbers

ROOT = Path(__file__).parents[2]
CLASSES = {
    "linear": cordes.Linear,
    "insulated-box": cordes.Linear,
    "hjb": cordes.HJB,
    "monge-ampere": cordes.MongeAmpere,
    "transport": cordes.Transport,
    "heat": cordes.Parabolic,
    "american-put": cordes.Obstacle,
    "l-shape": cordes.Linear,
    "plate-with-holes": cordes.Linear,
}
EXAMPLES = ("american-put", "insulated-box", "l-shape", "plate-with-holes")
# Those that are a tour of all options of their kind; one that begins at the end has no beginning.
TOURS = [template for template in TEMPLATES if template[0] not in EXAMPLES]
NOT_BOTH = {
    "heat": {"terminal", "boundary"},
    "hjb": {"boundary", "horizon", "initial", "terminal"},
}
every_template = pytest.mark.parametrize(
    ("kind", "ending"), TOURS, ids=lambda value: str(value).strip(".")
)


@pytest.fixture
def invoke(invoke, tmp_path, monkeypatch):
    """Commands run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return invoke


# cordes new ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "ending", "norm", "bound"),
    [
        ("linear", ".toml", "rms", 1e-4),
        ("hjb", ".toml", "rms", 1e-11),
        ("hjb", ".py", "rms", 1e-10),
        ("monge-ampere", ".toml", "Linf", 1e-9),
        ("transport", ".py", "map_L2", 1e-8),
        ("heat", ".toml", "rms", 1e-6),
        ("american-put", ".toml", "Linf", 1e-9),
        ("l-shape", ".toml", "Linf", 1e-8),
        ("plate-with-holes", ".toml", "Linf", 1e-8),
    ],
)
def test_a_new_file_solves_as_it_is(invoke, kind, ending, norm, bound):
    """The Python files of linear and Monge–Ampère problems hold the same equations (next test), and
    are not solved again."""
    status, stdout, _ = invoke("new", f"mine{ending}", "--kind", kind, "--json")
    facts = json.loads(stdout)
    assert status == 0
    assert facts.keys() == {"file", "kind", "format", "name", "next", "note"}
    status, stdout, stderr = invoke(*shlex.split(facts["next"][0])[1:], "--json")
    solved = json.loads(stdout)
    # The convexity of an answer is seen at points only.
    certain = ("linear", "hjb", "heat", "l-shape", "plate-with-holes")
    result = "converged" if kind in certain else "converged_uncertified"
    assert (status, solved["result"], solved["problem"]) == (0, result, "mine"), stderr
    assert 0 < solved["certificate"][norm] < bound
    assert solved["condition"]["satisfied"]
    assert "Warning" not in stderr
    if solved["error"]:
        assert solved["error"]["l2"] <= solved["certificate"]["rms"]


@pytest.mark.parametrize(
    "kind", ["linear", "monge-ampere", "heat", "american-put", "l-shape", "plate-with-holes"]
)
def test_both_formats_hold_the_same_equation(tmp_path, kind):
    problems = [
        load_problem(new_problem(str(tmp_path / f"same{ending}"), kind)["file"])
        for ending in (".toml", ".py")
    ]
    assert repr(problems[0].domain) == repr(problems[1].domain)
    for x in problems[0].domain.interior_points(20, seed=1):
        for name in ("A", "b", "c", "f", "g"):
            if hasattr(problems[0], name):
                first, second = (
                    np.asarray(getattr(problem, name)(jnp.asarray(x))) for problem in problems
                )
                np.testing.assert_allclose(first, second, rtol=1e-14, atol=1e-14)


@every_template
def test_every_option_stands_in_the_file_and_works_as_it_stands(tmp_path, kind, ending):
    path = Path(new_problem(str(tmp_path / f"full{ending}"), kind)["file"])
    text = path.read_text()
    if ending == ".toml":
        _, required, optional = _EQUATIONS["parabolic" if kind == "heat" else kind]
        wanted = {"schema", "kind", "name", "type", *required, *optional}
        used, unused = (
            set(re.findall(rf"^{mark}(\w+) = ", text, re.MULTILINE)) for mark in ("", "# ")
        )
        taken = re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE)
    else:
        wanted = set(inspect.signature(CLASSES[kind]).parameters)
        used, unused = (
            set(re.findall(rf"^    {mark}(\w+)=", text, re.MULTILINE)) for mark in ("", "# ")
        )
        taken = re.sub(r"^    # (?=\w+=)", "    ", text, flags=re.MULTILINE)
    assert wanted - NOT_BOTH.get(kind, set()) <= used | unused
    assert not used & unused
    path.write_text(taken)
    problem = load_problem(path)
    assert isinstance(problem, CLASSES[kind])
    assert problem.exact is not None
    if kind == "linear":
        # The ε that the comment vouches for holds.
        assert cordes.check(problem).epsilon >= problem.epsilon > 0


def test_what_new_says_to_people(invoke, tmp_path):
    status, stdout, stderr = invoke("new", "heat")
    assert (status, stderr) == (0, "")
    assert "cordes solve heat.toml" in stdout
    (tmp_path / "my problems").mkdir()
    status, stdout, _ = invoke("new", "my problems/heat", "--python", "--json")
    facts = json.loads(stdout)
    assert shlex.split(facts["next"][0]) == ["cordes", "solve", "my problems/heat.py"]
    assert (tmp_path / "my problems" / "heat.py").is_file()
    # TOML has no transport: a name alone becomes a Python file, and this is said.
    status, stdout, _ = invoke("new", "move", "--kind", "transport", "--toml")
    assert (status, (tmp_path / "move.py").is_file(), (tmp_path / "move.toml").exists()) == (
        0,
        True,
        False,
    )
    assert "cannot be written in TOML" in stdout
    status, stdout, _ = invoke("new", "move-again", "--kind", "transport")
    assert (status, "TOML" in stdout) == (0, False)


def test_new_replaces_nothing_unless_told(invoke, tmp_path):
    (tmp_path / "mine.toml").write_text("precious")
    status, _, stderr = invoke("new", "mine")
    assert (status, (tmp_path / "mine.toml").read_text()) == (2, "precious")
    assert "--force" in stderr
    assert invoke("new", "mine", "--force")[0] == 0
    assert "precious" not in (tmp_path / "mine.toml").read_text()
    (tmp_path / "folder.toml").mkdir()
    assert "cannot be written" in invoke("new", "folder", "--force")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "--kind", "linear"], "is no name"),
        (["."], "is no name"),
        ([".."], "is no name"),
        ([".toml"], "is no name"),
        (["a/"], "is no name"),
        (["3d"], "is no name"),
        (["a b"], "is no name"),
        (["a.json"], "is no name"),
        (['a"b'], "is no name"),
        (["a\nb"], "is no name"),
        (["--", "-x"], "is no name"),
        (["mine.py", "--toml"], "--toml was given"),
        (["mine.toml", "--python"], "--python was given"),
        (["mine", "--toml", "--python"], "both given"),
        (["mine.toml", "--kind", "transport"], "mine.py --kind transport"),
        (["nowhere/mine"], "There is no folder nowhere"),
        (["mine", "--kind", "monge-ampre"], "Did you mean monge-ampere"),
        (["jax.py"], "stand in the way"),
        (["random", "--python"], "stand in the way"),
        (["x" * 300], "cannot be written"),
        ([], "Missing argument"),
    ],
)
def test_what_new_refuses(invoke, tmp_path, arguments, message):
    status, stdout, stderr = invoke("new", *arguments)
    assert (status, stdout) == (2, "")
    assert message in stderr
    assert list(tmp_path.iterdir()) == []


# Completion ---------------------------------------------------------------------------------------


def test_the_light_names_are_those_of_the_gallery():
    assert gallery_names() == list(cordes.gallery)


@pytest.mark.parametrize("command", ["check", "solve", "bench", "study"])
def test_problems_are_completed(invoke, monkeypatch, capsys, tmp_path, command):
    (tmp_path / "example.toml").touch()
    (tmp_path / "exclude.txt").touch()
    monkeypatch.setenv("_CORDES_COMPLETE", "complete_bash")
    for word, expected in (
        ("ex4.2", ["ex4.2-continuous", "ex4.2-discontinuous"]),
        ("exa", ["example.toml"]),
        ("exc", []),
        ("/", []),
    ):
        monkeypatch.setenv("COMP_WORDS", f"cordes {command} {word}")
        monkeypatch.setenv("COMP_CWORD", "2")
        with pytest.raises(SystemExit) as ended:
            invoke()
        assert ended.value.code == 0
        assert capsys.readouterr().out.split() == expected


def test_completion_loads_nothing_numerical():
    words = {
        "_CORDES_COMPLETE": "complete_bash",
        "COMP_WORDS": "cordes solve ex4.1-s",
        "COMP_CWORD": "2",
    }
    command = [sys.executable, "-X", "importtime", "-m", "cordes"]
    done = subprocess.run(
        command,
        env=os.environ | words,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["ex4.1-smooth", "ex4.1-singular"]
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    }
    assert "typer" in loaded
    assert not loaded & {"jax", "numpy", "scipy", "equinox", "matplotlib"}


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["--citation"], ["solve", "--help"], ["new", "plate"]]
)
def test_what_computes_nothing_loads_nothing_numerical(tmp_path, words):
    script = (
        "import runpy, sys\n"
        "try:\n    runpy.run_module('cordes', run_name='__main__', alter_sys=True)\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)"
    )
    # As the script that pip installs: the name of the program is that of the command.
    program = tmp_path / "cordes"
    program.write_text(script)
    done = subprocess.run(
        [sys.executable, program, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout
    assert not set(done.stderr.split()) & {"jax", "numpy", "scipy", "equinox", "matplotlib"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_shell_installs_and_uses_the_completion(tmp_path):
    """As a user does: install, open a new shell, type the beginning of a name."""
    (tmp_path / "cordes").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cordes "$@"\n'
    )
    (tmp_path / "cordes").chmod(0o755)
    environment = os.environ | {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    script = """
        cordes --install-completion
        source ~/.bashrc
        COMP_WORDS=(cordes solve ex4.2-d) COMP_CWORD=2
        _cordes_completion cordes
        echo "completed: ${COMPREPLY[*]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "bash completion installed" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "completed: ex4.2-discontinuous"


# cordes doctor ------------------------------------------------------------------------------------

GOOD_TEST = {
    "result": "converged",
    "seconds": 1.0,
    "error": {"l2": 1e-12, "linf": 2e-12},
    "bound": {"rms": 1e-10, "Linf": 1e-9},
    "reason": None,
}


@pytest.fixture
def quick(monkeypatch):
    """A self-test that is good, and takes no time."""
    monkeypatch.setattr(
        doctor, "self_test", lambda: (GOOD_TEST, [doctor.judge_self_test(GOOD_TEST)])
    )


def bad(facts):
    return [finding["name"] for finding in facts["findings"] if finding["status"] == "bad"]


def test_a_healthy_machine(invoke, monkeypatch, tmp_path):
    settings = {
        "jax_enable_x64": True,
        "jax_default_matmul_precision": "highest",
        "jax_compilation_cache_dir": str(tmp_path),
    }
    monkeypatch.setattr(doctor, "_setting", settings.get)
    (tmp_path / "program").write_bytes(b"x" * 1000)
    status, stdout, _ = invoke("doctor", "--json")
    facts = json.loads(stdout)
    assert (status, facts["healthy"], bad(facts)) == (0, True, [])
    assert facts["versions"]["cordes"] == cordes.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert len(facts["devices"]) >= 1
    assert (facts["cache"]["bytes"], facts["cache"]["files"], facts["cache"]["writable"]) == (
        1000,
        1,
        True,
    )
    assert 0 < facts["precision"]["float64_product_error"] < 1e-14
    assert 1e-9 < facts["precision"]["float32_product_error"] < 1e-6
    test = facts["self_test"]
    assert test["result"] == "converged"
    assert 0 < test["error"]["l2"] <= test["bound"]["rms"] < 1e-9
    assert test["error"]["linf"] <= test["bound"]["Linf"] < 1e-9
    assert {finding["name"] for finding in facts["findings"]} >= {
        "versions",
        "devices",
        "float64",
        "float32 products",
        "cache",
        "cores",
        "self-test",
    }


def test_settings_that_make_cordes_ill(invoke, monkeypatch, tmp_path, quick):
    (tmp_path / "file").touch()
    healthy = {
        "jax_enable_x64": True,
        "jax_default_matmul_precision": "highest",
        "jax_compilation_cache_dir": str(tmp_path),
    }

    def examine(**changed):
        monkeypatch.setattr(doctor, "_setting", (healthy | changed).get)
        status, stdout, _ = invoke("doctor", "--json")
        facts = json.loads(stdout)
        assert status == (0 if facts["healthy"] else 1)
        assert all(
            finding["remedy"] for finding in facts["findings"] if finding["status"] != "good"
        )
        return facts

    assert bad(examine(jax_enable_x64=False)) == ["float64"]
    assert bad(examine(jax_compilation_cache_dir=str(tmp_path / "file" / "cache"))) == ["cache"]
    off = examine(jax_compilation_cache_dir=None)
    assert (
        bad(off),
        [finding["status"] for finding in off["findings"] if finding["name"] == "cache"],
    ) == ([], ["note"])
    # Looking makes no folder.
    assert examine(jax_compilation_cache_dir=str(tmp_path / "later" / "cache"))["cache"]["writable"]
    assert not (tmp_path / "later").exists()


def test_products_with_few_digits_are_noticed(invoke, monkeypatch, quick):
    product = jnp.matmul
    monkeypatch.setattr(
        jnp,
        "matmul",
        lambda a, b: product(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)).astype(a.dtype),
    )
    status, stdout, _ = invoke("doctor")
    assert (status, bad(doctor.examine())) == (1, ["float32 products", "float64 products"])
    assert "Unset JAX_DEFAULT_MATMUL_PRECISION" in re.sub(r"[\s│]+", " ", stdout)


def test_packages_that_are_missing_or_old(monkeypatch, quick):
    required = [
        "jax>=99.1",
        "numpy>=1.0",
        "no-such-package>=1.0",
        'also-missing>=2.0; extra == "toys"',
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: required)
    facts = doctor.examine()
    found = facts["findings"][0]
    assert found["status"] == "bad"
    assert "no-such-package" in found["found"]
    assert "needed: 99.1" in found["found"]
    assert "numpy" not in found["found"]
    assert facts["extras"] == {"toys": False}
    assert facts["versions"]["no-such-package"] is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.9", "0.10"),
        ("1.26.4", "2.0"),
        ("0.10", "0.10.2"),
        ("2.0", "2.0.1"),
        ("2.0.1", "2.1.0rc1"),
        ("1.9", "1.10+cpu"),
    ],
)
def test_versions_are_compared_as_numbers(older, newer):
    assert numbers(older) < numbers(newer)
    assert numbers("5.3") == numbers("5.3.0")


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({}, "good", "certified 1.0e-10"),
        ({"error": {"l2": 2e-10, "linf": 2e-10}}, "bad", "smaller than the error"),
        ({"error": {"l2": 1e-12, "linf": 2e-9}}, "bad", "smaller than the error"),
        ({"error": {"l2": float("nan"), "linf": float("nan")}}, "bad", "smaller than the error"),
        (
            {"error": {"l2": 1e-6, "linf": 1e-5}, "bound": {"rms": 1e-4, "Linf": 1e-3}},
            "bad",
            "largest error",
        ),
        ({"result": "stagnated"}, "bad", "stagnated"),
        ({"bound": {"rms": None, "Linf": None}, "reason": "a reason"}, "bad", "a reason"),
    ],
)
def test_how_the_self_test_is_judged(changed, status, words):
    finding = doctor.judge_self_test(GOOD_TEST | changed)
    assert finding.status == status
    assert words in finding.found
    assert (finding.remedy is None) == (status == "good")


def test_a_solve_that_fails_is_a_finding_and_not_a_crash(invoke, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the device is on fire")

    monkeypatch.setattr(cordes, "solve", broken)
    status, stdout, _ = invoke("doctor", "--json")
    facts = json.loads(stdout)
    assert (status, facts["self_test"]) == (1, None)
    assert "the device is on fire" in facts["findings"][-1]["found"]


# Citation and the files of the project ------------------------------------------------------------


def cff():
    return (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_versions_titles_and_licences_agree():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    stated = dict(re.findall(r"^([\w-]+): \"?(.+?)\"?$", cff(), re.MULTILINE))
    assert stated["version"] == cordes.__version__
    assert project["dynamic"] == ["version"]
    assert settings["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "cordes.__version__"}
    assert stated["license"] == project["license"]
    assert stated["title"] == TITLE
    assert (stated["cff-version"], stated["type"]) == ("1.2.0", "software")
    assert stated["message"]
    assert re.search(r'^authors:\n  - name: "The cordes developers"\n(?! )', cff(), re.MULTILINE)


# The public names of version 0.1.0.
FIRST = """
    AbstractDomain Ball Box Certificate Condition ConvexityWarning CordesConditionWarning
    CordesError Ellipsoid HJB Linear MongeAmpere OutsideDomainWarning Polygon Result Solution
    Transport UnboundedHessianWarning UndeclaredJumpWarning certify check citation gallery load
    solve
"""


def test_the_changelog_names_what_is_new_and_nothing_is_gone():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(FIRST.split()) <= set(cordes.__all__)
    new = set(cordes.__all__) - set(FIRST.split())
    assert not [name for name in sorted(new) if not re.search(rf"\b{name}\b", text)]


def test_tab_shows_public_names_only():
    assert dir(cordes) == sorted(cordes.__all__)
    assert all(hasattr(cordes, name) for name in cordes.__all__)
    assert not {"os", "sys", "jax", "Path", "runtime", "commands", "public"} & set(dir(cordes))
    from_star = {}
    exec("from cordes import *", from_star)
    assert set(from_star) - {"__builtins__"} == set(cordes.__all__)


def test_every_command_makes_its_report_and_says_what_it_does():
    names = {path.stem for path in (ROOT / "cordes" / "commands").glob("*.py")}
    assert COMMANDS.keys() <= names
    for name, arguments in COMMANDS.items():
        module = importlib.import_module(f"cordes.commands.{name}")
        given = inspect.signature(module.make_report).parameters["given"].annotation
        assert given is arguments
        assert arguments.__doc__.endswith((".", "?"))


def test_citation(invoke):
    text = cordes.citation()
    assert re.findall(r"^@(\w+)\{(\w+),$", text, re.MULTILINE) == [
        ("software", "cordes"),
        ("unpublished", "cpinn"),
    ]
    depth = np.cumsum([{"{": 1, "}": -1}.get(letter, 0) for letter in text])
    assert depth[-1] == 0
    assert np.min(depth) == 0
    assert f"version = {{{cordes.__version__}}}" in text
    for name in ("Hu", "Jin", "Li"):
        assert f"family-names: {name}\n" in cff()
        assert f"{name}, " in text
    # The paper has one title, here in BibTeX and there in plain letters.
    plain = text.partition("@unpublished")[2].replace(r"\`{e}", "è")
    title = re.search(r"title +=(.*?),\n  note", plain, re.DOTALL)[1]
    assert f'title: "{" ".join(re.sub("[{}]", "", title).split())}"' in cff()
    assert invoke("--citation") == (0, text + "\n", "")


def test_the_guide_for_contributors_names_what_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diagram = "\n".join(line for line in text.splitlines() if line.startswith("    "))
    rooms = {path.parent.name for path in (ROOT / "cordes").glob("*/__init__.py")}
    assert {room for room in rooms if f"{room}/" not in diagram} == set()
    paths = re.findall(r"`((?:cordes|tests|benchmarks|docs|examples)/[\w/.]*)`", text)
    assert len(paths) > 15
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert set(re.findall(r"^    make (\w+)", text, re.MULTILINE)) <= set(
        re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    )


def test_kinds_are_those_that_can_be_written():
    assert set(KINDS) == CLASSES.keys()
    with pytest.raises(CordesError, match="no kind 'elliptic'"):
        new_problem("x", "elliptic")
