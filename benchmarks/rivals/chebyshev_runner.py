"""The classical rival: Chebyshev collocation with rising degree, until the error estimate is at
rounding level. The clock runs on through all degrees.

Linear problems in the plane go to the library's reference solver, cut along the interfaces and not
graded: the solutions are smooth between them. The other two are solved with one polynomial on the
whole box. None of these solvers knows the exact solution; all of them need a box.
"""

import functools
from collections.abc import Iterator
from typing import Any

from common import Race, start_cordes

DEGREES = {
    "plane": (8, 12, 16, 20, 24, 28),
    "monge-ampere": (6, 10, 14, 18, 22),
    "cube": (7, 9, 11, 13, 15),
}
ROUNDING = 2e-13


def answers(race: Race, problem: Any) -> Iterator[tuple[int, Any, float]]:
    """Degree, a function of points, and an estimate of the error: the difference to the last one
    where the solver has none."""
    import jax
    import numpy as np
    from tensor_chebyshev import evaluate_cube, evaluate_square, solve_cube, solve_monge_ampere

    from cordes.references.chebyshev import solve_chebyshev

    if problem.linear and problem.domain.dimension == 2:
        for degree in DEGREES["plane"]:
            solution = solve_chebyshev(problem, degree=degree, layers=0)
            yield degree, solution, solution.error_estimate
        return
    # In blocks of one size: compiled once for all degrees.
    f, g = (
        functools.partial(_in_blocks, jax.jit(jax.vmap(function)))
        for function in (problem.f, problem.g)
    )
    cube = problem.linear
    coarse = np.random.default_rng(0).uniform(
        *problem.domain.bounding_box, (200, problem.domain.dimension)
    )
    last = None
    for degree in DEGREES["cube" if cube else "monge-ampere"]:
        values = solve_cube(f, degree) if cube else solve_monge_ampere(f, g, degree)
        evaluate = evaluate_cube if cube else evaluate_square
        here = evaluate(values, coarse)
        difference = np.inf if last is None else float(np.max(np.abs(here - last)))
        last = here
        yield degree, lambda x, evaluate=evaluate, values=values: evaluate(values, x), difference


def _in_blocks(function: Any, x: Any) -> Any:
    from cordes.runtime.blocks import in_blocks

    return in_blocks(function, (x,))


def main() -> None:
    race = Race()
    cut = ", cut along the interfaces" if "discontinuous" in race.problem else ""
    cordes = start_cordes(race, f"Chebyshev collocation, rising degree{cut}", "scipy", "jax")
    degree = 0
    for degree, solution, estimate in answers(race, cordes.gallery[race.problem]):
        mark = race.mark()
        with race.paused():
            race.record(solution(race.x), mark, degree=degree)
        if race.over or estimate < ROUNDING:
            break
    race.end(degree=degree)


if __name__ == "__main__":
    main()
