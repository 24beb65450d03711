"""Every command once, in its smallest form and in this process: it ends well and prints its facts.
The quick tier keeps all of them; what each command can do is tested in the other files."""

import functools
import json

import pytest

import cordes
from cordes import cli
from cordes.studies import bench
from cordes.surfaces import folded_surface
from cordes.surfaces.files import write_mesh

pytestmark = pytest.mark.quick

DISK = """
schema = 1
kind = "linear"
[domain]
type = "ball"
center = [0, 0]
radius = 1
[equation]
A = [[1, 0], [0, 1]]
f = "-8 * x1"
"""

SQUARE = """
schema = 1
kind = "linear"
[domain]
type = "box"
lower = [0, 0]
upper = [1, 1]
[equation]
A = [[1, 0], [0, 1]]
f = "-2 * sin(pi*x1) * sin(pi*x2)"
"""

# What comes after the name of the command; {} is the folder of the test.
COMMANDS = {
    "gallery": [],
    "check": ["{}/disk.toml"],
    "solve": ["{}/disk.toml", "--features", "40", "--out", "{}/answer"],
    "report": ["{}/one", "{}/other", "--out", "{}/comparison.html"],
    "bench": ["{}/disk.toml"],
    "surface": ["{}/sheet.obj"],
    "study": [
        *("ex4.2-continuous", "--epochs", "10", "--seeds", "1", "--train-only"),
        *("--out", "{}/study"),
    ],
    "new": ["{}/mine.toml"],
    "prove": ["{}/square.toml", "--out", "{}/proof"],
    "doctor": [],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    (folder / "disk.toml").write_text(DISK, encoding="utf-8")
    (folder / "square.toml").write_text(SQUARE, encoding="utf-8")
    write_mesh(folder / "sheet.obj", folded_surface(1, 0.2, columns=9, rows=7))
    return folder


def test_no_command_is_missing():
    assert {command.name for command in cli.app.registered_commands} == set(COMMANDS)


@pytest.fixture
def ready(request, invoke, folder, monkeypatch):
    """What a command needs: `report` compares two answers, and the yardstick of `bench` would be a
    minute of training."""
    for run, features in (("one", 20), ("other", 30)) if "report" in request.node.name else ():
        invoke("solve", folder / "disk.toml", "--features", features, "--out", folder / run)
    monkeypatch.setattr(bench, "epoch_seconds", lambda *_, **__: 0.25)
    monkeypatch.setattr(bench, "solve", functools.partial(cordes.solve, features=40))


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name, invoke, folder):
    arguments = [argument.format(folder) for argument in COMMANDS[name]]
    status, printed, told = invoke(name, *arguments, "--json")
    assert status == 0, told or printed
    assert json.loads(printed)
