"""The American put in units of its strike, in the logarithm of the price, x = log(S/K): the right
to sell for K at any time before the horizon. Stopping is best where the price is low enough.

    max(u_t + ½σ²u_xx + (r - q - ½σ²)u_x - ru, ψ - u)  =  0,     u = ψ at the horizon

    cordes solve @file
    cordes solve @file --tol 1e-5 --out @name-result
    python @file
"""

import cordes
import jax.numpy as jnp
import numpy as np

STRIKE, MATURITY = 100.0, 1.0
VOLATILITY, INTEREST, DIVIDENDS = 0.25, 0.05, 0.05
VARIANCE = VOLATILITY**2


def payoff(x):
    return jnp.maximum(1 - jnp.exp(x[0]), 0.0)


problem = cordes.Obstacle(
    cordes.Parabolic(
        domain=cordes.Box([-np.log(5)], [np.log(8)]),  # S from a fifth to eight times the strike
        horizon=MATURITY,
        A=VARIANCE / 2,
        b=np.array([INTEREST - DIVIDENDS - VARIANCE / 2]),
        c=INTEREST,
        f=0.0,
        g=lambda x, t: payoff(x),  # at both ends: exact where one stops, and nothing far above
        terminal=payoff,
    ),
    below=payoff,  # the obstacle: what stopping pays
    name="@name",  # in tables and reports
)

if __name__ == "__main__":
    solution = cordes.solve(problem, certify=True)
    spots = np.array([80.0, 90.0, 100.0, 110.0, 120.0])
    print(solution.table(np.log(spots / STRIKE)[:, None], t=0.0, scale=STRIKE, labels=spots))
    print("stop now at", spots[solution.exercise(np.log(spots / STRIKE)[:, None], 0.0)])
    print(solution.certificate)
