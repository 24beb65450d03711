"""How well conditioned the loss of a network is: the spectrum of its Gauss–Newton matrix, with the
multiplier, without it, and for the Laplacian.

Let J be the derivative of the weighted residuals by the parameters, so that the loss is |r|² and
JᵀJ is half the Hessian of the linearised loss. Gradient descent with the largest stable order of
step, 1/λ₁, takes the part of the residual that lies in the k-th eigenvector down by the factor 1 -
λ_k/λ₁ in each step: κ_k = λ₁/λ_k is the number of steps in which it falls by e. A constant factor
of the loss leaves every κ as it is. Adam scales each parameter by itself and is not gradient
descent: κ says what the loss offers, not what Adam makes of it.

Left multiplication of J with diag(γ) is all that the multiplier does here. It weighs points against
each other; the equation at each point stays the same.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from cordes.ansatz.ansatz import Rows
from cordes.errors import OptionError, unknown
from cordes.problems.condition import cordes_multiplier
from cordes.problems.problem import AbstractProblem
from cordes.runtime.blocks import in_blocks
from cordes.runtime.threads import share_cores
from cordes.solutions.answer import Weights
from cordes.solutions.solution import Solution
from cordes.solvers.rows.system import AbstractSystem
from cordes.solvers.train import residual
from cordes.studies.trained import rows_at, state_of, system_at

OPERATORS = ("equation", "laplacian")
# Rows that are differentiated at once: each is a vector as long as all parameters.
BLOCK = 100
SPREAD_POINTS, SPREAD_SEED = 20_000, 53
# Points that no training uses.
FRESH_SEED = 1_000_003
MODES = (10, 30, 100)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the Gauss–Newton matrix in falling order. Those beyond the number of rows are
    zero and left out; of the others, `resolved` lie above the rounding level of double precision
    (n·2⁻¹⁰⁴·λ₁ for n of them, since singular values carry their squares), and the rest are not
    known."""

    eigenvalues: np.ndarray
    parameters: int

    @property
    def largest(self) -> float:
        return float(self.eigenvalues[0])

    @property
    def resolved(self) -> int:
        level = len(self.eigenvalues) * np.finfo(np.float64).eps ** 2 * self.eigenvalues[0]
        return int(np.sum(self.eigenvalues > level))

    def kappa(self, k: int) -> float:
        """λ₁/λ_k; infinite where λ_k is not resolved."""
        if not 1 <= k <= len(self.eigenvalues):
            raise OptionError(
                f"k = {k}: the spectrum has the eigenvalues 1 to {len(self.eigenvalues)}."
            )
        return self.largest / float(self.eigenvalues[k - 1]) if k <= self.resolved else float("inf")

    @property
    def effective_rank(self) -> float:
        """exp of the entropy of λ_k/Σλ (Roy and Vetterli 2007): k for k equal eigenvalues."""
        share = self.eigenvalues[: self.resolved] / np.sum(self.eigenvalues[: self.resolved])
        return float(np.exp(-np.sum(share * np.log(share))))

    def as_data(self) -> dict[str, Any]:
        """Plain numbers; κ is None where an eigenvalue is not resolved, which is the rule for the
        last one."""
        count = len(self.eigenvalues)
        kappas = {f"kappa_{k}": self.kappa(k) for k in MODES if k <= count}
        kappas["kappa_last"] = self.kappa(count)
        return {
            "lambda_1": self.largest,
            **{name: value if np.isfinite(value) else None for name, value in kappas.items()},
            "resolved": self.resolved,
            "effective_rank": self.effective_rank,
            "eigenvalues": count,
            "parameters": self.parameters,
        }


def gauss_newton_spectrum(
    problem: AbstractProblem,
    solution: Solution,
    multiplier: bool = True,
    points: int = 1000,
    seed: int = FRESH_SEED,
    operator: str = "equation",
    choices: dict[str, Any] | None = None,
) -> Spectrum:
    """The spectrum of the loss (mean of squares) at a network, trained or not (`initial_solution`),
    on collocation points of a seed.

    `operator="laplacian"` puts Δu in the place of the equation, to which γA:D²u is as near as a
    scalar factor can bring it; it ignores `multiplier`. A nonlinear equation is frozen at the
    network itself. That is the matrix of direct training too: the derivative of a supremum is that
    of its best control, that of a determinant the cofactors (where D²u is convex or `choices` ask
    for them plain).
    """
    if operator not in OPERATORS:
        raise unknown("operator", operator, OPERATORS)
    if points < 2:
        raise OptionError(f"points = {points}: at least two are needed for a spectrum.")
    state = state_of(solution)
    system = system_at(problem, solution, multiplier, choices)
    rows = (rows_at if operator == "equation" else _laplacian_rows)(system, points, seed)
    return spectrum_of(jacobian(state, rows))


