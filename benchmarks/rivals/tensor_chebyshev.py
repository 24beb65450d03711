"""Chebyshev collocation with one polynomial on the whole box, for the two problems that the
library's reference solver does not take.

- Monge–Ampère on the unit square: Newton's method on dense matrices, from the solution of Δu = 2√f.
- ex4.3-cube5: u and its operator on a tensor grid of n⁵ points, GMRES, preconditioned by the
  Laplacian, which is diagonal in the eigenvectors of the
  one-dimensional second derivative. A jumps on the coordinate planes, u does not: an even number of
  inner nodes keeps the points off the planes.
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from cordes.references.chebyshev_grid import chebyshev_nodes, interpolation

NEWTON_STEPS = 12


def solve_monge_ampere(f, g, degree: int) -> np.ndarray:
    """Values at the tensor nodes of (0,1)², shape (degree + 1, degree + 1); f and g are functions
    of points (N, 2)."""
    nodes = chebyshev_nodes(degree)
    t, D = (1 + nodes.points) / 2, 2 * nodes.derivative
    x = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    eye = np.eye(degree + 1)
    second = D @ D
    xx, xy, yy = np.kron(second, eye), np.kron(D, D), np.kron(eye, second)
    rim = np.any((x == 0) | (x == 1), axis=1)
    right, boundary = np.asarray(f(x)), np.asarray(g(x))

    def solved(operator: np.ndarray, target: np.ndarray) -> np.ndarray:
        operator[rim] = np.eye(len(x))[rim]
        return np.linalg.solve(operator, np.where(rim, boundary, target))

    u = solved(xx + yy, 2 * np.sqrt(right))
    for _ in range(NEWTON_STEPS):
        a, b, c = xx @ u, xy @ u, yy @ u
        # The linearised determinant, solved for the new iterate.
        new = solved(c[:, None] * xx + a[:, None] * yy - 2 * b[:, None] * xy, right + a * c - b**2)
        change, u = np.max(np.abs(new - u)), new
        if change < 1e-13:
            break
    return u.reshape(degree + 1, degree + 1)


def evaluate_square(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The polynomial at points (N, 2) of (0,1)²."""
    nodes = chebyshev_nodes(len(values) - 1)
    left, right = (interpolation(nodes, 2 * x[:, k] - 1) for k in range(2))
    return np.einsum("ni,ij,nj->n", left, values, right, optimize=True)


def _along(matrix: np.ndarray, u: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(np.tensordot(matrix, u, axes=(1, axis)), 0, axis)


def solve_cube(f, degree: int, tolerance: float = 1e-12) -> np.ndarray:
    """5Δu + Σ_{i≠j} sign(xᵢxⱼ) u_ij = f on (-1,1)⁵ with zero boundary values: values at the inner
    nodes, shape (degree - 1,)·5; `degree` must be odd."""
    nodes = chebyshev_nodes(degree)
    t, first, second = (
        nodes.points[1:-1],
        nodes.derivative[1:-1, 1:-1],
        (nodes.derivative @ nodes.derivative)[1:-1, 1:-1],
    )
    n, shape = len(t), (len(t),) * 5
    signs = [np.sign(t).reshape([n if k == i else 1 for k in range(5)]) for i in range(5)]
    eigenvalues, vectors = np.linalg.eig(second)
    eigenvalues, vectors = eigenvalues.real, vectors.real
    inverse = np.linalg.inv(vectors)
    total = 5 * sum(eigenvalues.reshape([n if k == i else 1 for k in range(5)]) for i in range(5))

    def operator(flat: np.ndarray) -> np.ndarray:
        u = flat.reshape(shape)
        result = np.zeros(shape)
        for i in range(5):
            result += 5 * _along(second, u, i)
            slope = signs[i] * _along(first, u, i)
            for j in range(i + 1, 5):
                result += 2 * signs[j] * _along(first, slope, j)
        return result.ravel()

    def precondition(flat: np.ndarray) -> np.ndarray:
        u = flat.reshape(shape)
        for i in range(5):
            u = _along(inverse, u, i)
        u = u / total
        for i in range(5):
            u = _along(vectors, u, i)
        return u.ravel()

    x = np.stack(np.meshgrid(*[t] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    size = n**5
    # Preconditioned from the right, so that the residual is that of the equation.
    composed = LinearOperator((size, size), matvec=lambda v: operator(precondition(v)))  # pyright: ignore
    y, _ = gmres(composed, np.asarray(f(x)), rtol=tolerance, restart=60, maxiter=3)
    return precondition(y).reshape(shape)


def evaluate_cube(values: np.ndarray, x: np.ndarray, chunk: int = 400) -> np.ndarray:
    """The polynomial at points (N, 5), one axis after the other."""
    nodes = chebyshev_nodes(len(values) + 1)
    n, found = len(values), []
    for k in range(0, len(x), chunk):
        weights = [interpolation(nodes, x[k : k + chunk, i])[:, 1:-1] for i in range(5)]
        part = weights[0] @ values.reshape(n, -1)
        for weight in weights[1:]:
            part = np.einsum("mi,mij->mj", weight, part.reshape(len(part), n, -1))
        found.append(part[:, 0])
    return np.concatenate(found)
