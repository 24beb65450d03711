"""JAX as cordes needs it, set when this module is imported, before anything is computed: double
precision, exact products, and compiled programs that are kept between runs."""

import os
from pathlib import Path

import jax

# Programs that compile faster than this many seconds are not kept.
KEPT_FROM = 0.1


def cache_folder() -> Path:
    """Where compiled programs are kept."""
    # By the standard, one that is empty or relative is none.
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "cordes" / "jax"


def apply_settings() -> None:
    """Whoever sets JAX_ENABLE_X64=0 gets what they asked for, and no certificate; a cache of their
    own is kept; CORDES_CACHE=0 does without one."""
    # Second derivatives and least squares need double precision.
    if os.environ.get("JAX_ENABLE_X64", "1").lower() not in ("0", "false"):
        jax.config.update("jax_enable_x64", True)
    # On a GPU float32 products otherwise run in TF32, with three digits.
    jax.config.update("jax_default_matmul_precision", "highest")
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None) is not None
    if not chosen and os.environ.get("CORDES_CACHE", "1") != "0":
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", KEPT_FROM)


apply_settings()
