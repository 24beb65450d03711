"""DeepXDE with PyTorch (LGPL-2.1; never needed by the library, run in a process of its own).

Recipe: float64, tanh layers, Glorot start, boundary values exact by an output transform (G + D·N
with a Coons patch G), the inputs φ|φ| of the interfaces by a feature transform, a fixed set of
Hammersley points, Adam with a falling rate and then L-BFGS until the time is up, which is what
DeepXDE's own examples and its FAQ recommend for accuracy. The right-hand side is computed once and
handed over as an auxiliary variable. One thread or all: the faster, found out while the clock
stands still.
"""

import os
import time
from typing import Any

from common import Race, not_installed
from equations import EQUATIONS, Equation, Jet

# Width and number of hidden layers, points, share of the time for Adam, its rate.
SIZES = {2: (32, 3, 1600, 0.1, 2e-3), 5: (40, 3, 2500, 0.1, 2e-3)}
LBFGS_STEPS = 10


def build(equation: Equation) -> Any:
    """The network with its equation."""
    import deepxde as dde
    import numpy as np
    import torch

    width, depth, points, _, _ = SIZES[equation.dimension]
    d = equation.dimension
    box = (
        dde.geometry.Hypercube([equation.lower] * d, [1.0] * d)
        if d > 2
        else dde.geometry.Rectangle([equation.lower] * 2, [1.0] * 2)
    )

    def data_at(x: np.ndarray) -> np.ndarray:
        return equation.right_side(torch, torch.as_tensor(x))[:, None].numpy()

    def equation_of(x: Any, u: Any, f: Any) -> Any:
        gradient = [dde.grad.jacobian(u, x, j=i)[:, 0] for i in range(d)]
        hessian = {
            (i, j): dde.grad.hessian(u, x, i=i, j=j)[:, 0] for i in range(d) for j in range(i, d)
        }
        return equation.operator(torch, x, Jet(u[:, 0], gradient, hessian)) - f[:, 0]

    data = dde.data.PDE(
        box,
        equation_of,
        [],
        num_domain=points,
        train_distribution="Hammersley",
        auxiliary_var_function=data_at,
    )
    network = dde.nn.FNN([equation.input_count] + [width] * depth + [1], "tanh", "Glorot normal")
    if equation.jumps or equation.lower != -1.0:
        network.apply_feature_transform(lambda x: equation.inputs(torch, x))
    network.apply_output_transform(
        lambda x, y: (equation.lift(torch, x) + equation.distance(x) * y[:, 0])[:, None]
    )
    return dde.Model(data, network)


def choose_threads(equation: Equation) -> int:
    """One thread, or one for each core: on small networks, and on a machine that is not idle, one
    is often faster."""
    import torch

    seconds = {}
    for threads in {1, os.cpu_count() or 1}:
        torch.set_num_threads(threads)
        model = build(equation)
        model.compile("adam", lr=1e-3, verbose=0)
        for count in (1, 4):
            start = time.perf_counter()
            model.train(iterations=count, display_every=10**9, verbose=0)
            seconds[threads] = time.perf_counter() - start
    threads = min(seconds, key=lambda key: seconds[key])
    torch.set_num_threads(threads)
    return threads


def main() -> None:
    race = Race()
    try:
        os.environ["DDE_BACKEND"] = "pytorch"
        import deepxde as dde
        import torch
    except ImportError as error:
        return not_installed(
            str(error.name), "pip install deepxde torch==2.13.0 (or pip install 'cordes[rivals]')"
        )
    equation = EQUATIONS[race.problem]
    width, depth, points, share, rate = SIZES[equation.dimension]
    recipe = (
        f"{depth}x{width} tanh, float64, {points} points, Adam {rate:g} then L-BFGS, hard "
        "boundary values"
    )
    race.imported(
        recipe + (", inputs phi|phi|" if equation.jumps else ""),
        {"deepxde": dde.__version__, "torch": torch.__version__},
    )
    dde.config.set_default_float("float64")
    with race.paused():
        threads = choose_threads(equation)
    dde.config.set_random_seed(0)
    model = build(equation)

    class Watch(dde.callbacks.Callback):
        """Measures from time to time, and ends a phase when its time is up."""

        def __init__(self, until: float):
            super().__init__()
            self.until = until

        def on_epoch_end(self) -> None:
            if race.due():
                mark = race.mark()
                with race.paused():
                    race.record(model.predict(race.x), mark, step=int(model.train_state.step))
            if race.mark().seconds >= self.until:
                model.stop_training = True

    quiet = {"display_every": 10**9, "verbose": 0}
    model.compile("adam", lr=rate, decay=("exponential", 0.999), verbose=0)
    model.train(iterations=10**7, callbacks=[Watch(share * race.budget)], **quiet)
    dde.optimizers.set_LBFGS_options(maxcor=100, ftol=0, gtol=0, maxiter=10**7)
    # The options of one call are made when the library is imported; short calls keep their history,
    # and let the clock be looked at.
    dde.optimizers.config.LBFGS_options |= {
        "iter_per_step": LBFGS_STEPS,
        "fun_per_step": 2 * LBFGS_STEPS,
    }
    model.compile("L-BFGS", verbose=0)
    model.stop_training = False
    model.train(callbacks=[Watch(race.budget)], **quiet)
    mark = race.mark()
    with race.paused():
        race.record(model.predict(race.x), mark, step=int(model.train_state.step))
    race.end(steps=int(model.train_state.step), threads=threads)


if __name__ == "__main__":
    main()
