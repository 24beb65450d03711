"""Expansions: least squares over functions that know the shape of a domain of the plane."""
