"""Legendre polynomials and their derivatives."""

import functools

import numpy as np
from numpy.polynomial import legendre


@functools.lru_cache(maxsize=64)
def differentiation(degree: int) -> np.ndarray:
    """From the coefficients of a polynomial to those of its derivative."""
    k = degree + 1
    matrix = np.zeros((k, k))
    for i in range(1, k):
        slope = legendre.legder(np.eye(k)[i])
        matrix[: len(slope), i] = slope
    return matrix


def tables(s: np.ndarray, degree: int) -> list[np.ndarray]:
    """P_i, P_i' and P_i'' at points (N,), each (N, degree + 1)."""
    values, slope = legendre.legvander(s, degree), differentiation(degree)
    first = values @ slope
    return [values, first, first @ slope]


@functools.lru_cache(maxsize=64)
def gauss(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points and weights on [-1, 1]."""
    return legendre.leggauss(count)


@functools.lru_cache(maxsize=64)
def projection(degree: int, count: int | None = None) -> np.ndarray:
    """From values at so many Gauss points to coefficients."""
    points, weights = gauss(count or degree + 1)
    values = legendre.legvander(points, degree)
    return (values * weights[:, None]).T * (np.arange(degree + 1) + 0.5)[:, None]
