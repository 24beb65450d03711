"""Curved domains

No mesh is made: a domain is a function that vanishes on its boundary, and the answer is an
extension of the boundary values plus this function times a network, so that u = g holds exactly.
Balls, ellipsoids (semi-axes, or a matrix whose columns are the semi-axis vectors) and convex
polygons are built in. The real part of sin 2z is harmonic; its values on the boundary alone must
bring it back on each domain.
"""

import sys

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import cordes


def harmonic(x):
    return jnp.sin(2 * x[0]) * jnp.cosh(2 * x[1])


angles = np.pi / 3 * np.arange(6)
domains = {
    "disk": cordes.Ball([0, 0], 1),
    "ellipse": cordes.Ellipsoid([0, 0], np.array([[1.2, -0.4], [0.6, 0.8]])),
    "hexagon": cordes.Polygon(np.stack([np.cos(angles), np.sin(angles)], axis=1)),
}
grid = np.stack(np.meshgrid(np.linspace(-1.4, 1.4, 300), np.linspace(-1.1, 1.1, 236)), axis=-1)
panels = (figure := Figure(figsize=(10, 3.3), layout="constrained")).subplots(1, 3, sharey=True)
errors = {}
for axes, (name, domain) in zip(panels, domains.items(), strict=True):
    problem = cordes.Linear(domain, A=1.0, f=0.0, g=harmonic, exact=harmonic)
    solution = cordes.solve(problem, tol=1e-7)
    errors[name], bound = solution.error().linf, solution.certificate.Linf
    print(f"{name:<8} area {domain.volume:.4f},", end=" ")
    print(f"largest error {errors[name]:.1e}, certified {bound:.1e}")
    inside, values = domain.contains(grid), np.full(grid.shape[:2], np.nan)
    values[inside] = solution(grid[inside])
    colours = axes.contourf(grid[..., 0], grid[..., 1], values, levels=np.linspace(-4, 4, 41))
    axes.set(title=name, xlabel="$x_1$", ylabel="$x_2$", aspect="equal")
figure.colorbar(colours, ax=panels, label="u", shrink=0.8)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "07_curved_domains.png", dpi=120)

assert max(errors.values()) < 1e-7, "the largest error on the three domains"
