"""Functions for domains of the plane that need not be convex: polynomials, functions of corners,
poles and logarithms in holes, and the networks made of them."""