def spectra(
    problem: AbstractProblem,
    solution: Solution,
    points: int = 1000,
    seed: int = FRESH_SEED,
    choices: dict[str, Any] | None = None,
) -> dict[str, Spectrum]:
    """One network through three losses."""
    losses = {
        "PINN": (False, "equation"),
        "C-PINN": (True, "equation"),
        "Laplacian": (True, "laplacian"),
    }
    return {
        name: gauss_newton_spectrum(problem, solution, multiplier, points, seed, operator, choices)
        for name, (multiplier, operator) in losses.items()
    }


def jacobian(state: Weights, rows: Rows) -> np.ndarray:
    """The derivative of the residuals by all parameters of the network and all amplitudes, shape
    (rows, parameters), by reverse differentiation in blocks."""
    leaves, structure = jax.tree.flatten(rows)

    def block(*block_leaves: np.ndarray) -> np.ndarray:
        gradients = jax.tree.leaves(_gradients(state, jax.tree.unflatten(structure, block_leaves)))
        return np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in gradients], axis=1)

    return in_blocks(block, tuple(leaves), BLOCK)


@jax.jit
def _gradients(state: Weights, rows: Rows) -> Any:
    def single(parameters: Any, row: Rows) -> Array:
        alone = jax.tree.map(lambda leaf: leaf[None], row)
        return residual(state.with_parameters(parameters), alone)[0]

    return jax.vmap(jax.grad(single), in_axes=(None, 0))(state.parameters, rows)


def spectrum_of(J: np.ndarray) -> Spectrum:
    """The eigenvalues of JᵀJ that are not zero for want of rows: squares of the singular values of
    J.

    They are also the eigenvalues of JJᵀ, which is cheaper, but forming that product loses half of
    the digits: of a thousand eigenvalues of the paper's network it resolves forty. The triangular
    factor of the tall one of J and Jᵀ has the same singular values and is small.
    """
    if not np.all(np.isfinite(J)) or not np.any(J):
        raise OptionError(
            "The derivatives of the residual are not finite, or all zero: look at the "
            "network's weights and at the coefficients."
        )
    with share_cores():
        triangular = np.linalg.qr(J if J.shape[0] > J.shape[1] else J.T, mode="r")
        return Spectrum(np.linalg.svd(triangular, compute_uv=False) ** 2, J.shape[1])


def _laplacian_rows(system: AbstractSystem, points: int, seed: int) -> Rows:
    x, weight = system.points(points, seed)
    n, d = x.shape
    A, b, none = np.tile(np.eye(d), (n, 1, 1)), np.zeros((n, d)), np.zeros(n)
    return system.ansatz.freeze(x, A, b, none, none, weight)


def multiplier_spread(
    problem: AbstractProblem,
    solution: Solution | None = None,
    choices: dict[str, Any] | None = None,
) -> dict[str, float]:
    """How much γ varies over uniform points of the domain: its extremes, their ratio, standard
    deviation over mean, and the mean of its square. Where it is constant the multiplier changes
    nothing. The multiplier of a nonlinear problem is that of its linearisation at a solution, which
    must be given."""
    points = problem.domain.interior_points(SPREAD_POINTS, SPREAD_SEED)
    if problem.linear:
        A = problem.coefficients(points).A
    elif solution is None:
        raise OptionError(
            f"{problem.name} is nonlinear: its multiplier depends on the state. Pass a solution."
        )
    else:
        A = problem.coefficients(points, solution.jet(points), **(choices or {})).A
    gamma = cordes_multiplier(np.asarray(A))
    least, most = float(np.min(gamma)), float(np.max(gamma))
    return {
        "min": least,
        "max": most,
        "ratio": most / least,
        "variation": float(np.std(gamma) / np.mean(gamma)),
        "mean_square": float(np.mean(gamma**2)),
    }
