"""Interfaces

Where coefficients jump, second derivatives of u jump too, and a smooth network follows slowly.
Declare such a curve as a function that vanishes on it: there the answer may bend, and integrals are
cut along it. Here a material four times as stiff surrounds a disk of radius 1/2: a(x)Δu = 1 in the
unit disk. A jump that a comparison in a formula makes is found and need not be declared. Others,
as behind `floor`, are warned about; the answer is then poor, and the certificate refuses a bound.
"""

import sys
import warnings

import jax.numpy as jnp
import numpy as np

import cordes

disk, radius = cordes.Ball([0, 0], 1), 0.5


def compared(x):
    return jnp.where(jnp.dot(x, x) < radius**2, 1.0, 4.0) * jnp.eye(2)


def hidden(x):
    return (1.0 + 3.0 * jnp.minimum(jnp.floor(jnp.dot(x, x) / radius**2), 1.0)) * jnp.eye(2)


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    plain = cordes.solve(cordes.Linear(disk, hidden, f=1.0))
print("warning:", caught[0].message)

found = cordes.solve(cordes.Linear(disk, compared, f=1.0))
phi = [lambda x: jnp.dot(x, x) - radius**2]
solution = cordes.solve(cordes.Linear(disk, compared, f=1.0, interfaces=phi, name="disk in a disk"))

# In polar coordinates (r u')' = r/a(r), which is integrated by hand.
exact = -(radius**2 + (1 - radius**2) / 4) / 4 - 3 / 8 * radius**2 * np.log(1 / radius)
for name, answer in (("not declared", plain), ("found", found), ("declared", solution)):
    error, bound = abs(answer([0, 0]) - exact), answer.certificate.Linf
    print(f"{name:<13} error at the centre {error:.1e}, certified:", bound)
solution.plot(sys.argv[1] if len(sys.argv) > 1 else "03_interfaces.png")

assert error <= bound < 1e-6, "the certified largest error"
