"""Corners

Δu = 2 on a square with u = 0 on its boundary: nothing could be simpler, and yet D²u cannot be
continuous. At a corner both u₁₁ and u₂₂ must vanish, but their sum is 2; the solution behaves like
r² log r. In two dimensions such points are found, and singular functions made from A are added to
the network without being asked for. Leaving them out shows what they are worth.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import cordes

problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), A=1.0, f=2.0)
solution = cordes.solve(problem)
smooth = cordes.solve(problem, singular=False)
print("singular points:", solution.singular_locations.tolist())

# The Fourier series of the torsion problem, at the centre.
n = np.arange(1, 40, 2)
exact = -1 / 4 + 8 / np.pi**3 * np.sum((-1.0) ** ((n - 1) // 2) / (n**3 * np.cosh(n * np.pi / 2)))

distance = np.geomspace(1e-6, 0.5, 200)
axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
for name, answer in (("smooth network", smooth), ("with singular functions", solution)):
    error, bound = abs(answer([0.5, 0.5]) - exact), answer.certificate.Linf
    print(f"{name:<24} error at the centre {error:.1e}, certified {bound:.1e}")
    axes.loglog(distance, np.abs(answer.residual(distance[:, None] * [1, 1])), label=name)
axes.set(
    xlabel="$t$, on the diagonal $(t, t)$ from the corner",
    ylabel="|residual|",
    title="Δu = 2 on the unit square",
)
axes.legend()
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "04_corners.png", dpi=120)

assert error <= bound < 1e-7, "the certified largest error"
