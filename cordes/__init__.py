"""cordes: elliptic equations in non-divergence form, solved with neural networks and checked."""

import os
import sys
from pathlib import Path

from cordes.citation import citation
from cordes.natural_names import hint as _hint

__version__ = "0.1.0"

# A shell that completes a word wants names while somebody waits at a key: nothing numerical is
# loaded for it (cordes/commands/completion.py).
if not os.environ.get("_CORDES_COMPLETE"):
    import jax

    # Second derivatives and least squares need double precision; whoever sets JAX_ENABLE_X64=0 gets
    # what they asked for, and no certificate.
    if os.environ.get("JAX_ENABLE_X64", "1").lower() not in ("0", "false"):
        jax.config.update("jax_enable_x64", True)
    # On a GPU float32 products otherwise run in TF32, with three digits.
    jax.config.update("jax_default_matmul_precision", "highest")
    # Compiled programs are kept between runs. Whoever has set a cache of their own keeps it.
    if (
        getattr(jax.config, "jax_compilation_cache_dir", None) is None
        and os.environ.get("CORDES_CACHE", "1") != "0"
    ):
        _cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "cordes" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(_cache))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

    from cordes.certificates.certificate import Certificate
    from cordes.certificates.certify import certify
    from cordes.certificates.condition import Condition, CordesConditionWarning, check
    from cordes.domains import AbstractDomain, Ball, Box, Ellipsoid, Polygon
    from cordes.errors import CordesError
    from cordes.gallery import gallery
    from cordes.problems.hjb import HJB
    from cordes.problems.linear import Linear, UndeclaredJumpWarning
    from cordes.problems.monge_ampere import ConvexityWarning, MongeAmpere, UnboundedHessianWarning
    from cordes.problems.transport import Transport
    from cordes.results import Result
    from cordes.solutions.solution import OutsideDomainWarning, Solution
    from cordes.solutions.storage import load
    from cordes.solvers.choose import solve

__all__ = [
    "HJB",
    "AbstractDomain",
    "Ball",
    "Box",
    "Certificate",
    "Condition",
    "ConvexityWarning",
    "CordesConditionWarning",
    "CordesError",
    "Ellipsoid",
    "Linear",
    "MongeAmpere",
    "OutsideDomainWarning",
    "Polygon",
    "Result",
    "Solution",
    "Transport",
    "UnboundedHessianWarning",
    "UndeclaredJumpWarning",
    "certify",
    "check",
    "citation",
    "gallery",
    "load",
    "solve",
]


def __getattr__(name: str) -> object:
    """Names that are not here: the ones that are natural to look for are answered with what they
    are called."""
    known = _hint(name)
    if known is None:
        raise AttributeError(
            f"module 'cordes' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    raise AttributeError(known)
