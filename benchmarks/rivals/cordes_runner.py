"""cordes itself: `--variant auto` is `cordes.solve(problem)` with its defaults, `--variant paper`
is `cordes.solve(problem, method="adam", preset="paper")`.

The states along the way are seen by wrapping the functions with which the solvers judge a state on
fresh points; measuring is outside of the clock, and an interrupt ends the solve when the time is
up, as Ctrl-C does. In five dimensions `auto` may take more steps than its default, until the time
is up.
"""

import functools
from collections.abc import Callable
from typing import Any

from common import Race, start_cordes

PAPER = (
    "Adam 3e-4, 4x64 SiLU, 10,000 points, float32, hard boundary values, coordinates alone (the "
    "paper's recipe)"
)
AUTO = {
    2: (
        "defaults: least squares over random sine features, Newton's method outside where the "
        "equation is nonlinear"
    ),
    5: "defaults: Gauss-Newton with momentum, three tanh layers, fresh points in every step",
}


class Observer:
    """Sees the states of a solve."""

    def __init__(self, race: Race, problem: Any, every: bool):
        """`every` state is measured, or only some of them, in geometric progression of the time."""
        self.race, self.problem, self.every = race, problem, every
        self.interrupted = False

    @functools.cached_property
    def plain(self) -> Any:
        """Lift and distance, which every trained network shares. Made late, so that it compiles
        nothing that the solve would have to compile."""
        from cordes.ansatz.build import plain_ansatz

        return plain_ansatz(self.problem, True, "coordinates")

    def __call__(self, ansatz: Any, network: Any, amplitudes: Any) -> None:
        """`ansatz` is None for a trained network."""
        if self.every or self.race.due():
            mark = self.race.mark()
            with self.race.paused():
                self.race.record(
                    (ansatz or self.plain).value(network, amplitudes, self.race.x), mark
                )
        if self.race.over and not self.interrupted:
            # Once: what the solver does to finish is judged, too.
            self.interrupted = True
            raise KeyboardInterrupt

    def attach(self) -> None:
        """Wrap what the solvers call."""
        import numpy as np

        from cordes.solvers import adam, dual, gauss_newton
        from cordes.solvers.least_squares import Search

        def after(original: Callable, see: Callable[[tuple, Any], None]) -> Callable:
            def wrapped(*arguments: Any) -> Any:
                result = original(*arguments)
                see(arguments, result)
                return result

            return wrapped

        Search.judge = after(
            Search.judge,
            lambda arguments, found: self(
                arguments[0].system.ansatz, found.network, found.amplitudes
            ),
        )
        for module in (adam, gauss_newton):
            module.residual_norm = after(
                module.residual_norm,
                lambda arguments, _: self(None, arguments[0].network, arguments[0].amplitudes),
            )
        dual.judge = after(
            dual.judge, lambda arguments, _: self(arguments[2].ansatz, arguments[0], np.zeros(0))
        )


def main() -> None:
    race = Race()
    dimension = 5 if "cube5" in race.problem else 2
    paper = race.variant == "paper"
    cordes = start_cordes(race, PAPER if paper else AUTO[dimension], "jax")
    problem = cordes.gallery[race.problem]
    Observer(race, problem, every=not paper and dimension == 2).attach()
    options: dict[str, Any] = (
        {"method": "adam", "preset": "paper", "epochs": 10**7}
        if paper
        else {"steps": 10**6}
        if dimension > 3
        else {}
    )
    try:
        # The library's own limit counts the measurements too; it only tells the solver that there
        # is one.
        solution = cordes.solve(
            problem, progress=False, max_seconds=10 * race.budget, certify=False, **options
        )
    except KeyboardInterrupt:
        return race.end(result="interrupted")
    mark = race.mark()
    race.record(solution(race.x), mark, final=True)
    race.end(
        method=solution.method,
        result=solution.result.value,
        parameters=solution.parameters,
        points=solution.points,
    )


if __name__ == "__main__":
    main()
