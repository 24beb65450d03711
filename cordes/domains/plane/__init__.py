"""Domains of the plane that need not be convex, by the arcs of their boundaries."""
