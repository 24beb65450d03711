"""The public names, which `cordes` passes on. What is not here is internal, and may change."""

# Before all others: JAX is set up before anything uses it.
import cordes.runtime.settings  # noqa: F401
from cordes.certificates.certificate import Certificate
from cordes.certificates.certify import certify
from cordes.certificates.condition import Condition, check
from cordes.citation import citation
from cordes.domains import AbstractDomain, Ball, Box, Ellipsoid, Polygon
from cordes.errors import (
    ArgumentError,
    CoefficientError,
    CordesError,
    DomainError,
    FileError,
    FrozenError,
    MemoryLimitError,
    NotPickledError,
    OptionError,
    SurfaceError,
    UnknownNameError,
)
from cordes.gallery import gallery
from cordes.gallery.names import problem
from cordes.problems.boundary_conditions import Dirichlet, Neumann, Periodic, Robin
from cordes.problems.checks import UndeclaredJumpWarning
from cordes.problems.condition import CordesConditionWarning
from cordes.problems.hjb import HJB
from cordes.problems.isaacs import Isaacs
from cordes.problems.kinks.boundary_kinks import KinkWarning
from cordes.problems.linear import Linear
from cordes.problems.monge_ampere import ConvexityWarning, MongeAmpere, UnboundedHessianWarning
from cordes.problems.obstacle import Obstacle
from cordes.problems.parabolic import Parabolic
from cordes.problems.problem import AbstractProblem
from cordes.problems.transport import MassError, Transport
from cordes.proofs.needed import NotInstalledError, NotProvedError
from cordes.results import Result
from cordes.runtime import distribution
from cordes.runtime.memory import MemoryLimitWarning
from cordes.runtime.roll_call import ProcessError
from cordes.solutions.outside import OutsideDomainWarning
from cordes.solutions.solution import NotThisKindError, Solution
from cordes.solvers.adam import Adam
from cordes.solvers.cells.cells import Cells
from cordes.solvers.expansions.expansions import Expansions
from cordes.solvers.gauss_newton import GaussNewton
from cordes.solvers.least_squares import LeastSquares
from cordes.solvers.solve import solve
from cordes.storage import OtherProblemWarning, load
from cordes.tables.density import density
from cordes.tables.interpolate import interpolate

__all__ = [
    "HJB",
    "AbstractDomain",
    "AbstractProblem",
    "Adam",
    "ArgumentError",
    "Ball",
    "Box",
    "Cells",
    "Certificate",
    "CoefficientError",
    "Condition",
    "ConvexityWarning",
    "CordesConditionWarning",
    "CordesError",
    "Dirichlet",
    "DomainError",
    "Ellipsoid",
    "Expansions",
    "FileError",
    "FrozenError",
    "GaussNewton",
    "Isaacs",
    "KinkWarning",
    "LeastSquares",
    "Linear",
    "MassError",
    "MemoryLimitError",
    "MemoryLimitWarning",
    "MongeAmpere",
    "Neumann",
    "NotInstalledError",
    "NotPickledError",
    "NotProvedError",
    "NotThisKindError",
    "Obstacle",
    "OptionError",
    "OtherProblemWarning",
    "OutsideDomainWarning",
    "Parabolic",
    "Periodic",
    "Polygon",
    "ProcessError",
    "Result",
    "Robin",
    "Solution",
    "SurfaceError",
    "Transport",
    "UnboundedHessianWarning",
    "UndeclaredJumpWarning",
    "UnknownNameError",
    "certify",
    "check",
    "citation",
    "density",
    "distribution",
    "gallery",
    "interpolate",
    "load",
    "problem",
    "solve",
]
