"""Rigorous bounds: interval arithmetic, enclosures of functions written with jax.numpy over boxes,
and certified suprema over a domain."""

from cordes.formulas.intervals.arithmetic import Interval as Interval
from cordes.formulas.intervals.arithmetic import hull as hull
from cordes.formulas.intervals.program import enclose as enclose
from cordes.formulas.intervals.suprema import infimum as infimum
from cordes.formulas.intervals.suprema import supremum as supremum
from cordes.formulas.movement import UnsupportedOperation as UnsupportedOperation
