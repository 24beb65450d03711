"""Three dimensions

How long does a particle stay in an ellipsoid, if noise drives it and a spring pulls it to the
centre? The mean time solves a linear equation with noise A and drift b. Nothing changes in three
dimensions but the price: features are more, integrals cost more, and `plot` draws slices. The noise
is as anisotropic as the ellipsoid, and there is a drift, so the Cordès condition fails; by changes
of variables the error is bounded all the same.
"""

import sys
import warnings

import numpy as np
from scipy.integrate import quad

import cordes

warnings.simplefilter("ignore", cordes.CordesConditionWarning)
semi_axes = np.array([1.5, 1.0, 0.5])
problem = cordes.Linear(
    domain=cordes.Ellipsoid([0, 0, 0], semi_axes),
    A=np.diag(semi_axes**2) / 2,
    b=lambda x: -x,
    f=-1.0,
    name="mean time",
)
print(cordes.check(problem))
solution = cordes.solve(problem, tol=1e-6)
print(f"{solution.parameters} features, {solution.points} points")
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "08_three_dimensions.png")

# Scaled by its semi-axes the ellipsoid is the unit ball, the noise is isotropic, and the time
# depends on the radius alone: two integrals.
exact = quad(
    lambda r: 2 * np.exp(r**2) / r**2 * quad(lambda s: s**2 * np.exp(-(s**2)), 0, r)[0], 0, 1
)[0]
error = abs(solution([0, 0, 0]) - exact)
print(f"mean time from the centre {solution([0, 0, 0]):.8f}, by hand {exact:.8f}")
assert error <= solution.certificate.Linf < 1e-4, "the error of the mean time from the centre"
