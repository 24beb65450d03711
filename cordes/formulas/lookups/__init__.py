"""Tables in formulas: numbers that are looked up by an index that depends on x."""

from cordes.formulas.lookups.extremes import RangeExtremes
from cordes.formulas.lookups.lookup import Lookup, found_places

__all__ = ["Lookup", "RangeExtremes", "found_places"]
