"""What a few bytes of a file may become: limits hold before memory is taken, and say what to do."""

import io
import time
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import cordes
from cordes.ansatz.cells import pieces
from cordes.ansatz.plane.network import Expansion
from cordes.errors import FileError
from cordes.problems.written.files import load_problem
from cordes.problems.written.toml_file import problem_from_toml
from cordes.readers import archive
from cordes.readers.archive import read_arrays, read_json
from cordes.readers.toml_text import MAX_TEXT, read_toml

BOX = 'schema = 1\nkind = "linear"\n[domain]\ntype = "box"\nlower = [-1, -1]\nupper = [1, 1]\n'
END = "[equation]\nA = 1\nf = 1\n"
CHAIN = "".join(f"d{k} = 'sin(d{k - 1})'\n" for k in range(1, 600))
PRODUCTS = "".join(f"d{k} = '{'*'.join(['x1'] * 600)}'\n" for k in range(100))
CORNERS = ", ".join(f"[{k}, {k * k}]" for k in range(1001))
SCHEMA_2 = BOX.replace("schema = 1", "schema = 2")
SQUARES = "+".join(["x1*x1"] * 290)
SIDES = "".join(
    f"{side} = {{type = 'robin', kappa = 1, h = 'K'}}\n"
    for side in ("left", "right", "bottom", "top")
)
LEFT = (
    f"[boundary]\n{SIDES}".replace("K", SQUARES)
    + "[definitions]\n"
    + "".join(f"d{k} = '{SQUARES}'\n" for k in range(32))
)
TABLES = "".join(f"d{k} = {{values = [[1, 2], [3, 4]]}}\n" for k in range(400))
TABLE = SCHEMA_2 + "[definitions]\nk = {values = [[1, 2], [3, 4]], %s}\n" + END
PARTS = BOX.split("type")[0] + (
    "type = 'union'\nof = [%s, {type = 'box', lower = [0, 0], upper = [1, 1]}]\n" + END
)


def wide(d: int) -> str:
    return BOX.replace("[-1, -1]", f"{[0] * d}").replace("[1, 1]", f"{[1] * d}")


# Problem files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOX + END.replace("f = 1", "f = " + "9" * 5000), "a number has more than 4300 digits"),
        (BOX + END.replace("f = 1", "f = 0x" + "f" * 5000), "f = a number of about 60.. digits"),
        (BOX.replace("schema = 1", "schema = 0x" + "f" * 5000) + END, "schema = a number of about"),
        (BOX.replace('"linear"', "0x" + "f" * 5000) + END, "kind = a number of about"),
        ("a." * 20 + "a = 1\n" + BOX + END, "a key has more than 20 parts"),
        ("[" + "a . " * 5000 + "a]\n" + BOX + END, "a key has more than 20 parts"),
        ('"a".' * 30 + "a = 1\n" + BOX + END, "a key has more than 20 parts"),
        (BOX + END + "# " + "x" * MAX_TEXT, "problem files have at most 1000000"),
        ("k" * 5000 + " = 1\n" + BOX + END, "the key 'kkk.*has more than 100 characters"),
        (f'name = "{"n" * 1000}"\n{BOX}{END}', "of at most 200 characters, not 'nnn"),
        (BOX + "[equation]\nA = 1\nf = '" + "x1+" * 700 + "x1'", "has 2102 characters, 2000 are"),
        (wide(201) + END, "lower has 201 entries: files are for up to 200 dimensions"),
        (BOX + "[definitions]\nd0 = 'x1'\n" + CHAIN + END, "600 definitions, 500 are allowed"),
        (BOX + "[definitions]\n" + PRODUCTS + END, "about 60000 operations in all, 20000 are"),
        (wide(200) + "[equation]\nA = 1\nf = '" + "+".join(["r"] * 150) + "'", "operations in all"),
        (
            BOX.split("type")[0] + f"type = 'polygon'\nvertices = [{CORNERS}]\n" + END,
            "The polygon has 1001 vertices, 1000 are allowed",
        ),
        (SCHEMA_2 + LEFT + END, "about 20884 operations in all, 20000 are"),
        (SCHEMA_2 + "[definitions]\n" + TABLES + END, "about 40000 operations in all, 20000 are"),
        (TABLE % "order = [1]", r"order = \[1\]: 3 \(a smooth spline\) or 1"),
        (TABLE % "order = true", r"order = True: 3 \(a smooth spline\) or 1"),
        (TABLE % "image = []", r"image = \[\]: True or False is needed"),
        (PARTS % "{type = [1]}", r"of\[1\]: There is no type of domain '\[1\]'"),
        (PARTS % "{type = {a = 1}}", r"of\[1\]: There is no type of domain"),
        (PARTS % "{type = 'union', of = []}", r"of\[1\] must be a table with the type of a single"),
        (
            BOX + END + "interfaces = [" + ", ".join(['"x1"'] * 101) + "]",
            "interfaces has 101 entries, 100 are allowed",
        ),
    ],
)
def test_too_much_is_refused_at_once(text, message):
    start = time.process_time()
    with pytest.raises(cordes.CordesError, match=message) as refused:
        problem_from_toml(text, "p.toml")
    assert time.process_time() - start < 2
    assert len(str(refused.value)) < 1000


