"""Meshes whose maps are known."""

import numpy as np
import scipy.io
import scipy.spatial

from cordes.surfaces import (
    Mesh,
    folded_surface,
)
from cordes.surfaces.conformal import flat_areas


def sheet(columns=13, rows=9, width=2.0, height=1.0, move=0.0, seed=3):
    """A flat rectangle with inner vertices moved at random, its corners without ears."""
    x, y = np.meshgrid(np.linspace(0, width, columns), np.linspace(0, height, rows))
    shift = np.random.default_rng(seed).uniform(-move, move, (rows, columns, 2)) * [
        width / columns,
        height / rows,
    ]
    shift[[0, -1]] = 0
    shift[:, [0, -1]] = 0
    flat = (np.stack([x, y], axis=-1) + shift).reshape(-1, 2)
    return Mesh(
        np.column_stack([flat, np.zeros(len(flat))]),
        folded_surface(1, 0.0, columns=columns, rows=rows).faces,
    )


def cap(rings, angle):
    """A cap of the unit sphere up to the given polar angle, in rings of six more vertices each."""
    flat = [np.zeros((1, 2))]
    for k in range(1, rings + 1):
        turn = 2 * np.pi * np.arange(6 * k) / (6 * k)
        flat.append(k / rings * np.stack([np.cos(turn), np.sin(turn)], axis=1))
    flat = np.concatenate(flat)
    faces = scipy.spatial.Delaunay(flat).simplices
    faces = np.where(flat_areas(flat, faces)[:, None] < 0, faces[:, ::-1], faces)
    # The rim is convex up to rounding: needles on it are not wanted.
    faces = faces[flat_areas(flat, faces) > 1e-6]
    theta, turn = angle * np.linalg.norm(flat, axis=1), np.arctan2(flat[:, 1], flat[:, 0])
    return Mesh(
        np.stack(
            [np.sin(theta) * np.cos(turn), np.sin(theta) * np.sin(turn), np.cos(theta)], axis=1
        ),
        faces,
    )


TETRAHEDRON = Mesh(
    np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
    np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]),
)
