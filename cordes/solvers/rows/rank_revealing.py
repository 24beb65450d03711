"""Dense linear least squares for matrices whose columns are numerically dependent."""

import numpy as np
import scipy.linalg

# Columns whose pivot is below this share of the largest are dropped. Lower keeps rounding noise,
# higher loses digits.
RANK_TOLERANCE = 1e-14
DAMPING = 1e-9


def solve_rank_revealing(
    matrix: np.ndarray, target: np.ndarray, tolerance: float = RANK_TOLERANCE, damped: int = 0
) -> np.ndarray:
    """Least squares with columns scaled to length one and a numerically dependent remainder left
    out.

    The last `damped` columns (singular functions) carry a tiny penalty on their amplitudes. They
    are C¹ across their rays to rounding only; amplitudes of 1e9 that cancel each other would turn
    that into a kink, which no residual shows.

    QR without Q (the target rides along as the last column), then a column-pivoted QR of the small
    triangle, whose basic solution is a third of the price of a singular value decomposition and as
    accurate here.
    """
    count = matrix.shape[1]
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    system = np.concatenate([matrix / size, target[:, None]], axis=1)
    if damped:
        penalty = np.zeros((damped, count + 1))
        penalty[:, count - damped : count] = DAMPING * np.linalg.norm(target) * np.eye(damped)
        system = np.concatenate([system, penalty])
    triangle: np.ndarray = np.linalg.qr(system, mode="r")  # pyright: ignore[reportAssignmentType]
    right = triangle[:count, count]
    q, r, order = scipy.linalg.qr(  # pyright: ignore[reportAssignmentType]
        triangle[:count, :count], pivoting=True, mode="economic", check_finite=False
    )
    pivots = np.abs(np.diag(r))
    rank = int(np.sum(pivots > tolerance * pivots[0]))
    solution = np.zeros(count)
    solution[order[:rank]] = scipy.linalg.solve_triangular(
        r[:rank, :rank], np.asarray(q)[:, :rank].T @ right, check_finite=False
    )
    return solution / size


# Pivots of columns of length one below which they count as dependent.
INDEPENDENT = 1e-12


def solve_well_posed(matrix: np.ndarray, target: np.ndarray, damped: int = 0) -> np.ndarray:
    """Least squares for columns that should be independent: a QR without pivots, a third of the
    price; where they are not, as above."""
    size = np.linalg.norm(matrix, axis=0)
    size[size == 0] = 1.0
    count = matrix.shape[1]
    system = np.concatenate([matrix / size, target[:, None]], axis=1)
    triangle = np.asarray(
        scipy.linalg.qr(system, mode="r", overwrite_a=True, check_finite=False)[0]
    )
    pivots = np.abs(np.diag(triangle[:count, :count]))
    if damped or not np.min(pivots, initial=np.inf) > INDEPENDENT:
        return solve_rank_revealing(matrix, target, damped=damped)
    right = triangle[:count, count]
    return scipy.linalg.solve_triangular(triangle[:count, :count], right, check_finite=False) / size
