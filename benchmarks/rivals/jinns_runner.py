"""jinns (Apache-2.0): natural gradient descent, which its own page recommends as the default, and
its self-scaled Broyden method for `--variant broyden`.

Recipe: float64, tanh layers, boundary values exact by the network's output transform (G + D·N with
a Coons patch G), the inputs φ|φ| of the interfaces by its input transform, one fixed set of uniform
points, the backtracking line search that jinns takes, a small ridge. jinns compiles its whole
training loop once; the states are taken out of it by a validation module, which also ends the loop,
and their errors are measured after the run.
"""

import warnings
from importlib.metadata import version
from typing import Any

from common import Race, compile_timer, not_installed
from equations import EQUATIONS, Equation, Jet

# Width and number of hidden layers, points, and the ridge of the natural gradient.
SIZES = {
    "ex4.2-continuous": (24, 3, 2000, 1e-9),
    "ex4.2-discontinuous": (24, 3, 1500, 1e-10),
    "ex4.6-monge-ampere": (20, 2, 1000, 1e-11),
    "ex4.3-cube5": (24, 3, 1500, 1e-8),
}
BACKTRACKING = 30
ITERATIONS = 10**6


def residual_of(equation: Equation) -> Any:
    """The equation as jinns wants it: a class with the residual at one point."""
    import jax
    import jax.numpy as jnp
    from jinns.loss import PDEStatio

    def jet(function: Any, x: Any) -> Jet:
        slope = jax.jacfwd(function)
        value, gradient, hessian = function(x), slope(x), jax.jacfwd(slope)(x)
        d = equation.dimension
        return Jet(
            value, list(gradient), {(i, j): hessian[i, j] for i in range(d) for j in range(i, d)}
        )

    class Residual(PDEStatio):
        def equation(self, x: Any, u: Any, params: Any) -> Any:
            return (
                equation.operator(jnp, x, jet(lambda y: u(y, params)[0], x))
                - equation.right_side(jnp, x)
            )[None]

    return Residual()


def build(name: str) -> tuple[Any, Any, Any, Any]:
    """Network, its parameters, the loss and the points."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jinns

    equation = EQUATIONS[name]
    width, depth, points, _ = SIZES[name]
    layers: list[tuple] = [(eqx.nn.Linear, equation.input_count, width), (jax.nn.tanh,)]
    for _ in range(depth - 1):
        layers += [(eqx.nn.Linear, width, width), (jax.nn.tanh,)]
    key, second = jax.random.split(jax.random.PRNGKey(0))
    network, start = jinns.nn.PINN_MLP.create(
        key=key,
        eqx_list=(*layers, (eqx.nn.Linear, width, 1)),
        eq_type="PDEStatio",
        input_transform=lambda x, params: equation.inputs(jnp, x),
        output_transform=lambda x, y, params: equation.lift(jnp, x) + equation.distance(x) * y,
    )
    parameters = jinns.parameters.Params(nn_params=start, eq_params={})
    d = equation.dimension
    data = jinns.data.CubicMeshPDEStatio(
        key=second, n=points, dim=d, min_pts=(equation.lower,) * d, max_pts=(1.0,) * d
    )
    with warnings.catch_warnings():
        # "Missing boundary condition": the output transform has it.
        warnings.simplefilter("ignore")
        weights = jinns.loss.LossWeightsPDEStatio(dyn_loss=1.0)
        loss = jinns.loss.LossPDEStatio(
            u=network, dynamic_loss=residual_of(equation), loss_weights=weights, params=parameters
        )
    return network, parameters, loss, data


def callback_value(params, loss, batch):
    return loss.evaluate(params, batch)[0]


def callback_gradient(params, loss, batch):
    import jax

    return jax.grad(lambda p: loss.evaluate(p, batch)[0])(params)


def optimiser_of(variant: str, ridge: float) -> tuple[Any, dict[str, Any] | None]:
    """The optimiser and what jinns must hand to it."""
    import jinns
    import optax
    from jinns.solver import GetJinnsVariableName

    if variant != "broyden":
        search = optax.scale_by_backtracking_linesearch(
            max_backtracking_steps=BACKTRACKING, decrease_factor=0.5
        )
        return jinns.optimizers.vanilla_ngd(gram_reg=ridge, linesearch=search), None
    names = {"value": "train_loss_value", "grad_pt": "grads", "loss": "loss", "batch": "batch"}
    extra: dict[str, Any] = {key: GetJinnsVariableName(name) for key, name in names.items()}
    return jinns.optimizers.scale_by_SSBroyden_family(), extra | {
        "value_fn": callback_value,
        "grad_fn": callback_gradient,
    }


def watch_of(race: Race, seen: list[tuple[Any, Any, int]], every: int) -> Any:
    """A validation module that keeps states with the time, and says when the time is up."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jinns.validation import AbstractValidationModule

    calls = [0]

    def look(leaves: Any) -> np.ndarray:
        calls[0] += 1
        if race.due():
            seen.append((race.mark(), [np.array(leaf) for leaf in leaves], calls[0] * every))
        return np.asarray(race.over)

    class Watch(AbstractValidationModule):
        call_every: int = eqx.field(kw_only=True, default=every)

        def __call__(self, params: Any) -> Any:
            stop = jax.experimental.io_callback(
                look, jax.ShapeDtypeStruct((), bool), jax.tree.leaves(params), ordered=True
            )
            return self, stop, jnp.zeros(()), False

    return Watch()


def main() -> None:
    race = Race()
    try:
        import jax
        import jax.experimental
        import jinns
    except ImportError as error:
        return not_installed(str(error.name), "pip install jinns (or pip install 'cordes[rivals]')")
    jax.config.update("jax_enable_x64", True)
    equation = EQUATIONS[race.problem]
    width, depth, points, ridge = SIZES[race.problem]
    method = (
        "self-scaled Broyden" if race.variant == "broyden" else f"natural gradient, ridge {ridge:g}"
    )
    recipe = f"{depth}x{width} tanh, float64, {points} points, {method}, hard boundary values" + (
        ", inputs phi|phi|" if equation.jumps else ""
    )
    race.imported(recipe, {"jinns": version("jinns"), "jax": jax.__version__}, compile_timer())
    network, parameters, loss, data = build(race.problem)
    optimiser, extra = optimiser_of(race.variant, ridge)
    seen: list[tuple[Any, Any, int]] = []
    every = 10 if race.variant == "broyden" else 1
    jinns.solve(
        n_iter=ITERATIONS,
        init_params=parameters,
        data=data,
        loss=loss,
        optimizer=optimiser,
        validation=watch_of(race, seen, every),
        extra_optax_args_and_kwargs=extra,
        verbose=False,
    )
    values = jax.jit(lambda parameters, x: jax.vmap(lambda y: network(y, parameters)[0])(x))
    with race.paused():
        structure = jax.tree.structure(parameters)
        for mark, leaves, step in seen:
            race.record(values(jax.tree.unflatten(structure, leaves), race.x), mark, step=step)
    race.end(steps=seen[-1][2] if seen else 0)


if __name__ == "__main__":
    main()
