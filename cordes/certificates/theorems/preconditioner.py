"""The constant matrix M of T1d, found for the user: the change of variables y = M^{-1/2}x that
brings A nearest to a multiple of the identity.

Any constant A satisfies the Cordès condition with M = A. In three and more dimensions M can rescue
an A that violates it with M = I.
"""

import numpy as np

from cordes.certificates.theorems.energy import Local, TraceSplit, nelder_mead
from cordes.domains.domain import AbstractDomain
from cordes.domains.walls import walled_part

# Up to this dimension M is full, beyond it diagonal.
LARGEST_FULL = 4
# Up to this dimension M is searched for; beyond, the mean of A and its diagonal are tried, since
# each trial costs d³ at every point.
LARGEST_SEARCHED = 12
SAMPLES = 300


def anisotropy(local: Local, matrix: np.ndarray) -> float:
    """The largest ρ' with M."""
    return float(np.max(TraceSplit().defects(local.invariants(matrix))))


def preconditioners(local: Local, domain: AbstractDomain) -> list[np.ndarray]:
    """The identity, and the best matrix found, of determinant one, if it is better. Where a normal
    derivative is given M is diagonal: a full one would make it an oblique derivative."""
    d, straight = local.A.shape[-1], walled_part(domain) is not None
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
    candidates = [_scaled(np.diag(np.diag(mean))), *([] if straight else [_scaled(mean)])]
    start = min([identity, *candidates], key=lambda matrix: anisotropy(local, matrix))
    candidates.append(_search(local, start, straight) if d <= LARGEST_SEARCHED else start)
    best = min(candidates, key=lambda matrix: anisotropy(local, matrix))
    return [identity, best] if anisotropy(local, best) < plain - 1e-3 else [identity]


def _scaled(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.det(matrix) ** (1 / len(matrix))


def _search(local: Local, start: np.ndarray, straight: bool) -> np.ndarray:
    """Nelder–Mead on the logarithm of the Cholesky factor, or of its diagonal."""
    d = len(start)
    lower = np.tril_indices(d, -1 if d <= LARGEST_FULL and not straight else -d)
    factor = np.linalg.cholesky(start)

    def matrix_of(theta: np.ndarray) -> np.ndarray:
        triangle = np.diag(np.exp(np.clip(theta[:d], -20, 20)))
        triangle[lower] = theta[d:]
        return _scaled(triangle @ triangle.T)

    theta = np.concatenate([np.log(np.diag(factor)), factor[lower]])

    def objective(theta: np.ndarray) -> float:
        return anisotropy(local, matrix_of(theta))

    return matrix_of(nelder_mead(objective, theta, 0.3, 60 * len(theta), 1e-4))
