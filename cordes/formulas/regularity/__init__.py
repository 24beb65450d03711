"""Whether a function can have a kink or a jump in a domain, read from its operations."""

from cordes.formulas.regularity.search import jump, kink

__all__ = ["jump", "kink"]
