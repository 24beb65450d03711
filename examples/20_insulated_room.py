"""An insulated room

Warm air comes in on the left, at one degree, is carried along by a wind and leaves heat through the
window on the right; floor and ceiling are insulated. The answer fulfils all conditions exactly.
"""

import sys
import warnings

import jax.numpy as jnp
import numpy as np

import cordes

wind, kappa = 4.0, 0.5
problem = cordes.Linear(
    cordes.Box([0, 0], [2, 1]),
    A=np.eye(2),
    b=[-wind, 0.0],
    f=0.0,
    boundary={
        "left": cordes.Dirichlet(lambda x: 1 + 0.5 * jnp.cos(jnp.pi * x[1])),
        "right": cordes.Robin(kappa),
        "outer": cordes.Neumann(),
    },
)
warnings.simplefilter("ignore", cordes.CordesConditionWarning)  # another theorem covers this wind
solution = cordes.solve(problem)
print(solution.certificate)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "20_insulated_room.png")


def mode(square, start, x):
    """The solution of v″ - wind v′ = square v with v = start at 0 and v′ + kappa v = 0 at 2."""
    root = np.sqrt(wind**2 / 4 + square)
    rates = np.array([wind / 2 + root, wind / 2 - root])
    matrix = np.array([[1.0, 1.0], (rates + kappa) * np.exp(2 * (rates - rates[0]))])
    return np.linalg.solve(matrix, [start, 0.0]) @ np.exp(rates * x)


# By separation of variables: the mean of the temperature, and its wave across the room.
x = np.array([1.5, 0.25])
exact = mode(0.0, 1.0, x[0]) + mode(np.pi**2, 0.5, x[0]) * np.cos(np.pi * x[1])
print(f"near the window {solution(x):.10f}, by separation of variables {exact:.10f}")
assert abs(solution(x) - exact) < 1e-8, "the temperature near the window"
