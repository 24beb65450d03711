"""Checking the Cordès condition

ε = (tr A)²/|A|² - (d - 1) measures how near A is to a multiple of the identity. In the plane it is
positive for every elliptic matrix; in three dimensions it can fail, for diag(t, 1, 1) from t = 4
on. A failure says that one theorem is silent. It is no failure of the solve, and other theorems may
still bound the error: a linear change of variables brings most matrices near the identity again,
and the certificate looks for one.
"""

import sys
import warnings

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import cordes

ball, stretches = cordes.Ball([0, 0, 0], 1), np.linspace(1, 12, 23)
stretched = [cordes.Linear(ball, A=np.diag([t, 1, 1]), f=-1.0) for t in stretches]
epsilons = [cordes.check(problem).epsilon for problem in stretched]

problem = cordes.Linear(
    ball, A=lambda x: jnp.diag(jnp.array([10 + x[1], 1.0, 1.0])), f=lambda x: -jnp.exp(x[0])
)
print(cordes.check(problem))
warnings.simplefilter("ignore", cordes.CordesConditionWarning)  # it says what is printed here
solution = cordes.solve(problem, tol=1e-6)
print(solution.result.sentence)
print(solution.certificate)

axes = (figure := Figure(figsize=(6, 4), layout="constrained")).subplots()
axes.plot(stretches, epsilons, "o-")
bottom = min(epsilons) - 0.1
axes.axhspan(bottom, 0, alpha=0.15, color="tab:red")
axes.text(11.8, -0.04, "the condition fails", ha="right", va="top")
axes.set_title("The Cordès condition for diag($t$, 1, 1)")
axes.set(xlabel="$t$", ylabel="ε", ylim=(bottom, None))
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "06_checking_cordes.png", dpi=120)

zero = np.interp(0, epsilons[::-1], stretches[::-1])
print(f"ε changes its sign at t = {zero:.3f};", end=" ")
print(f"all the same the error above is at most {solution.certificate.rms:.1e}")
assert abs(zero - 4) < 1e-3, "the stretch at which ε changes its sign, 4 by hand"
