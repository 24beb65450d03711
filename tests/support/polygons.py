"""Polygons for the constants of domains."""

import numpy as np

from cordes.domains import Polygon

PENTAGON = [[0, 0], [2, -0.2], [2.5, 1], [1, 1.6], [-0.2, 0.9]]


def regular_polygon(count, center=(0.0, 0.0)):
    angles = 2 * np.pi * np.arange(count) / count
    return Polygon(np.stack([np.cos(angles), np.sin(angles)], axis=1) + center)
