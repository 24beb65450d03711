"""Domains: the convex sets on which equations are solved."""

from cordes.domains.ball import Ball
from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.ellipsoid import Ellipsoid
from cordes.domains.polygon import Polygon

__all__ = ["AbstractDomain", "Ball", "Box", "Ellipsoid", "Polygon"]
