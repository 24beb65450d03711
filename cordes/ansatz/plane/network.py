"""Sums of functions for a domain of the plane: a network that is the whole answer."""

from collections.abc import Iterator, Sequence
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractHostNetwork
from cordes.ansatz.plane.polynomials import PlanePolynomials
from cordes.ansatz.plane.powers import Center, Powers
from cordes.errors import OptionError
from cordes.jet import Jet, jet_of

EXPANSION = "expansion"
# Numbers of a table of all functions at points that are held at once.
HELD = 1 << 20
# In a hole, where pictures have points too, poles are no numbers.
OUTSIDE = np.errstate(over="ignore", invalid="ignore", divide="ignore")
# What a file keeps.
ARRAYS = {"box": 2, "centers": 2, "powers": 2}


@final
class Functions:
    """The functions of an expansion: polynomials on a box, and those of each center."""

    def __init__(self, polynomials: PlanePolynomials, powers: Sequence[Powers]):
        self.polynomials, self.powers = polynomials, tuple(powers)
        self.families = (polynomials, *self.powers)
        self.count = sum(family.count for family in self.families)

    @OUTSIDE
    def columns(self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """A:D²φ + b·∇φ − cφ of all functions at points, (N, count)."""
        parts = []
        for family in self.families:
            weights = operator_weights(A, b, c, family.matrix)
            blocks = _blocks(x, family.count)
            jets = ((part, family.jets(x[part])) for part in blocks)
            parts.append(
                np.concatenate([np.einsum("nm,mnk->nk", weights[at], jet) for at, jet in jets])
            )
        return np.concatenate(parts, axis=1)

    @OUTSIDE
    def values(self, x: np.ndarray) -> np.ndarray:
        """(N, count)."""
        return np.concatenate([family.values(x) for family in self.families], axis=1)

    @OUTSIDE
    def combined(self, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Value, gradient and second derivatives of a sum, (N, 6)."""
        total = np.zeros((len(x), 6))
        for family, own in self._shares(coefficients):
            for part in _blocks(x, family.count):
                total[part] += np.moveaxis(family.jets(x[part])[:6] @ own, 0, 1)
        return total

    @OUTSIDE
    def applied(
        self,
        x: np.ndarray,
        coefficients: np.ndarray,
        operator: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """A:D² + b·∇ − c of a sum at points, and the sum of the sizes of its terms."""
        total, sizes = np.zeros(len(x)), np.zeros(len(x))
        for family, own in self._shares(coefficients):
            weights = operator_weights(*operator, family.matrix)
            for part in _blocks(x, family.count):
                jets = family.jets(x[part])
                total[part] += np.einsum("nm,mn->n", weights[part], jets @ own)
                sizes[part] += np.einsum("nm,mn->n", np.abs(weights[part]), np.abs(jets) @ abs(own))
        return total, sizes

    @OUTSIDE
    def summed(self, x: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of a sum, and the sum of the sizes of its terms."""
        total, sizes = np.zeros(len(x)), np.zeros(len(x))
        for family, own in self._shares(coefficients):
            for part in _blocks(x, family.count):
                values = family.values(x[part])
                total[part] += values @ own
                sizes[part] += np.abs(values) @ abs(own)
        return total, sizes

    def _shares(
        self, coefficients: np.ndarray
    ) -> Iterator[tuple[PlanePolynomials | Powers, np.ndarray]]:
        """Each family with its coefficients."""
        ends = np.cumsum([family.count for family in self.families])
        yield from zip(self.families, np.split(np.asarray(coefficients), ends[:-1]), strict=True)

    def traced(self, x: Array) -> Array:
        return jnp.concatenate([family.traced(x) for family in self.families])

    # Files ----------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        lower, upper, degree = self.polynomials
        rows = [
            np.column_stack([np.full(len(each.p), k), each.p, each.q, each.factor])
            for k, each in enumerate(self.powers)
        ]
        return {
            "box": np.array([[*lower, *upper, degree]], float),
            "centers": np.array([each.center.data() for each in self.powers]).reshape(-1, 11),
            "powers": np.concatenate([np.zeros((0, 4)), *rows]),
        }

    @staticmethod
    def of(arrays: dict[str, np.ndarray]) -> "Functions":
        (box,) = arrays["box"]
        number, p, q, factor = arrays["powers"].T
        powers = [
            Powers(Center.of(data), p[here], q[here], factor[here].astype(int))
            for k, data in enumerate(arrays["centers"])
            for here in (number == k,)
        ]
        return Functions(PlanePolynomials(box[:2], box[2:4], int(box[4])), powers)


def _blocks(x: np.ndarray, count: int) -> list[slice]:
    step = max(HELD // (7 * count), 16)
    return [slice(start, start + step) for start in range(0, len(x), step)]


def operator_weights(A: np.ndarray, b: np.ndarray, c: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """What A:D² + b·∇ − c multiplies value, gradient, second derivatives and M:D² with, (N, 7), M
    the `matrix`: A − M and one where A is near M, else A and zero."""
    rest = A - matrix
    near = np.sum(rest**2, axis=(1, 2)) < np.sum(A**2, axis=(1, 2))
    used = np.where(near[:, None, None], rest, A)
    both = used[:, 0, 1] + used[:, 1, 0]
    return np.column_stack([-c, b, used[:, 0, 0], both, used[:, 1, 1], near])


@final
class Expansion(AbstractHostNetwork):
    """Σ coefficients · functions."""

    inputs: Inputs
    functions: Functions = eqx.field(static=True)
    layers: tuple
    coefficients: np.ndarray
    activation: str = eqx.field(static=True)

    def __init__(
        self, inputs: Inputs, functions: Functions, coefficients: np.ndarray | None = None
    ):
        self.inputs, self.functions = inputs, functions
        self.layers, self.activation = (), EXPANSION
        self.coefficients = np.zeros(functions.count) if coefficients is None else coefficients

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], inputs: Inputs) -> "Expansion":
        """The answer that a file keeps; what does not fit together is refused, before there is a
        table of so many functions."""
        functions, coefficients = Functions.of(arrays), arrays["coefficients"]
        if functions.count != len(coefficients) or functions.polynomials.degree < 0:
            raise OptionError("its functions and their coefficients do not belong together")
        return cls(inputs, functions, coefficients)

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """One: the functions know no other scale but that of their singular points."""
        lower, upper, _ = self.functions.polynomials
        return lower[None], upper[None]

    @property
    def parameters(self) -> Any:
        return self.coefficients

    def arrays(self) -> dict[str, np.ndarray]:
        """What a file keeps."""
        return self.functions.arrays()

    def value_at(self, x: np.ndarray) -> np.ndarray:
        return self.functions.summed(np.asarray(x, float), self.coefficients)[0]

    def jet_at(self, x: np.ndarray) -> Jet:
        found = self.functions.combined(np.asarray(x, float), self.coefficients)
        return Jet(found[:, 0], found[:, 1:3], found[:, 3:][:, [[0, 1], [1, 2]]])

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        x = np.asarray(x, float)
        if not np.any(A) and not np.any(b):
            total, sizes = self.functions.summed(x, self.coefficients)
            return -c * total, np.abs(c) * sizes
        return self.functions.applied(x, self.coefficients, (A, b, c))

    # Traces ---------------------------------------------------------------------------------------

    def value(self, x: Array) -> Array:
        return jax.vmap(self._traced)(x)

    def jet(self, x: Array) -> Jet:
        return jax.vmap(jet_of(self._traced))(x)

    def _traced(self, x: Array) -> Array:
        return self.functions.traced(x) @ jnp.asarray(self.coefficients)
