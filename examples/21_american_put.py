"""An American put

Whoever holds a put may exercise it at any time before it ends. Its price solves max(F[u], ψ − u) =
0 with the payoff ψ, in the logarithm of the price of the stock. Two published schemes differ in the
eighth digit of what the right to exercise early is worth: the certified interval lies at one of
them, and leaves out the other.
"""

import sys

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

import cordes

interest, dividends, volatility = 0.05, 0.05, 0.25


def payoff(x):
    return jnp.maximum(1 - jnp.exp(x[0]), 0.0)


european = cordes.Parabolic(
    cordes.Box([-np.log(5)], [np.log(8)]),
    horizon=1.0,
    A=volatility**2 / 2,
    b=np.array([interest - dividends - volatility**2 / 2]),
    c=interest,
    f=0.0,
    g=lambda x, t: payoff(x),
    terminal=payoff,
)
solution = cordes.solve(cordes.Obstacle(european, below=payoff, name="an American put"))
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "21_american_put.png")
spots = np.array([80.0, 100.0, 120.0])
print(solution.table(np.log(spots / 100)[:, None], t=0.0, scale=100, labels=spots))
# Without early exercise, by Black and Scholes, at the strike.
d = volatility / 2
flat = 100 * np.exp(-interest) * (ndtr(d) - ndtr(-d))
premium = 100 * float(solution([0.0], 0.0)) - flat
print(f"early exercise is worth {premium:.9f}, published: 0.1069527028 and 0.1069526780")
assert abs(premium - 0.1069527028) < 1e-9, "the premium"
