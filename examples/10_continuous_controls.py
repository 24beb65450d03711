"""Continuous controls

Now steer: the drift a is any vector of the square [-1, 1]², and time costs 1 + |a|²/2. The best a
is known, -∇u, and passed as `maximiser`; `controls` is then only a sample of the set, with its
corners. The equation is 0.8 Δu + min_a (a·∇u + |a|²/2) + 1 = 0, where the minimum is -|∇u|²/2. With
w = exp(-u/1.6), the transform of Hopf and Cole, it becomes 1.28 Δw = w: w is a Bessel function.
"""

import sys
import warnings

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.special import i0

import cordes

warnings.simplefilter("ignore", cordes.CordesConditionWarning)  # another theorem covers this drift
problem = cordes.HJB(
    domain=cordes.Ball([0, 0], 1),
    controls=np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 5)]), axis=-1).reshape(-1, 2),
    A=0.8,
    b=lambda x, a: a,
    f=lambda x, a: -1 - jnp.dot(a, a) / 2,
    sense="inf",
    maximiser=lambda x, jet: jnp.clip(-jet.gradient, -1, 1),
)
solution = cordes.solve(problem)
print("best control at (0.6, 0.3):", solution.policy([0.6, 0.3]))
print(solution.certificate)

axes = (figure := Figure(figsize=(5.5, 4.5), layout="constrained")).subplots()
r, angle = np.meshgrid(np.linspace(0, 1, 60), np.linspace(0, 2 * np.pi, 120))
x = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1)
figure.colorbar(axes.contourf(x[..., 0], x[..., 1], solution(x), levels=20), label="least cost u")
arrows = x[::6, 9::10].reshape(-1, 2)
axes.quiver(*arrows.T, *solution.policy(arrows).T, color="white", scale=10)
axes.set_title("least cost, and where to steer")
axes.set(aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "10_continuous_controls.png", dpi=120)

error = abs(solution([0, 0]) - 1.6 * np.log(i0(1 / np.sqrt(1.28))))
print(f"error at the centre: {error:.1e}")
assert error <= solution.certificate.Linf < 1e-6, "the error at the centre, which it bounds"
