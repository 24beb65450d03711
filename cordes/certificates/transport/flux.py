"""The flux behind the sharper transport bound: a field without flow through the boundary whose
divergence is nearly the defect of the densities."""

import itertools

import jax
import numpy as np
import scipy.linalg
from numpy.polynomial import legendre

from cordes.domains import Ball, Box, Ellipsoid
from cordes.domains.domain import AbstractDomain
from cordes.runtime.blocks import in_blocks

# Polynomials of the flux up to this degree, by dimension; the weights of its divergence that are
# tried; points at a time; rounding in units of ε; and what is added to the diagonal of the scaled
# normal equations, since rotations and the other fields are not independent.
FLUX_DEGREE = {1: 32, 2: 12, 3: 6}
FLUX_EMPHASES = (1.0, 4.0, 16.0)
FLUX_BLOCK = 4096
FLUX_ROUNDING = 64.0
FLUX_RIDGE = 1e-11
EPSILON = float(np.finfo(np.float64).eps)


class Flux:
    """Vector fields F on the source that do not flow through its boundary: polynomials times the
    distance to the faces of a box, in each component, or times the distance function, and rotations
    of a ball or an ellipsoid.

    Let h be the image of μ under T. For all ψ, ∫ψ(T) div F = -∫∇ψ(T)·D²φF, so that ∫ψ(h - ν) over
    the image is at most ‖D²φF/√G‖ ‖∇ψ‖ + √C ‖(μ - G - div F)/√G‖ ‖∇ψ‖ if ∫ψν = 0. F = 0 gives √C χ;
    a good F gives much less where the densities differ in waves.
    """

    def __init__(self, domain: AbstractDomain):
        self.domain, self.dimension = domain, domain.dimension
        lower, upper = domain.bounding_box
        self.middle, self.half = (lower + upper) / 2, (upper - lower) / 2
        degree = FLUX_DEGREE[self.dimension]
        self.powers = np.array(
            [
                power
                for power in itertools.product(range(degree + 1), repeat=self.dimension)
                if sum(power) <= degree
            ]
        )
        self._heights = jax.jit(jax.vmap(jax.value_and_grad(domain.distance)))
        self.rotations = []
        if isinstance(domain, Ball | Ellipsoid):
            axes = domain.matrix if isinstance(domain, Ellipsoid) else np.eye(self.dimension)
            for i, j in itertools.combinations(range(self.dimension), 2):
                turn = np.zeros((self.dimension, self.dimension))
                turn[i, j], turn[j, i] = 1.0, -1.0
                self.rotations.append(axes @ turn @ np.linalg.inv(axes))
        self.coefficients = np.zeros((self.dimension + len(self.rotations), len(self.powers)))

    def _polynomials(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Legendre products (N, J) and their gradients (d, N, J)."""
        z, degree = (x - self.middle) / self.half, int(np.max(self.powers))
        derivative = np.stack(
            [
                np.pad(legendre.legder(row), (0, max(degree + 1 - max(k, 1), 0)))[: degree + 1]
                for k, row in enumerate(np.eye(degree + 1))
            ]
        )
        tables = [legendre.legvander(z[:, i], degree) for i in range(self.dimension)]
        slopes = [table @ derivative.T / self.half[i] for i, table in enumerate(tables)]

        def product(changed: int) -> np.ndarray:
            return np.prod(
                [
                    (slopes if i == changed else tables)[i][:, self.powers[:, i]]
                    for i in range(self.dimension)
                ],
                axis=0,
            )

        return product(-1), np.stack([product(i) for i in range(self.dimension)])

    def _fields(self, x: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The vector fields (N, d) that polynomials multiply, with their divergences."""
        fields = []
        if isinstance(self.domain, Box):
            lower, upper = self.domain.lower, self.domain.upper
            values, slopes = (x - lower) * (upper - x), lower + upper - 2 * x
        else:
            height, slopes = (np.asarray(part) for part in in_blocks(self._heights, (x,)))
            values = np.repeat(height[:, None], self.dimension, axis=1)
        for i in range(self.dimension):
            field = np.zeros_like(x)
            field[:, i] = values[:, i]
            fields.append((field, slopes[:, i]))
        fields += [
            ((x - np.asarray(self.domain.center)) @ rotation.T, np.zeros(len(x)))
            for rotation in self.rotations
        ]
        return fields

    def fit(
        self,
        x: np.ndarray,
        weight: np.ndarray,
        hessian: np.ndarray,
        excess: np.ndarray,
        density: np.ndarray,
        poincare: float,
    ) -> None:
        """The F for which the bound is small at points with weights, by least squares."""
        P, slopes = self._polynomials(x)
        root = np.sqrt(weight / density)
        blocks, divergences = [], []
        for field, divergence in self._fields(x):
            carried = np.einsum("nij,nj->in", hessian, field) * root
            blocks.append((carried[:, :, None] * P).reshape(-1, P.shape[1]))
            divergences.append(
                root[:, None] * (divergence[:, None] * P + np.einsum("ni,inj->nj", field, slopes))
            )
        carried, divergence = np.concatenate(blocks, axis=1), np.concatenate(divergences, axis=1)
        wanted, best = root * excess, poincare * float(np.linalg.norm(root * excess))
        # Normal equations: seven digits of the best F are enough, any F is allowed.
        stiffness = carried.T @ carried
        mass = divergence.T @ divergence
        load = divergence.T @ wanted
        for emphasis in FLUX_EMPHASES:
            scale = (emphasis * poincare) ** 2
            matrix = stiffness + scale * mass
            size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
            matrix = matrix / np.outer(size, size) + FLUX_RIDGE * np.eye(len(matrix))
            found = scipy.linalg.solve(matrix, scale * load / size, assume_a="pos") / size
            value = float(np.linalg.norm(carried @ found)) + poincare * float(
                np.linalg.norm(wanted - divergence @ found)
            )
            if value < best:
                best, self.coefficients = value, found.reshape(self.coefficients.shape)

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F (N, d), its divergence, and a bound of the rounding of the divergence."""
        parts = [self._chunk(x[k : k + FLUX_BLOCK]) for k in range(0, len(x), FLUX_BLOCK)]
        joined = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return joined  # pyright: ignore

    def _chunk(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        P, slopes = self._polynomials(x)
        value, divergence, size = np.zeros_like(x), np.zeros(len(x)), np.zeros(len(x))
        for (field, own), c in zip(self._fields(x), self.coefficients, strict=True):
            value += field * (P @ c)[:, None]
            divergence += own * (P @ c) + np.einsum("ni,in->n", field, slopes @ c)
            size += np.abs(own) * (np.abs(P) @ np.abs(c)) + np.einsum(
                "ni,in->n", np.abs(field), np.abs(slopes) @ np.abs(c)
            )
        return value, divergence, FLUX_ROUNDING * EPSILON * size


# Duality
