"""Functions with one singular point: real and imaginary parts of t^p · conj(t)^q · Λ with Λ = 1,
log t or log|t|.

Around a point x_c, ζ = e^{−iφ}(y₁ + iy₂) with y = A(x_c)^{−1/2}(x − x_c): there A(x_c):D² is the
Laplacian. For a corner φ turns the bisector of the domain to the positive axis, and t = ζ/(1 + ζ/h)
has its branch cut on the segment from the corner to −h, outside of the domain; h = ∞ where the
bisector never comes back. With q = 0 a function is harmonic in y, and singular at x_c and −h alone.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

# The factor Λ: its logarithmic derivatives by t and by its conjugate.
PLAIN, LOG, LOG_MODULUS = 0, 1, 2
SLOPES = {PLAIN: (0.0, 0.0), LOG: (1.0, 0.0), LOG_MODULUS: (0.5, 0.5)}
SMALLEST = 1e-300


class Center(NamedTuple):
    """A singular point: x_c, the matrix that takes x − x_c to (Re ζ, Im ζ), 1/h, and A(x_c)."""

    point: np.ndarray
    frame: np.ndarray
    inverse: float
    matrix: np.ndarray

    def data(self) -> np.ndarray:
        return np.concatenate([self.point, self.frame.ravel(), [self.inverse], self.matrix.ravel()])

    @staticmethod
    def of(data: np.ndarray) -> "Center":
        frame, matrix = data[2:6].reshape(2, 2), data[7:11].reshape(2, 2)
        return Center(data[:2], frame, float(data[6]), matrix)

    @property
    def conformal(self) -> float:
        """A(x_c):D² is this many times the Laplacian in ζ."""
        return float(np.trace(self.frame @ self.matrix @ self.frame.T)) / 2


class Powers(NamedTuple):
    """The functions of one center: exponents (K,), and which Λ; a column for the real and one for
    the imaginary part of each."""

    center: Center
    p: np.ndarray
    q: np.ndarray
    factor: np.ndarray

    @property
    def count(self) -> int:
        return 2 * len(self.p)

    def jets(self, x: np.ndarray) -> np.ndarray:
        """Value, gradient, second derivatives (11, 12, 22) and A(x_c):D² of all functions, (7, N,
        count). The last one knows that A(x_c):D² of a harmonic function is zero, where the sum of
        second derivatives, which grow without bound, is not."""
        zeta = _zeta(self.center, x)
        scale = 1 / (1 + zeta * self.center.inverse)
        t, slope = zeta * scale, scale**2
        bend = -2 * self.center.inverse * scale**3
        p, q = self.p, self.q
        a, b = (np.array([SLOPES[int(k)][j] for k in self.factor]) for j in (0, 1))
        logarithm = np.log(t)[:, None]
        powers = np.exp(p * logarithm + q * np.conj(logarithm))
        factor = np.where(self.factor == LOG, logarithm, np.real(logarithm))
        factor = np.where(self.factor == PLAIN, 1.0, factor)
        inverse = (slope / t)[:, None]
        # Derivatives by ζ and its conjugate.
        bent = (bend / t)[:, None] * powers * (p * factor + a)
        first = inverse * powers * (p * factor + a)
        other = np.conj(inverse) * powers * (q * factor + b)
        bent_other = np.conj(bend / t)[:, None] * powers * (q * factor + b)
        second = inverse**2 * powers * (p * (p - 1) * factor + (2 * p - 1) * a) + bent
        mixed = inverse * np.conj(inverse) * powers * (p * q * factor + p * b + q * a)
        twice = np.conj(inverse) ** 2 * powers * (q * (q - 1) * factor + (2 * q - 1) * b)
        twice = twice + bent_other
        parts = [
            powers * factor,
            first + other,
            1j * (first - other),
            second + 2 * mixed + twice,
            1j * (second - twice),
            2 * mixed - second - twice,
            4 * self.center.conformal * mixed,
        ]
        return _turned(np.stack([_split(part) for part in parts]), self.center.frame)

    @property
    def matrix(self) -> np.ndarray:
        return self.center.matrix

    def values(self, x: np.ndarray) -> np.ndarray:
        """(N, count)."""
        zeta = _zeta(self.center, x)
        return _split(self._complex(zeta, np))

    def traced(self, x: Array) -> Array:
        """The values at one point of JAX."""
        y = jnp.asarray(self.center.frame) @ (x - self.center.point)
        found = self._complex((y[0] + 1j * y[1])[None], jnp)[0]
        return jnp.stack([found.real, found.imag], axis=-1).reshape(-1)

    def _complex(self, zeta: Any, xp: Any) -> Any:
        logarithm = xp.log(zeta / (1 + zeta * self.center.inverse))[:, None]  # pyright: ignore
        powers = xp.exp(self.p * logarithm + self.q * xp.conj(logarithm))  # pyright: ignore
        factor = xp.where(self.factor == LOG, logarithm, logarithm.real)  # pyright: ignore
        return powers * xp.where(self.factor == PLAIN, 1.0, factor)  # pyright: ignore


def _zeta(center: Center, x: np.ndarray) -> np.ndarray:
    y = (x - center.point) @ center.frame.T
    zeta = y[:, 0] + 1j * y[:, 1]
    return np.where(np.abs(zeta) < SMALLEST, SMALLEST, zeta)


def _split(values: np.ndarray) -> np.ndarray:
    """Real and imaginary parts side by side, (N, 2K)."""
    return np.ascontiguousarray(values).view(float)


def _turned(jets: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Derivatives by y as derivatives by x."""
    value, one, two, oneone, onetwo, twotwo, own = jets
    (a, b), (c, d) = frame
    return np.stack(
        [
            value,
            a * one + c * two,
            b * one + d * two,
            a * a * oneone + 2 * a * c * onetwo + c * c * twotwo,
            a * b * oneone + (a * d + b * c) * onetwo + c * d * twotwo,
            b * b * oneone + 2 * b * d * onetwo + d * d * twotwo,
            own,
        ]
    )
