"""Problems with small scales, and harder ones, each as a user would write it: seven for cells, ten
on which finite elements, spectral codes and monotone differences were measured. Layers, of which
nothing is known, are solved by another method in `benchmarks/scales/truths.py`."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import cordes
from cordes.gallery.paper_linear import manufactured

SKEW = np.array([[2.0, 0.5], [0.5, 1.0]])
SQUARE = cordes.Box([-1, -1], [1, 1])
UNIT = cordes.Box([0, 0], [1, 1])


def sheared(x):
    return jnp.array([[2.0, x[0] / 2], [x[0] / 2, 1.0]])


def known(domain, A, u, g=None, **more):
    """The problem whose solution is u."""
    return cordes.Linear(domain, A, manufactured(A, u), g=u if g is None else g, exact=u, **more)


def waves():
    return known(SQUARE, sheared, lambda x: jnp.sin(40 * x[0]) * jnp.cos(30 * x[1]))


def peak_sheared():
    def u(x):
        return jnp.exp(-((x[0] - 0.313) ** 2 + (x[1] + 0.271) ** 2) / 0.02**2)

    return known(SQUARE, sheared, u, g=0.0)


def source(radius: float):
    def make():
        def f(x):
            far = (x[0] - 0.313) ** 2 + (x[1] + 0.271) ** 2
            return -jnp.exp(-far / radius**2) / radius**2

        return cordes.Linear(SQUARE, sheared, f)

    return make


def kinked_values():
    return cordes.Linear(SQUARE, sheared, 0.0, g=lambda x: jnp.abs(x[0]))


def layer(epsilon: float, right: float = 1.0):
    def make():
        return cordes.Linear(UNIT, epsilon * np.eye(2), right, b=[1.0, 0.5])

    return make


def two_controls():
    def A(x, a):
        return jnp.where(a < 0.5, jnp.eye(2), jnp.array([[2.0, 0.25], [0.25, 0.7]]))

    def f(x, a):
        return jnp.where(a < 0.5, -1.0, -1.3 + x[0])

    return cordes.HJB(UNIT, [0.0, 1.0], A, f)


def disk_inside(declared: bool):
    """u is known, and A jumps on a circle."""

    def phi(x):
        return x[0] ** 2 + x[1] ** 2 - 0.25

    def A(x):
        return jnp.where(phi(x) > 0, jnp.eye(2), jnp.array([[2.0, 0.5], [0.5, 1.0]]))

    def u(x):
        # The square root has no derivatives at the origin, and is not needed inside.
        r = jnp.sqrt(jnp.where(phi(x) > 0, x[0] ** 2 + x[1] ** 2, 1.0))
        return phi(x) + jnp.where(phi(x) > 0, 2 * (r - 0.5) ** 2 * r, 0.0)

    def make():
        return known(SQUARE, A, u, interfaces=[phi] if declared else [])

    return make


def determinant():
    return cordes.MongeAmpere(UNIT, 1.0)


def free_boundary():
    def A(x, a):
        return jnp.where(a < 0.5, jnp.asarray(SKEW), jnp.array([[1.0, -0.5], [-0.5, 2.0]]))

    return cordes.HJB(cordes.Ball([0, 0], 1), [0.0, 1.0], A, lambda x, a: 1 + 0.5 * a * x[0], c=1.0)


def oscillating():
    def A(x):
        bend, off = 0.5 * jnp.sin(20 * x[0]), 0.3 * jnp.cos(20 * x[1])
        return jnp.array([[1 + bend, off], [off, 1 - bend]])

    return cordes.Linear(UNIT, A, -1.0, b=lambda x: jnp.array([5 * jnp.sin(20 * x[1]), 5.0]), c=1.0)


def peak():
    def u(x):
        return jnp.exp(-((x[0] - 0.4) ** 2 + (x[1] - 0.6) ** 2) / (2 * 0.02**2))

    return known(UNIT, lambda x: jnp.asarray(SKEW), u, g=0.0)


def circle(declared: bool):
    def phi(x):
        return x[0] ** 2 + x[1] ** 2 - 0.25

    def A(x):
        return jnp.where(phi(x) < 0, jnp.asarray(SKEW), jnp.eye(2))

    def make():
        return cordes.Linear(SQUARE, A, -1.0, interfaces=[phi] if declared else [])

    return make


def twelve_corners():
    t = 2 * np.pi * (np.arange(12) + 0.25 * np.sin(5 * np.arange(12))) / 12
    corners = np.stack([1.3 * np.cos(t), np.sin(t)], -1)
    return cordes.Linear(cordes.Polygon(corners), SKEW, -1.0)


def jumping_cube():
    def A(x):
        s = jnp.sign(x[0] * x[1])
        return jnp.array([[2.0, s, 0.0], [s, 2.0, 0.0], [0.0, 0.0, 2.0]])

    planes = [lambda x: x[0], lambda x: x[1]]
    return cordes.Linear(cordes.Box([-1] * 3, [1] * 3), A, -1.0, interfaces=planes)


SCALES: dict[str, Callable] = {
    "P1-waves": waves,
    "P2-peak": peak_sheared,
    "P2-source-0.01": source(0.01),
    "P2-source-0.002": source(0.002),
    "P3-kinked": kinked_values,
    "P4-layer-1e-2": layer(1e-2),
    "P4-layer-1e-3": layer(1e-3),
    "P4-layer-1e-4": layer(1e-4),
    "P5-controls": two_controls,
    "P6-circle": disk_inside(True),
    "P6-undeclared": disk_inside(False),
    "P7-determinant": determinant,
}
HARDER: dict[str, Callable] = {
    "free-boundary": free_boundary,
    "dean-glowinski": determinant,
    "oscillating": oscillating,
    "layer-1e-2": layer(1e-2, -1.0),
    "layer-1e-3": layer(1e-3, -1.0),
    "peak": peak,
    "circle-declared": circle(True),
    "circle-undeclared": circle(False),
    "polygon12": twelve_corners,
    "box3d": jumping_cube,
}