def test_what_is_below_the_limits_is_read():
    parts = ".".join("a" * 20)
    assert read_toml(f"{parts} = 1", "p.toml")
    # Dots of numbers, texts and comments are none of keys.
    numbers = ", ".join(["0.1"] * 50)
    text = f"# {'a.' * 50}\nvalues = [{numbers}]\nname = \"{'a.' * 50}\"\nother = '{'a.' * 50}'\n"
    assert len(read_toml(text, "p.toml")["values"]) == 50


@pytest.mark.parametrize(
    "text",
    [
        "a" * 900_000,
        '"' + '\\"' * 400_000,
        "'" * 900_001,
        "a " * 400_000,
        "# " * 400_000,
        "a.b " * 200_000,
    ],
)
def test_looking_for_dots_takes_no_longer_for_hostile_texts(text):
    start = time.process_time()
    with pytest.raises(FileError) as refused:
        read_toml(text + "\n=", "p.toml")
    assert time.process_time() - start < 5
    assert len(str(refused.value)) < 1000


def test_large_files_are_not_read(tmp_path):
    path = tmp_path / "large.toml"
    with open(path, "wb") as file:
        file.truncate(10**12)
    with pytest.raises(FileError, match="problem files have at most"):
        load_problem(path)


# Archives -----------------------------------------------------------------------------------------


def packed(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def with_part(name: str, content: bytes) -> bytes:
    file = io.BytesIO(packed(a=np.ones(3)))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, content)
    return file.getvalue()


def header(shape, kind="<f8") -> bytes:
    stream = io.BytesIO()
    said = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, said)
    return stream.getvalue()


def test_arrays_come_back_as_they_were():
    given = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "c": np.array(3.0),
        "d": np.array(["x", "yy"]),
        "e": np.zeros((0, 2), np.uint8),
    }
    found = read_arrays(packed(**given), "it")
    assert list(found) == list(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_bomb_is_not_unpacked(monkeypatch):
    data = packed(a=np.zeros(100_000))
    monkeypatch.setattr(archive, "MOST_BYTES", 100_000)
    monkeypatch.setattr(archive, "_array", None)
    with pytest.raises(
        FileError, match="it: unpacked it would be 800 KB in 1 arrays; at most 100 KB"
    ):
        read_arrays(data, "it")


def test_a_bomb_that_lies_about_its_size_is_cut():
    """The size in the list of contents is what is added up; the packed data hold more."""
    data = bytearray(packed(a=np.zeros(100_000)))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = (200).to_bytes(4, "little")
    with pytest.raises(FileError, match="while reading"):
        read_arrays(bytes(data), "it")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", header((10**15,))),
        ("x.npy", header((2**31,))),
        ("x.npy", header((-5,))),
        ("x.npy", header((2**62,), "|V0")),
        ("x.npy", header((1,), "|O") + bytes(8)),
        ("x.npy", header((1,)) + bytes(16)),
        ("x.npy", b"nothing"),
        ("../x.npy", header((1,)) + bytes(8)),
        ("x.txt", b"text"),
        ("a.npy", header((1,)) + bytes(8)),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_strange_parts_are_refused(name, content):
    with pytest.raises(FileError, match="it"):
        read_arrays(with_part(name, content), "it")


@pytest.mark.parametrize("text", [b"", b"[1]", b'{"half": ', b"[" * 100_000, b"\xff", b"1" * 5000])
def test_what_is_no_object_is_refused(text, tmp_path):
    for given in (text, tmp_path / "a.json"):
        (tmp_path / "a.json").write_bytes(text)
        with pytest.raises(FileError, match=r"^it cannot be read: .* Delete it\.$"):
            read_json(given, "it", " Delete it.")


def test_long_json_is_not_parsed(monkeypatch):
    monkeypatch.setattr(archive, "MOST_JSON", 10)
    with pytest.raises(FileError, match="at most 10 B are read"):
        read_json(b'{"a": 1234567}', "it")


def test_numbers_that_ask_for_gigabytes_are_refused_before_a_table_is_made(monkeypatch):
    """Both files would have some kilobytes."""
    inputs = SimpleNamespace(center=np.zeros(2), scale=np.ones(2))
    box = np.array([[-1, -1, 1, 1, 20_000]], float)
    arrays = {"box": box, "centers": np.zeros((0, 11)), "powers": np.zeros((0, 4))}
    arrays["coefficients"] = np.zeros(9)
    with pytest.raises(cordes.OptionError, match="do not belong together"):
        Expansion.from_arrays(arrays, inputs)
    monkeypatch.setattr(pieces, "products_of", None)
    lines, degrees = np.linspace(-1, 1, 300)[None].repeat(2, axis=0), np.full(2, 64.0)
    with pytest.raises(cordes.OptionError, match="do not belong together"):
        pieces.from_pieces({"lines": lines, "degrees": degrees}, inputs, True)
