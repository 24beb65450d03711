"""High dimension

From four dimensions on random features are too few to fill the space. All weights of a network are
trained instead, by Gauss-Newton steps. Integrals in the certificate become means over independent
points, and the bounds hold with the confidence that is stated. The matrix I + xxᵀ is full and
depends on x; its ε in the unit ball is (d + 1)²/(d + 3) - d + 1 by hand. The mean time in which a
diffusion with this noise leaves the ball depends on the radius alone, and is a double integral.
"""

import sys

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import quad
from scipy.interpolate import CubicSpline

import cordes

d = 8
problem = cordes.Linear(cordes.Ball([0] * d, 1), A=lambda x: jnp.eye(d) + jnp.outer(x, x), f=-1.0)
print(cordes.check(problem))
solution = cordes.solve(problem, width=16, points=300, steps=40)
print(solution.certificate)


def factor(r):
    """The integrating factor of (1 + r²)u'' + (d - 1)u'/r = -1."""
    return (r**2 / (1 + r**2)) ** ((d - 1) / 2)


radii = np.linspace(0.01, 1, 60)
slopes = [-quad(lambda s: factor(s) / (1 + s**2), 0, r)[0] / factor(r) for r in radii]
time = CubicSpline(radii, slopes).antiderivative()
error = solution.error(lambda x: time(np.linalg.norm(x, axis=1)) - time(1.0))
print(f"true root mean square error {error.l2:.1e}, certified {solution.certificate.rms:.1e}")

axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
diagonal = solution(radii[:, None] * np.ones(d) / np.sqrt(d))
axes.plot(radii, diagonal, linewidth=5, alpha=0.4, label="network, along a diagonal")
axes.plot(radii, time(radii) - time(1.0), "--", color="black", label="integrals")
axes.set(xlabel="$|x|$", ylabel="mean time", title=f"leaving a ball in {d} dimensions")
axes.legend()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "14_high_dimension.png", dpi=120)
assert error.l2 <= solution.certificate.rms < 1e-3, "the certified root mean square error"
