"""Rigorous bounds: interval arithmetic, enclosures of functions written with jax.numpy over boxes,
and certified suprema over a domain."""

from cordes.formulas.intervals.arithmetic import Interval, hull, maximum, minimum
from cordes.formulas.intervals.interpreter import Enclosure, enclose
from cordes.formulas.intervals.suprema import Infimum, Supremum, infimum, supremum
from cordes.formulas.movement import UnsupportedOperation

__all__ = [
    "Enclosure",
    "Infimum",
    "Interval",
    "Supremum",
    "UnsupportedOperation",
    "enclose",
    "hull",
    "infimum",
    "maximum",
    "minimum",
    "supremum",
]
