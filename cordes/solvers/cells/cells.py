"""Cells: local polynomials on a tree of cells that follow the solution, for whatever has small
scales. It is no neural network: networks are for solutions that are smooth and global, and for
many dimensions."""

from collections.abc import Mapping
from typing import ClassVar

from cordes.ansatz.cells.network import CellPolynomials
from cordes.arguments import Rule, whole
from cordes.domains import Ball, Box, Ellipsoid, Polygon
from cordes.domains.walls import walled_part
from cordes.errors import OptionError
from cordes.problems.problem import AbstractProblem
from cordes.solutions.answer import Answer
from cordes.solvers.cells.growth import Growth, first_tree
from cordes.solvers.cells.way import CellsWay
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.solver import AbstractSolver
from cordes.solvers.train import Budget, Weights

# Degrees of the polynomials, and how often the box is halved along both axes before the first
# solve.
LEAST_DEGREE, LARGEST_DEGREE = 4, 24
DEGREES, HALVINGS = {1: 10, 2: 10, 3: 6}, {1: 2, 2: 2, 3: 1}
MOST_DIMENSIONS = 3


class Cells(AbstractSolver):
    """Polynomials of a `degree` (None: 10, and 14 where the solution asks for small cells all over
    the domain; 6 in three dimensions) on cells, which are split where the residual asks for it
    until it is at most the tolerance, or the answer does not change any more; at most so many
    `cells` (None: 1500, with a tolerance 4000; 500 of a nonlinear equation). For boxes in up to
    three dimensions, and in the plane for polygons, disks and ellipses."""

    degree: int | None = None
    cells: int | None = None

    method: ClassVar[str] = "cells"
    trains: ClassVar[bool] = False
    outer_steps: ClassVar[int | None] = 60
    small: ClassVar[float] = 1e-3
    rules: ClassVar[Mapping[str, Rule]] = {
        "degree": whole(LEAST_DEGREE, LARGEST_DEGREE),
        "cells": whole(1),
    }

    @staticmethod
    def serves(problem: AbstractProblem) -> bool:
        """Whether a problem is one for cells."""
        few = problem.domain.dimension <= MOST_DIMENSIONS and problem.takes_boundary_values
        # In time the factor that polynomials get knows values only.
        return few and (problem.clock is None or walled_part(problem.domain) is None)

    @staticmethod
    def splits(problem: AbstractProblem) -> bool:
        """Whether the domain of a problem can be cut into cells. In space those at an interface
        would be blended across it, where second derivatives jump."""
        domain = problem.domain
        curved = isinstance(domain, Polygon | Ball | Ellipsoid) and domain.dimension == 2
        box = isinstance(domain, Box) and domain.dimension <= MOST_DIMENSIONS
        return curved or (box and (domain.dimension < 3 or not problem.interfaces))

    def begins_with_polynomials(self, system: AbstractSystem) -> bool:
        """Unless a degree, or a size, is asked for."""
        return system.hard and not self.degree and not self.cells

    def refuse(self, problem: AbstractProblem, others: frozenset[str]) -> None:
        if not self.serves(problem):
            raise OptionError(
                "method = 'cells' is for up to three dimensions and given boundary values, not "
                f"for {type(problem).__name__} on {problem.domain!r}: leave the method out."
            )
        if (self.degree or self.cells) and not self.splits(problem):
            name, value = ("cells", self.cells) if self.cells else ("degree", self.degree)
            raise OptionError(
                f"{name} = {value}: only boxes in up to three dimensions (in three without "
                "interfaces) and plane polygons, disks and ellipses are cut into cells, not "
                f"{problem.domain!r}. Leave it out, or the method."
            )

    def growth(self, system: AbstractSystem, start: Weights | None) -> Growth:
        """The cells to begin with: those of an earlier answer, or the first ones."""
        if not system.hard:
            raise OptionError(
                "boundary_rows = 'soft' is a loss for networks: method='cells' has exact boundary "
                "values. Leave one of them out."
            )
        system.place = system.place._replace(ansatz=system.ansatz.without_distance())
        earlier = None if start is None else start.network
        if isinstance(earlier, CellPolynomials):
            return Growth(system, earlier.degree, earlier.tree)
        dimension = system.domain.dimension
        tree = first_tree(system, HALVINGS[dimension])
        return Growth(system, self.degree or DEGREES[dimension], tree)

    def run(self, system: AbstractSystem, budget: Budget, start: Weights | None) -> Answer:
        way = CellsWay(self, system, budget, start)
        way.polynomials()
        return way.go_on()
