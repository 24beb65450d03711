"""The value of stopping at a given boundary x = s(t), for constant coefficients in one dimension,
as a potential of the heat kernel.

For every curve s the function

    w(x, t) = ∫ G(x-y, t) ψ(y) dy + ∫₀ᵗ ∫_{y < s(τ)} G(x-y, t-τ) h(y) dy dτ,      h = -F[p],

with G the kernel of u_t = a u_xx + b u_x - cu on the whole line and p the piece of ψ on the side
where one stops, solves w_t = Lw + h 1_{x < s(t)} exactly, with w(·, 0) = ψ. It is the value of
optimal stopping if w = p below the curve; then w_x = p' on it. Pieces are sums of 1, x and
exponentials, for which the inner integrals are closed forms; what is left is an integral over the
time, by Gauss rules in √(t - τ) on panels that grow from the start.

Stopping above the curve is the mirror image: coordinates are reflected.
"""

import functools
from typing import Any, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from cordes.ansatz.networks.inputs import Inputs
from cordes.ansatz.networks.network import AbstractHostNetwork
from cordes.errors import OptionError
from cordes.jet import Jet, jet_of

# Gauss points for each piece of time, and halvings towards the time itself; points of a block.
GAUSS, NEAREST, BLOCK = 14, 16, 2048
POTENTIAL = "potential"
ROOT = np.sqrt(2 * np.pi)
# Of a file.
NUMBERS = 14


class PotentialPiece(NamedTuple):
    """Σ coefficients·(1, x, e^x, e^{-x})."""

    coefficients: tuple[float, float, float, float]

    def at(self, x: Any, module: Any = np) -> Any:
        one, slope, up, down = self.coefficients
        return one + slope * x + up * module.exp(x) + down * module.exp(-x)

    def slope(self, x: Any) -> Any:
        _, slope, up, down = self.coefficients
        return slope + up * np.exp(x) - down * np.exp(-x)

    def minus_operator(self, a: float, b: float, c: float) -> "PotentialPiece":
        """-(a p'' + b p' - c p)."""
        one, slope, up, down = self.coefficients
        return PotentialPiece(
            (c * one - b * slope, c * slope, -(a + b - c) * up, -(a - b - c) * down)
        )

    def mirrored(self) -> "PotentialPiece":
        one, slope, up, down = self.coefficients
        return PotentialPiece((one, -slope, down, up))


class Kernel(NamedTuple):
    """a, b, c."""

    a: float
    b: float
    c: float

    def below(self, piece: PotentialPiece, x: Any, t: Any, s: Any, module: Any = np) -> Any:
        """e^{-ct} E[p(Y); Y < s], Y normal around x + bt with the variance 2at."""
        normal = _normal(module)
        root = module.sqrt(2 * self.a * t)
        middle = x + self.b * t
        z = (s - middle) / root
        one, slope, up, down = piece.coefficients
        total = one * normal.share(z)
        if slope:
            total = total + slope * (middle * normal.share(z) - root * normal.density(z))
        for sign, coefficient in ((1.0, up), (-1.0, down)):
            if coefficient:
                growth = module.exp(sign * middle + self.a * t)
                total = total + coefficient * growth * normal.share(z - sign * root)
        return module.exp(-self.c * t) * total

    def slope_below(self, piece: PotentialPiece, x: Any, t: Any, s: Any) -> Any:
        """Its derivative by x."""
        normal, root = _normal(np), np.sqrt(2 * self.a * t)
        middle = x + self.b * t
        z = (s - middle) / root
        one, slope, up, down = piece.coefficients
        total = -one * normal.density(z) / root
        if slope:
            inner = normal.share(z) - middle * normal.density(z) / root
            total = total + slope * (inner - z * normal.density(z))
        for sign, coefficient in ((1.0, up), (-1.0, down)):
            if coefficient:
                growth = np.exp(sign * middle + self.a * t)
                moved = z - sign * root
                inner = sign * normal.share(moved) - normal.density(moved) / root
                total = total + coefficient * growth * inner
        return np.exp(-self.c * t) * total

    def bend_below(self, piece: PotentialPiece, x: Any, t: Any, s: Any) -> Any:
        """Its second derivative by x."""
        normal, root = _normal(np), np.sqrt(2 * self.a * t)
        middle = x + self.b * t
        z = (s - middle) / root
        density = normal.density(z) / root
        one, slope, up, down = piece.coefficients
        total = -one * z * density / root
        if slope:
            total = total - slope * density * (1 + middle * z / root + z**2)
        for sign, coefficient in ((1.0, up), (-1.0, down)):
            if coefficient:
                growth = np.exp(sign * middle + self.a * t)
                moved = z - sign * root
                thin = normal.density(moved) / root
                inner = normal.share(moved) - 2 * sign * thin - moved * thin / root
                total = total + coefficient * growth * inner
        return np.exp(-self.c * t) * total


