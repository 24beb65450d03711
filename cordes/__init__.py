"""cordes: elliptic equations in non-divergence form, solved with neural networks and checked."""

import os

import jax

# Second derivatives and least squares need double precision; whoever sets JAX_ENABLE_X64=0 gets what they asked for, and no certificate.
if os.environ.get("JAX_ENABLE_X64", "1").lower() not in ("0", "false"):
    jax.config.update("jax_enable_x64", True)
# On a GPU float32 products otherwise run in TF32, with three digits.
jax.config.update("jax_default_matmul_precision", "highest")
