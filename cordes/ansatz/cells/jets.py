"""Derivatives of many functions at many points as rows: the value, the first derivatives, and the
second ones on and above the diagonal, (1 + d + d(d+1)/2, …)."""

import functools
from typing import Any

import numpy as np

from cordes.jet import Jet


@functools.lru_cache(maxsize=8)
def second_orders(dimension: int) -> tuple[tuple[int, int], ...]:
    return tuple((i, j) for i in range(dimension) for j in range(i, dimension))


@functools.lru_cache(maxsize=8)
def all_orders(dimension: int) -> tuple[tuple[int, ...], ...]:
    """Orders along each axis of the value, the first and the second derivatives."""
    unit = np.eye(dimension, dtype=int)
    found = [np.zeros(dimension, int), *unit]
    found += [unit[i] + unit[j] for i, j in second_orders(dimension)]
    return tuple(tuple(int(n) for n in orders) for orders in found)


def dimension_of(rows: Any) -> int:
    return {3: 1, 6: 2, 10: 3}[len(rows)]


def tensor(parts: list[list[np.ndarray]]) -> np.ndarray:
    """The derivatives (rows, N) of a product of functions of one variable each: `parts` are their
    values and two derivatives, (N,) each."""
    found = []
    for orders in all_orders(len(parts)):
        total = parts[0][orders[0]]
        for own, order in zip(parts[1:], orders[1:], strict=True):
            total = total * own[order]
        found.append(total)
    return np.stack(found)


def times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The derivatives of a product: `left` (rows, N), `right` (rows, N) or (rows, N, m)."""
    d = dimension_of(left)
    if right.ndim > left.ndim:
        left = left[..., None]
    total = left[0] * right
    total[1 : 1 + d] += left[1 : 1 + d] * right[0]
    for row, (i, j) in enumerate(second_orders(d), start=1 + d):
        total[row] += left[row] * right[0]
        total[row] += left[1 + i] * right[1 + j] + left[1 + j] * right[1 + i]
    return total


def quotient(above: np.ndarray, below: np.ndarray, sizes: bool = False) -> np.ndarray:
    """The derivatives of a quotient; with `sizes` the sum of the sizes of its terms, for sizes of
    the numerator and a denominator with its sign."""
    d, sign = dimension_of(above), 1.0 if sizes else -1.0
    rest = below[1:] / below[0]
    rest = np.abs(rest) if sizes else rest
    found = above / below[0]
    found[1 : 1 + d] += sign * found[0] * rest[:d]
    for row, (i, j) in enumerate(second_orders(d), start=1 + d):
        mixed = found[1 + i] * rest[j] + found[1 + j] * rest[i]
        found[row] += sign * (mixed + found[0] * rest[row - 1])
    return found


def composed(outer: tuple[Any, Any, Any], inner: np.ndarray) -> np.ndarray:
    """The derivatives of a function of a function, from the value and two derivatives of the
    outer one."""
    value, first, second = outer
    d = dimension_of(inner)
    found = first * inner
    found[0] = value
    for row, (i, j) in enumerate(second_orders(d), start=1 + d):
        found[row] += second * inner[1 + i] * inner[1 + j]
    return found


def as_rows(jet: Jet) -> np.ndarray:
    d = jet.gradient.shape[-1]
    second = [jet.hessian[:, i, j] for i, j in second_orders(d)]
    return np.stack([jet.value, *jet.gradient.T, *second])


def as_jet(rows: np.ndarray) -> Jet:
    d = dimension_of(rows)
    hessian = np.empty((rows.shape[1], d, d))
    for (i, j), part in zip(second_orders(d), rows[1 + d :], strict=True):
        hessian[:, i, j] = hessian[:, j, i] = part
    return Jet(rows[0], np.ascontiguousarray(rows[1 : 1 + d].T), hessian)
