"""A theorem

An equation of your own, and a proof: a file that another program, which knows no solver and no
JAX, turns into the sentence that there is exactly one solution, and that it is this near to the
answer. It needs the extra `proof`. A file that was changed by hand is refused.
"""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp

import cordes

figure = Path(sys.argv[1] if len(sys.argv) > 1 else "19_a_theorem.png")


def A(x):
    return jnp.diag(2 + jnp.cos(jnp.pi * x))


def b(x):
    return jnp.stack([jnp.sin(jnp.pi * x[0]), 0.0])


def f(x):
    return -jnp.exp(jnp.cos(jnp.pi * x[0])) * jnp.prod(jnp.sin(jnp.pi * x))


problem = cordes.Linear(cordes.Box([0, 0], [1, 1]), A, f, b=b, c=1.0, name="an equation of my own")
solution = cordes.solve(problem, features=200, singular=False)
proved = solution.prove("mine.proof")
print(proved.certificate.proof.theorem)
proved.plot(figure)

check = [sys.executable, "-m", "cordes_check", "mine.proof"]
subprocess.run(check, stdout=subprocess.DEVNULL, check=True)
text = Path("mine.proof").read_text(encoding="utf-8")
Path("mine.proof").write_text(text.replace("x1", "x2", 1), encoding="utf-8")
print(subprocess.run(check, capture_output=True, text=True, check=False).stdout)
assert proved.certificate.Linf < 1e-7, "the bound"
