"""Monotone finite differences on a tensor grid of any nodes, with policy iteration: an oracle that
shares nothing with the package. The cross derivative takes the diagonal neighbours that its sign
allows, so that the scheme is monotone while |a12| ≤ min(a11 h2/h1, a22 h1/h2); drift by central
differences."""

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import spsolve


class GradedGrid:
    """Nodes along both axes, ends included; `kinks` of the data should be among them."""

    def __init__(self, first: np.ndarray, second: np.ndarray):
        self.nodes = (np.asarray(first), np.asarray(second))
        self.shape = (len(first), len(second))
        self.points = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1)

    def operator(self, A: np.ndarray, b: np.ndarray, c: np.ndarray) -> scipy.sparse.csr_matrix:
        """A:D² + b·∇ - c at all inner nodes, for arrays over them, as a matrix over all nodes."""
        n, m = self.shape
        i, j = (
            part.ravel()
            for part in np.meshgrid(np.arange(1, n - 1), np.arange(1, m - 1), indexing="ij")
        )
        A, b, c = A.reshape(-1, 2, 2), b.reshape(-1, 2), c.ravel()
        weights = {
            offset: np.zeros(len(i)) for offset in [(p, q) for p in (-1, 0, 1) for q in (-1, 0, 1)]
        }
        steps = []
        for axis, k in ((0, i), (1, j)):
            x = self.nodes[axis]
            behind, ahead = x[k] - x[k - 1], x[k + 1] - x[k]
            steps.append((behind, ahead))
            low, high = ((-1, 0), (1, 0)) if axis == 0 else ((0, -1), (0, 1))
            a, drift = A[:, axis, axis], b[:, axis]
            weights[low] += 2 * a / (behind * (behind + ahead)) - drift / (behind + ahead)
            weights[high] += 2 * a / (ahead * (behind + ahead)) + drift / (behind + ahead)
        cross = 2 * A[:, 0, 1]
        for sign in (1, -1):
            part = np.where(np.sign(cross) == sign, np.abs(cross), 0.0) / 2
            for p in (1, -1):
                h = steps[0][(p + 1) // 2] * steps[1][(sign * p + 1) // 2]
                weights[(p, sign * p)] += part / h
                weights[(p, 0)] -= part / h
                weights[(0, sign * p)] -= part / h
                weights[(0, 0)] += part / h
        assert all(
            np.min(weight) >= -1e-12 for offset, weight in weights.items() if offset != (0, 0)
        )
        off = sum(weight for offset, weight in weights.items() if offset != (0, 0))
        weights[(0, 0)] = -off - c
        rows = np.arange(len(i))
        entries = [(weight, rows, (i + p) * m + j + q) for (p, q), weight in weights.items()]
        data, row, column = (np.concatenate(part) for part in zip(*entries, strict=True))
        return scipy.sparse.csr_matrix((data, (row, column)), shape=(len(i), n * m))


def solve_controlled(grid: GradedGrid, equations: list, g: np.ndarray, steps: int = 60) -> tuple:
    """sup over the equations (A, b, c, f), arrays over the inner nodes, with boundary values g over
    all nodes: u over all nodes, and the number of the best equation at the inner ones."""
    n, m = grid.shape
    inner = np.zeros(grid.shape, bool)
    inner[1:-1, 1:-1] = True
    inner = inner.ravel()
    operators = [grid.operator(A, b, c) for A, b, c, _ in equations]
    sources = np.stack([f.ravel() for *_, f in equations])
    u = g.ravel().copy()
    best = np.zeros(inner.sum(), int)
    for _ in range(steps):
        matrix = sum(
            scipy.sparse.diags((best == k).astype(float)) @ operator
            for k, operator in enumerate(operators)
        ).tocsc()
        known = matrix[:, ~inner] @ u[~inner]
        u[inner] = spsolve(matrix[:, inner], sources[best, np.arange(len(best))] - known)
        values = np.stack([operator @ u for operator in operators]) - sources
        now = np.argmax(values, axis=0)
        scale = np.max(np.abs(values))
        now = np.where(
            values[now, np.arange(len(now))] > values[best, np.arange(len(now))] + 1e-13 * scale,
            now,
            best,
        )
        if np.all(now == best):
            break
        best = now
    return u.reshape(n, m), best.reshape(n - 2, m - 2)


def value_of_game(operators: list, sources: np.ndarray, controls: int) -> np.ndarray:
    """u at the inner nodes with inf_o sup_a (L^ao u - f^ao) = 0 there and zero on the boundary:
    better opponents outside, better controls inside, until neither changes (Hoffman and Karp).
    Operators and sources (P, N) of all pairs, the controls of one opponent side by side."""
    pairs, count = sources.shape
    shape = (pairs // controls, controls, count)
    rows, opponent, control = np.arange(count), np.zeros(count, int), np.zeros(count, int)
    while True:
        pair = controls * opponent + control
        matrix = sum(
            operator.multiply((pair == k).astype(float)[:, None])
            for k, operator in enumerate(operators)
        )
        u = spsolve(matrix.tocsc(), sources[pair, rows])
        values = (np.stack([operator @ u for operator in operators]) - sources).reshape(shape)
        against = values[opponent, :, rows].T
        gains = against.max(axis=0) > against[control, rows] + 1e-9
        if np.any(gains):
            control = np.where(gains, np.argmax(against, axis=0), control)
            continue
        left = values.max(axis=1)
        gains = left.min(axis=0) < left[opponent, rows] - 1e-9
        if not np.any(gains):
            return u
        opponent = np.where(gains, np.argmin(left, axis=0), opponent)
        control = np.argmax(values[opponent, :, rows], axis=1)
