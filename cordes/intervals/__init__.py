"""Rigorous bounds: interval arithmetic, enclosures of functions written with jax.numpy over boxes,
and certified suprema over a domain."""

from cordes.intervals.arithmetic import Interval, hull, maximum, minimum
from cordes.intervals.interpreter import Enclosure, enclose
from cordes.intervals.movement import UnsupportedOperation
from cordes.intervals.suprema import Infimum, Supremum, infimum, supremum

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
