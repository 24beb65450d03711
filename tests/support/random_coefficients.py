"""Random matrices and coefficients."""

import numpy as np

from cordes.certificates.theorems.energy import (
    Local,
)


def random_matrix(rng: np.random.Generator, d: int, spread: float = 1.0) -> np.ndarray:
    """A symmetric positive definite matrix with eigenvalues between e^{-spread} and e^{spread}."""
    directions, _ = np.linalg.qr(rng.standard_normal((d, d)))
    return (directions * np.exp(rng.uniform(-spread, spread, d))) @ directions.T


def random_local(rng: np.random.Generator, n: int, d: int, spread: float = 0.3) -> Local:
    A = np.stack([random_matrix(rng, d, spread) for _ in range(n)])
    return Local(A, 0.5 * rng.standard_normal((n, d)), rng.uniform(0.1, 2.0, n))
