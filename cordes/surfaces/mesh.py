"""Triangle meshes: vertices, faces, and what is measured on them."""

from dataclasses import dataclass

import numpy as np

from cordes.errors import SurfaceError


@dataclass(frozen=True)
class Mesh:
    """Vertices (n, 3) and the vertex numbers of the faces (m, 3), from zero. Checked: shapes,
    finite coordinates, numbers in range."""

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        vertices, faces = np.asarray(self.vertices, dtype=np.float64), np.asarray(self.faces)
        if vertices.ndim == 2 and vertices.shape[1] == 2:
            vertices = np.column_stack([vertices, np.zeros(len(vertices))])
        if vertices.ndim != 2 or vertices.shape[1] != 3:
            raise SurfaceError(f"The vertices have shape {vertices.shape}; (n, 3) is needed.")
        triangles = faces.ndim == 2 and faces.shape[1] == 3 and len(faces) > 0
        if not triangles or not np.issubdtype(faces.dtype, np.integer):
            raise SurfaceError(
                f"The faces have shape {faces.shape} and type {faces.dtype}; whole numbers of "
                "shape (m, 3), m ≥ 1, are needed."
            )
        # Unsigned numbers would wrap around in every difference.
        faces = faces.astype(np.int64)
        wrong = np.any((faces < 0) | (faces >= len(vertices)), axis=1)
        if np.any(wrong):
            first = int(np.argmax(wrong))
            raise SurfaceError(
                f"Face {first} refers to the vertices {faces[first].tolist()}, but they are "
                f"numbered from 0 to {len(vertices) - 1}."
            )
        if not np.all(np.isfinite(vertices)):
            first = int(np.argmin(np.all(np.isfinite(vertices), axis=1)))
            raise SurfaceError(
                f"Vertex {first} has the coordinates {vertices[first].tolist()}: all must be "
                "finite."
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    @property
    def areas(self) -> np.ndarray:
        """The areas of the faces."""
        return np.linalg.norm(face_normals(self.vertices[self.faces]), axis=1) / 2

    @property
    def angles(self) -> np.ndarray:
        """The angle at each corner of each face in radians, shape (m, 3)."""
        return corner_angles(self.vertices[self.faces])


def face_normals(corner: np.ndarray) -> np.ndarray:
    """Normals of triangles with the corners (m, 3, 3), twice as long as their areas."""
    return np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])


def corner_angles(corner: np.ndarray) -> np.ndarray:
    """Angles of triangles with the corners (m, 3, d). The half-angle form of the arctangent stays
    accurate for needles."""
    angles = []
    for k in range(3):
        a, b = corner[:, (k + 1) % 3] - corner[:, k], corner[:, (k + 2) % 3] - corner[:, k]
        a, b = (v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300) for v in (a, b))
        angles.append(2 * np.arctan2(np.linalg.norm(a - b, axis=1), np.linalg.norm(a + b, axis=1)))
    return np.stack(angles, axis=1)


def merge_duplicates(mesh: Mesh) -> Mesh:
    """The mesh with vertices at the same place made one, in the order of their first appearance.
    STL files repeat each vertex for each face."""
    _, first, inverse = np.unique(mesh.vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Mesh(mesh.vertices[first[order]], rank[inverse.ravel()][mesh.faces])
