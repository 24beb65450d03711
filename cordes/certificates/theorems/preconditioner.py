"""The constant matrix M of T1d, found for the user: the change of variables y = M^{-1/2}x that
brings A nearest to a multiple of the identity.

Any constant A satisfies the Cordès condition with M = A. In three and more dimensions M can rescue
an A that violates it with M = I.
"""

import numpy as np

from cordes.certificates.theorems.energy import Local, TraceSplit, nelder_mead

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
        even = np.arange(0, count, -(-2 * count // SAMPLES))
        local = local.take(np.union1d(order[: SAMPLES // 2], even))
    mean = np.mean(local.A / np.trace(local.A, axis1=1, axis2=2)[:, None, None], axis=0)
    candidates = [_scaled(np.diag(np.diag(mean))), _scaled(mean)]
    start = min([identity, *candidates], key=lambda matrix: anisotropy(local, matrix))
    candidates.append(_search(local, start) if d <= LARGEST_SEARCHED else start)
    best = min(candidates, key=lambda matrix: anisotropy(local, matrix))
    return [identity, best] if anisotropy(local, best) < plain - 1e-3 else [identity]


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

    def objective(theta: np.ndarray) -> float:
        return anisotropy(local, matrix_of(theta))

    return matrix_of(nelder_mead(objective, theta, 0.3, 60 * len(theta), 1e-4))
