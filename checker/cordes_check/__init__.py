"""Checks proofs that cordes writes: README.md says what is proved, and from what."""

__version__ = "1.0"
