"""Operations of constants alone: their values are what JAX computes in float64, and index
arithmetic is exact."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# JAX's own operations are used, but for those that NumPy rounds alike: each of JAX's costs a
# compilation.
_NUMPY: dict[str, Callable[..., Any]] = {
    **{
        "add": np.add,
        "add_any": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "neg": np.negative,
        "abs": np.abs,
        "max": np.maximum,
        "min": np.minimum,
    },
    **{
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
        "sign": np.sign,
    },
    **{"square": np.square, "sqrt": np.sqrt},
}


@np.errstate(all="ignore")
def evaluate_constants(equation: Any, constants: Sequence[Any]) -> list[np.ndarray]:
    """The results of an equation whose operands are all constant."""
    name, variable = equation.primitive.name, equation.outvars[0].aval
    if name == "iota":
        axis = equation.params["dimension"]
        spread = [size if i == axis else 1 for i, size in enumerate(variable.shape)]
        return [
            np.broadcast_to(
                np.arange(variable.shape[axis], dtype=variable.dtype).reshape(spread),
                variable.shape,
            )
        ]
    if name == "convert_element_type":
        return [constants[0].astype(variable.dtype)]
    if name in _NUMPY or (name == "div" and variable.dtype == np.float64):
        return [np.asarray(_NUMPY.get(name, np.divide)(*constants), dtype=variable.dtype)]
    result = equation.primitive.bind(*constants, **equation.params)
    return [
        np.asarray(array) for array in (result if equation.primitive.multiple_results else [result])
    ]
