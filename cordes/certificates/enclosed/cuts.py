"""Where cells are cut first: at what is known to lie along the axes."""

from cordes.problems.kinks.lines import lines_of as cuts_of

__all__ = ["cuts_of"]
