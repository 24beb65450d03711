"""A reader of VTK's XML files by Python's own XML parser, which shares no code with the writer."""

import base64
import struct
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np

NAMES = {3: "line", 5: "triangle", 9: "quad", 10: "tetra", 12: "hexahedron"}
TYPES = {"Float64": "<f8", "Int64": "<i8", "UInt8": "u1"}


def read_vtu(path) -> SimpleNamespace:
    """Points (n, 3), cells in blocks of one type and data at the points."""
    root = ElementTree.fromstring(Path(path).read_text(encoding="utf-8"))
    assert root.attrib["byte_order"] == "LittleEndian"
    assert root.attrib["header_type"] == "UInt64"
    (piece,) = root.iter("Piece")
    arrays = {
        section: {entry.attrib["Name"]: _array(entry) for entry in piece.find(section)}
        for section in ("Points", "Cells", "PointData")
    }
    points, cells = arrays["Points"]["Points"], arrays["Cells"]
    assert len(points) == int(piece.attrib["NumberOfPoints"])
    assert len(cells["types"]) == len(cells["offsets"]) == int(piece.attrib["NumberOfCells"])
    corners = np.split(cells["connectivity"], cells["offsets"][:-1])
    blocks = [
        SimpleNamespace(type=NAMES[kind], data=np.array([c for c, k in pairs if k == kind]))
        for pairs in [list(zip(corners, cells["types"].tolist(), strict=True))]
        for kind in dict.fromkeys(k for _, k in pairs)
    ]
    return SimpleNamespace(points=points, cells=blocks, point_data=arrays["PointData"])


def _array(entry) -> np.ndarray:
    assert entry.attrib["format"] == "binary"
    raw = base64.b64decode(entry.text)
    (size,) = struct.unpack("<Q", raw[:8])
    assert size == len(raw) - 8
    values = np.frombuffer(raw[8:], dtype=TYPES[entry.attrib["type"]])
    components = int(entry.attrib.get("NumberOfComponents", 1))
    return values if components == 1 else values.reshape(-1, components)