class _Normal(NamedTuple):
    share: Any
    density: Any


def _normal(module: Any) -> _Normal:
    if module is jnp:
        return _Normal(jax.scipy.special.ndtr, lambda z: jnp.exp(-z * z / 2) / ROOT)
    from scipy.special import ndtr

    return _Normal(ndtr, lambda z: np.exp(-z * z / 2) / ROOT)


class Stopping(NamedTuple):
    """What is integrated: the kernel, the pieces of ψ below and above their kink, and h."""

    kernel: Kernel
    stopped: PotentialPiece
    other: PotentialPiece
    kink: float

    @property
    def gain(self) -> PotentialPiece:
        """h."""
        return self.stopped.minus_operator(*self.kernel)

    def without_stopping(self, x: Any, t: Any, module: Any = np) -> Any:
        """The first integral."""
        other = self.other.mirrored()
        mirrored = self.kernel._replace(b=-self.kernel.b)
        return self.kernel.below(self.stopped, x, t, self.kink, module) + mirrored.below(
            other, -x, t, -self.kink, module
        )

    def derivatives(self, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the second one of the first integral by x."""
        other, mirrored = self.other.mirrored(), self.kernel._replace(b=-self.kernel.b)
        first = self.kernel.slope_below(self.stopped, x, t, self.kink)
        second = self.kernel.bend_below(self.stopped, x, t, self.kink)
        first = first - mirrored.slope_below(other, -x, t, -self.kink)
        return first, second + mirrored.bend_below(other, -x, t, -self.kink)


class Panels(NamedTuple):
    """Times between which s is a polynomial of √t: `edges` (P + 1,) and the coefficients (P, N) of
    Chebyshev's polynomials."""

    edges: np.ndarray
    coefficients: np.ndarray

    def place(self, panel: Any, t: Any, module: Any = np) -> Any:
        """s at times of panels, arrays of one shape."""
        low, high = (module.sqrt(module.asarray(self.edges)[panel + k]) for k in (0, 1))
        y = 2 * (module.sqrt(t) - low) / (high - low) - 1
        rows = module.asarray(self.coefficients.T)[:, panel]
        # Clenshaw's sum, one coefficient of all times after another.
        one = two = 0.0 * y
        for k in range(self.coefficients.shape[1] - 1, 0, -1):
            one, two = rows[k] + 2 * y * one - two, one
        return rows[0] + y * one - two


def integral(
    stopping: Stopping,
    panels: Panels,
    x: Any,
    t: Any,
    gauss: int = GAUSS,
    module: Any = np,
    inside: Any = None,
) -> Any:
    """The second integral at points and times (…), over v = √(t - τ); `inside` stands for the
    inner integral, or for what else is integrated over time."""
    share, weights = _rule(gauss, len(panels.edges))
    v = module.sqrt(t)[..., None] * share
    since = v * v
    s = _followed(panels, t, share, module)
    given = stopping.gain, x[..., None], since, s
    inner = stopping.kernel.below(*given, module) if inside is None else inside(*given)
    return module.sqrt(t) * module.sum(2 * v * inner * weights, axis=-1)


def _followed(panels: Panels, t: Any, share: np.ndarray, module: Any) -> Any:
    """s at the times t - τ, (…, N). Points of a picture have few times."""
    if module is np:
        times, where = np.unique(t, return_inverse=True)
        if len(times) < np.size(t):
            return _followed(panels, times, share, np)[where.reshape(np.shape(t))]
    time = module.maximum(t[..., None] * ((1 - share) * (1 + share)), panels.edges[1] * 1e-30)
    panel = module.searchsorted(module.asarray(panels.edges), time, side="right") - 1
    panel = module.clip(panel, 0, len(panels.edges) - 2)
    return panels.place(panel, time, module)


@functools.lru_cache(maxsize=16)
def _rule(count: int, panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points of pieces of (0, 1), small ones towards both ends: at 0 lies what is near the
    curve, at 1 the start of time, where the curve is steep."""
    late = 2.0 ** -np.arange(NEAREST, 0.0, -1.0)
    early = np.sqrt(1 - 3.0 ** -np.arange(1.0, panels + 1.0))
    ends = np.unique(np.concatenate([[0.0], late, early, [1.0]]))
    nodes, weights = gauss_points(count)
    low, width = ends[:-1, None], np.diff(ends)[:, None]
    return (low + width * nodes).ravel(), (width * weights).ravel()


@functools.lru_cache(maxsize=8)
def gauss_points(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the interval (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


@final
class ExercisePotential(AbstractHostNetwork):
    """w as a network whose coefficients are those of s; `side` is -1 where one stops above the
    curve."""

    inputs: Inputs
    layers: tuple
    coefficients: np.ndarray
    activation: str = eqx.field(static=True)
    edges: np.ndarray
    stopping: Stopping = eqx.field(static=True)
    side: float = eqx.field(static=True)
    start: float = eqx.field(static=True)

    def __init__(
        self, inputs: Inputs, panels: Panels, stopping: Stopping, side: float, start: float
    ):
        self.inputs, self.layers, self.activation = inputs, (), POTENTIAL
        self.coefficients, self.edges = panels.coefficients, panels.edges
        self.stopping, self.side, self.start = stopping, side, start

    @property
    def panels(self) -> Panels:
        return Panels(self.edges, self.coefficients)

    @property
    def parameters(self) -> Any:
        return self.coefficients

    @property
    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        """None: it is no network of cells."""
        return np.zeros((0, 2)), np.zeros((0, 2))

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file, beside the coefficients below each other."""
        kernel, stopped, other, kink = self.stopping
        numbers = [*kernel, *stopped.coefficients, *other.coefficients, kink, self.side, self.start]
        return {"edges": self.edges, "potential": np.array(numbers)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], inputs: Inputs) -> "ExercisePotential":
        edges, numbers = arrays["edges"], arrays["potential"].tolist()
        if len(edges) < 2 or len(numbers) != NUMBERS:
            raise OptionError("potential does not hold the numbers of one.")
        coefficients = arrays["coefficients"].reshape(len(edges) - 1, -1)
        stopped, other = PotentialPiece(tuple(numbers[3:7])), PotentialPiece(tuple(numbers[7:11]))
        stopping = Stopping(Kernel(*numbers[:3]), stopped, other, numbers[11])
        return cls(inputs, Panels(edges, coefficients), stopping, *numbers[12:])

    def boundary(self, t: Any) -> np.ndarray:
        """s at times since the start of time."""
        since = np.clip(np.asarray(t, float) - self.start, self.edges[0], self.edges[-1])
        panel = np.clip(
            np.searchsorted(self.edges, since, side="right") - 1, 0, len(self.edges) - 2
        )
        return self.side * self.panels.place(panel, since)

    def at(self, x: np.ndarray, t: np.ndarray, gauss: int = GAUSS) -> np.ndarray:
        """w at places and times since the start of time (…)."""
        x, since = self.side * x, np.maximum(t - self.start, 1e-300)
        first = self.stopping.without_stopping(x, since)
        return first + integral(self.stopping, self.panels, x, since, gauss)

    def value_at(self, x: np.ndarray) -> np.ndarray:
        parts = [x[k : k + BLOCK] for k in range(0, len(x), BLOCK)]
        return np.concatenate([self.at(part[:, 0], part[:, 1]) for part in parts])

    def jet_at(self, x: np.ndarray) -> Jet:
        """Second derivatives in space; w_t is what the equation makes of them. Those by time twice,
        and once by time and place, no equation asks for: they are left out."""
        parts = [self._derivatives(x[k : k + BLOCK]) for k in range(0, len(x), BLOCK)]
        value, first, second, in_time = (np.concatenate(each) for each in zip(*parts, strict=True))
        hessian = np.zeros((len(x), 2, 2))
        hessian[:, 0, 0] = second
        return Jet(value, np.column_stack([self.side * first, in_time]), hessian)

    def _derivatives(self, z: np.ndarray) -> tuple[np.ndarray, ...]:
        stopping, kernel, panels = self.stopping, self.stopping.kernel, self.panels
        x, t = self.side * z[:, 0], np.maximum(z[:, 1] - self.start, 1e-300)
        value = self.at(z[:, 0], z[:, 1])
        first, second = stopping.derivatives(x, t)
        first = first + integral(stopping, panels, x, t, inside=kernel.slope_below)
        second = second + integral(stopping, panels, x, t, inside=kernel.bend_below)
        stopped = x < self.side * self.boundary(z[:, 1])
        in_time = kernel.a * second + kernel.b * first - kernel.c * value
        return value, first, second, in_time + np.where(stopped, stopping.gain.at(x), 0.0)

    def applied(
        self, x: np.ndarray, A: np.ndarray, b: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        jet = self.jet_at(x)
        terms = (A * jet.hessian).reshape(len(c), -1)
        terms = np.column_stack([terms, b * jet.gradient, -(c * jet.value)])
        return np.sum(terms, axis=1), np.sum(np.abs(terms), axis=1)

    def value(self, x: Array) -> Array:
        point = functools.partial(
            _at_point, self.stopping, self.side, self.start, self.edges, self.coefficients
        )
        return jax.vmap(point)(x)

    def jet(self, x: Array) -> Jet:
        point = functools.partial(
            _at_point, self.stopping, self.side, self.start, self.edges, self.coefficients
        )
        return jax.vmap(jet_of(point))(x)


def _at_point(
    stopping: Stopping, side: float, start: float, edges: Any, coefficients: Any, z: Array
) -> Array:
    x, since = side * z[0], jnp.maximum(z[1] - start, 1e-300)
    first = stopping.without_stopping(x, since, jnp)
    return first + integral(stopping, Panels(edges, coefficients), x, since, GAUSS, jnp)
