"""Transport as rows: the frozen equation inside, the oblique condition on the boundary, one row
that fixes the constant, one multiplier for the mass.

The linear equation is solvable only if its right-hand side has the right mean, and with boundary
values in the least-squares sense it never has it exactly: the unknown constant c in ν(∇u) det D²u =
μ + c takes what is missing. It rides along as the last amplitude, and is reported.
"""

from typing import Any

import numpy as np

from cordes.ansatz.ansatz import Rows
from cordes.ansatz.build import AnsatzOptions, BuiltAnsatz, plain_ansatz
from cordes.ansatz.points import Points, collocation_points
from cordes.jet import Jet
from cordes.problems.transport import Transport
from cordes.solutions.answer import Answer
from cordes.solvers.rows.system import AbstractSystem, JetAt, stack

# Boundary rows for each interior row, and their weight: a defect there moves the whole map.
SHARE, WEIGHT = 0.25, 30.0
BOUNDARY_SEEDS = 1 << 31


class TransportSystem(AbstractSystem):
    """The rows of a transport problem. Nothing about the boundary is built into the ansatz: base +
    network."""

    problem: Transport

    def __init__(self, problem: Transport, multiplier: bool = True, delta: float = 0.0):
        self.problem, self.multiplier = problem, multiplier
        self.options = AnsatzOptions(singular=False, inputs="coordinates", delta=delta)
        self.place = BuiltAnsatz(plain_ansatz(problem, False, "coordinates"), [], 0)
        self.freeze(None)

    @property
    def columns(self) -> int:
        return 1

    def freeze(self, jet: JetAt | None, **choices: Any) -> None:
        super().freeze(jet, **choices)
        self._jet = self.problem.base_jet if jet is None else jet
        self._damping = choices.get("damping", 1.0)

    def points(self, uniform: int, seed: int, per_function: float = 2.5) -> Points:
        return collocation_points(self.domain, uniform, seed, hidden=self.hidden)

    def rows(self, points: Points) -> Rows:
        """Interior rows with the column of the multiplier, boundary rows, and the row u(centre) =
        base(centre)."""
        coefficients = self.coefficients(points.x)
        factor = self.factors(coefficients) * points.weight
        inside = self.ansatz.freeze(points.x, *coefficients, factor=factor)  # pyright: ignore
        inside = inside._replace(singular=-factor[:, None])
        x, normals = self._boundary(points)
        gradient = np.asarray(self._jet(x).gradient)
        directions, heights = self.problem.boundary_condition(normals, gradient, self._damping)
        n, d = x.shape
        weight = np.full(n, WEIGHT * n**-0.5)
        rim = self.ansatz.freeze(x, np.zeros((n, d, d)), directions, np.zeros(n), heights, weight)
        center = np.asarray(self.domain.center)[None]
        value = np.asarray([float(self.problem.base(center[0]))])
        gauge = self.ansatz.freeze(
            center, np.zeros((1, d, d)), np.zeros((1, d)), -np.ones(1), value, np.ones(1)
        )
        outside = stack(rim, gauge)
        return stack(inside, outside._replace(singular=np.zeros((n + 1, 1))))

    def _boundary(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """As many points as belong to those inside, which also seed them: fitting and judging use
        different ones on the boundary too."""
        count, d = points.x.shape
        number = int(max(SHARE * count, 4 * count ** ((d - 1) / d), 8))
        seed = int(np.frombuffer(points.x[0].tobytes(), np.uint32).sum()) % BOUNDARY_SEEDS
        return self.domain.boundary_points(number, seed)

    def measure(
        self, points: Points, jet: JetAt, at: Jet, choices: dict[str, Any]
    ) -> tuple[float, float]:
        """Interior and boundary residuals together."""
        inside, scale = super().measure(points, jet, at, choices)
        return float(np.hypot(inside, WEIGHT * self.rim_defect(points, jet))), scale

    def finished(self, answer: Answer) -> Answer:
        """The multiplier leaves the amplitudes and becomes a fact: the mass that the equation lacks
        is c|X|."""
        c = float(np.asarray(answer.amplitudes)[0]) if np.size(answer.amplitudes) else 0.0
        facts = {"mass_defect": c * self.domain.volume}
        return answer._replace(amplitudes=np.zeros(0), facts=facts)

    def rim_defect(self, points: Points, jet: JetAt) -> float:
        """How far the image of the boundary is from the boundary of the target, root mean
        square."""
        x, normals = self._boundary(points)
        gradient = np.asarray(jet(x).gradient)
        directions, heights = self.problem.boundary_condition(normals, gradient)
        return float(np.sqrt(np.mean((np.sum(directions * gradient, axis=1) - heights) ** 2)))
