"""The constant matrix M of T1d, found for the user: the change of variables y = M^{-1/2}x that
brings A nearest to a multiple of the identity.

Any constant A satisfies the Cordès condition with M = A. In three and more dimensions M can rescue
an A that violates it with M = I.
"""

import numpy as np
from scipy.optimize import minimize

from cordes.certificates.theorems.energy import Local, TraceSplit

# Up to this dimension M is full, beyond it diagonal.
LARGEST_FULL = 4
# Up to this dimension M is searched for; beyond, the mean of A and its diagonal are tried, since
# each trial costs d³ at every point.
LARGEST_SEARCHED = 12
SAMPLES = 300


def anisotropy(local: Local, matrix: np.ndarray) -> float:
    """The largest ρ' with M."""
    return float(np.max(TraceSplit().defects(local.invariants(matrix))))


def preconditioners(local: Local) -> list[np.ndarray]:
    """The identity, and the best matrix found, of determinant one, if it is better."""
    d = local.A.shape[-1]
    identity = np.eye(d)
    plain = anisotropy(local, identity)
    if d == 1 or plain < 0.05:
        return [identity]
    count = len(local.c)
    if count > SAMPLES:
        # The worst points count most; the others are thinned evenly.
        order = np.argsort(-TraceSplit().defects(local.invariants())[:, 0])
        local = local.take(
            np.unique(
                np.concatenate(
                    [order[: SAMPLES // 2], np.arange(0, count, -(-2 * count // SAMPLES))]
                )
            )
        )
    mean = np.mean(local.A / np.trace(local.A, axis1=1, axis2=2)[:, None, None], axis=0)
    candidates = [_scaled(np.diag(np.diag(mean))), _scaled(mean)]
    start = min([identity, *candidates], key=lambda matrix: anisotropy(local, matrix))
    found = _search(local, start) if d <= LARGEST_SEARCHED else start
    candidates = [
        matrix for matrix in [*candidates, found] if anisotropy(local, matrix) < plain - 1e-3
    ]
    return [identity, *sorted(candidates, key=lambda matrix: anisotropy(local, matrix))[:1]]


def _scaled(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.det(matrix) ** (1 / len(matrix))


def _search(local: Local, start: np.ndarray) -> np.ndarray:
    """Nelder–Mead on the logarithm of the Cholesky factor."""
    d = len(start)
    lower = np.tril_indices(d, -1 if d <= LARGEST_FULL else -d)
    factor = np.linalg.cholesky(start)

    def matrix_of(theta: np.ndarray) -> np.ndarray:
        triangle = np.diag(np.exp(np.clip(theta[:d], -20, 20)))
        triangle[lower] = theta[d:]
        return _scaled(triangle @ triangle.T)

    theta = np.concatenate([np.log(np.diag(factor)), factor[lower]])
    simplex = np.concatenate([theta[None], theta + 0.3 * np.eye(len(theta))])
    options = {"maxfev": 60 * len(theta), "initial_simplex": simplex, "fatol": 1e-4, "xatol": 1e-4}
    result = minimize(
        lambda theta: anisotropy(local, matrix_of(theta)),
        theta,
        method="Nelder-Mead",
        options=options,
    )
    return matrix_of(result.x)
