"""A game

A swimmer wants to stay in a channel for as long as possible, and steers with unit speed; the water
chooses how much it shakes, and wants the opposite. Who chooses second knows what the other one has
chosen: the equation is inf over the water of sup over the swimmer. The swimmer makes for the middle
and the water shakes as it can, so that the time is known in closed form.
"""

import sys
import warnings

import jax.numpy as jnp
import numpy as np

import cordes

problem = cordes.Isaacs(
    cordes.Box([0], [1]),
    controls=[-1.0, 1.0],
    opponents=[1.0, 4.0],
    A=lambda x, a, o: o / 2 * jnp.eye(1),
    b=lambda x, a, o: jnp.array([a]),
    f=-1.0,
    name="a swimmer and the water",
)
warnings.simplefilter("ignore", cordes.CordesConditionWarning)  # another theorem covers this drift
solution = cordes.solve(problem)
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "22_a_game.png")
places = np.array([[0.25], [0.75]])
print(
    "the swimmer goes", solution.policy(places), "and the water shakes", solution.opponent(places)
)
# 2u″ + |u′| + 1 = 0, from one side to the middle.
exact = 2 * np.exp(0.25) * (1 - np.exp(-0.25 / 2)) - 0.25
print(f"at a quarter {solution([0.25]):.9f}, by hand {exact:.9f}")
assert abs(solution([0.25]) - exact) < 1e-6, "the time at a quarter of the channel"
