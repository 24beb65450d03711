"""Faulty meshes of all formats: a mesh, or a message; never a hang, and no other mesh in silence.

python benchmarks/faults/meshes.py COUNT [SEED]
"""

import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import scipy.io
import trimesh
from judging import Tally

from cordes.surfaces import Mesh, prepare, read_mesh, write_mesh

SPLICED = [
    "999999999",
    "-1",
    "nan",
    "1e999",
    "\n",
    " ",
    "\0",
    "f 1 2 3\n",
    "v 0 0 0\n",
    "3 0 1 2\n",
]
SPLICED += ["end_header\n", "property list uchar int q\n", "element face 7\n", "OFF\n", "solid\n"]


def grid(n: int = 5) -> Mesh:
    axis = np.linspace(0, 1, n)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    vertices = np.stack([x, y, 0.2 * np.sin(3 * x) * np.cos(2 * y)], -1).reshape(-1, 3)
    i = np.arange(n * n).reshape(n, n)
    a, b, c, d = (part.ravel() for part in (i[:-1, :-1], i[1:, :-1], i[1:, 1:], i[:-1, 1:]))
    return Mesh(vertices, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]))


def files(folder: Path) -> dict[str, bytes]:
    """One good mesh in every format and encoding, by a name that ends in the suffix."""
    mesh, found = grid(), {}
    for suffix in (".obj", ".ply"):
        found[f"cordes{suffix}"] = write_mesh(folder / f"a{suffix}", mesh).read_bytes()
    other = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    for name, kind, options in (
        ("text.ply", "ply", {"encoding": "ascii"}),
        ("binary.ply", "ply", {}),
        ("text.off", "off", {}),
        ("binary.stl", "stl", {}),
        ("text.stl", "stl_ascii", {}),
    ):
        data = other.export(file_type=kind, **options)
        found[name] = data.encode() if isinstance(data, str) else bytes(data)
    for packed in (False, True):
        path = folder / "a.mat"
        scipy.io.savemat(path, {"v": mesh.vertices, "f": mesh.faces + 1}, do_compression=packed)
        found[f"{'packed' if packed else 'plain'}.mat"] = path.read_bytes()
    return found


def mutated(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice([1, 1, 2, 5])):
        kind, i = chance.random(), chance.randrange(max(len(data), 1))
        i = min(i, chance.randrange(300)) if chance.random() < 0.4 else i
        if kind < 0.4 and i < len(data):
            data = data[:i] + bytes([data[i] ^ 1 << chance.randrange(8)]) + data[i + 1 :]
        elif kind < 0.55:
            data = data[:i]
        elif kind < 0.7:
            data = data[:i] + data[i + chance.randint(1, 20) :]
        elif kind < 0.85:
            data = data[:i] + chance.choice(SPLICED).encode() + data[i:]
        else:
            j = chance.randrange(max(len(data), 1))
            data = data[:i] + data[j : j + 40] + data[i:]
    return data


def bomb(megabytes: int) -> bytes:
    """A compressed element of a MATLAB file, of zeros in a variable that nobody asked for."""
    size = megabytes << 20
    head = struct.pack("<IIIIII", 6, 8, 6, 0, 5, 8) + struct.pack("<ii", size // 8, 1)
    head += struct.pack("<I4s", (4 << 16) | 1, b"bomb") + struct.pack("<II", 9, size)
    packer = zlib.compressobj(1)
    data = packer.compress(struct.pack("<II", 14, len(head) + size) + head)
    for _ in range(megabytes):
        data += packer.compress(bytes(1 << 20))
    data += packer.flush()
    return struct.pack("<II", 15, len(data)) + data


PLY = """ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y
property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header
0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"""
OFF = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def by_hand(good: dict[str, bytes]) -> dict[str, tuple[str, bytes]]:
    """Faults that somebody thought of: suffix and content."""
    vertices = grid().vertices
    faces = grid().faces + 1.0
    texts = {
        ".ply": [
            *("", PLY[:40], PLY[:-6], PLY.replace("end_header\n", "")),
            *(PLY.replace("vertex 3", f"vertex {10**k}") for k in (9, 12, 30)),
            *(PLY.replace("face 1\n", f"face {10**k}\n") for k in (9, 12)),
            *(PLY.replace("float x", "quux x"), PLY.replace("property float y\n", "")),
            *(PLY.replace("3 0 1 2", "200 0 1 2"), PLY.replace("ascii", "binary_little_endian")),
        ],
        ".off": [
            *("", "OFF", "OFF\n", OFF[:20], "C" + OFF, OFF.replace("3 1 0", "-3 1 0")),
            *(OFF.replace("3 1 0", f"{10**12} 1 0"), OFF.replace("3 1 0", f"3 {10**12} 0")),
            *(OFF.replace("3 0 1 2", "-1 0 1 2"), OFF.replace("3 0 1 2", "9" * 5000)),
        ],
        ".obj": [
            *("", "v 0 0 0\n", OBJ.replace("f 1", "f 1.5"), OBJ.replace("f 1", "f -1"), "\0" * 999),
            *(OBJ.replace("3\n", "9" * 30 + "\n"), OBJ.replace("f 1", "f 0"), "f 1 2 3\n", "f\n"),
            *(OBJ.replace("0 0 0", "nan 0 0"), OBJ.replace("f 1 2 3", "f 1 2"), "v a b c\n"),
        ],
        ".stl": ["", "solid", "\0" * 80 + "\xff" * 4, "solid a\nfacet normal 0 0 1\nouter loop\n"],
    }
    found = {
        f"{suffix} {k}": (suffix, text.encode("latin-1"))
        for suffix, several in texts.items()
        for k, text in enumerate(several)
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.mat"
        for name, content in {
            "fractional": {"v": vertices, "f": faces + 0.5},
            "NaN": {"v": vertices, "f": np.where(faces == 3, np.nan, faces)},
            "complex": {"v": vertices * 1j, "f": faces},
            "text": {"v": "abc", "f": faces},
            "cells": {"v": np.array([vertices, 1], dtype=object), "f": faces},
            "sparse": {"v": vertices, "f": scipy.sparse.csc_matrix(faces)},
            "empty": {"v": np.zeros((0, 3)), "f": faces},
            "infinite": {"v": vertices, "f": faces * np.inf},
        }.items():
            scipy.io.savemat(path, content)
            found[f".mat {name}"] = (".mat", path.read_bytes())
    found[".mat bomb"] = (".mat", good["packed.mat"] + bomb(700))
    return found


def fuzz(count: int, seed: int = 1) -> Tally:
    chance, tally = random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        good = files(folder)
        for name, data in good.items():
            (folder / name).write_bytes(data)
            assert len(read_mesh(folder / name).faces) == len(grid().faces), name
        for note, (suffix, data) in by_hand(good).items():
            path = folder / f"m{suffix}"
            path.write_bytes(data)
            tally.judge("by hand", note, lambda path=path: prepare(read_mesh(path)))
        for _ in range(count):
            name = chance.choice(list(good))
            path = folder / f"m{Path(name).suffix}"
            path.write_bytes(mutated(good[name], chance))
            tally.judge(f"mutated {name}", "", lambda path=path: prepare(read_mesh(path)))
    return tally


if __name__ == "__main__":
    sys.exit(min(1, fuzz(*map(int, sys.argv[1:])).report()))
