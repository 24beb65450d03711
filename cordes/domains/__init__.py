"""Domains: the convex sets on which equations are solved."""

from cordes.domains.box import Box
from cordes.domains.domain import AbstractDomain
from cordes.domains.polygon import Polygon
from cordes.domains.round import Ball, Ellipsoid

__all__ = ["AbstractDomain", "Ball", "Box", "Ellipsoid", "Polygon"]
