"""Dense linear least squares for matrices whose columns are numerically dependent."""

import os

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

# Columns whose pivot is below this share of the largest are dropped. Lower keeps rounding noise, higher loses digits.
RANK_TOLERANCE = 1e-14


def solve_rank_revealing(matrix: np.ndarray, target: np.ndarray, tolerance: float = RANK_TOLERANCE) -> np.ndarray:
    """Least squares with columns scaled to length one and a numerically dependent remainder left out.

    QR without Q (the target rides along as the last column), then a column-pivoted QR of the small triangle, whose minimum-norm solution is a third
    of the price of a singular value decomposition and as accurate here. Half of the cores are used: BLAS and XLA keep a pool of threads each, and pools
    that fight for cores were ten times slower than one thread.
    """
    with threadpool_limits(max(1, (os.cpu_count() or 2) // 2), user_api="blas"):
        return _solve(matrix, target, tolerance)


def _solve(matrix: np.ndarray, target: np.ndarray, tolerance: float) -> np.ndarray:
    count = matrix.shape[1]
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    triangle = np.linalg.qr(np.concatenate([matrix / size, target[:, None]], axis=1), mode="r")
    right = triangle[:count, count]
    q, r, order = scipy.linalg.qr(triangle[:count, :count], pivoting=True, mode="economic", check_finite=False)
    pivots = np.abs(np.diag(r))
    rank = int(np.sum(pivots > tolerance * pivots[0]))
    solution = np.zeros(count)
    solution[order[:rank]] = scipy.linalg.solve_triangular(r[:rank, :rank], q[:, :rank].T @ right, check_finite=False)
    return solution / size
