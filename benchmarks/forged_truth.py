"""Whether what a checker said of a proof file is false: the solution is computed by Chebyshev
collocation or known in closed form, u_θ by plain NumPy. Nothing here is the checker's or cordes's.
"""

import contextlib
import math
import tomllib
from typing import Any

import numpy as np

# Polynomials of this degree, and what they and float64 may lose.
DEGREE, LOSS = 28, 1e-11
POINTS = 60
FUNCTIONS = {
    name: getattr(np, name) for name in ("sin", "cos", "exp", "log", "sqrt", "tan", "sign")
}


def value(text: object, x: np.ndarray, names: dict[str, Any] | None = None) -> np.ndarray:
    """A formula at points (N, 2), whose text is that of the forger of this folder."""
    space = FUNCTIONS | {"abs": np.abs, "pi": math.pi, "x1": x[:, 0], "x2": x[:, 1]}
    space |= {"r": np.hypot(x[:, 0], x[:, 1])}
    for name, definition in (names or {}).items():
        with contextlib.suppress(NameError):  # Of a control that is not meant here.
            space[name] = eval(str(definition), {"__builtins__": {}}, space)
    found = eval(str(text), {"__builtins__": {}}, space)
    return np.broadcast_to(np.asarray(found, float), (len(x),))


def answer(data: dict[str, Any], table: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """u_θ at points."""
    network = data["network"]
    numbers = {
        key: np.array([float.fromhex(v) for v in network[key]])
        for key in ("center", "scale", "biases", "coefficients")
    }
    weights = np.array([[float.fromhex(v) for v in row] for row in network["weights"]])
    inputs = [*((x - numbers["center"]) / numbers["scale"]).T]
    for k, power, scale in network["kinks"]:
        phi = value(table["equation"]["interfaces"][k], x) / float.fromhex(scale)
        inputs.append(phi * np.abs(phi) if power is None else np.abs(phi) ** power)
    function = np.sin if network["activation"] == "sine" else np.tanh
    phases = np.array(inputs).T @ weights + numbers["biases"]
    lower, upper = (np.array(table["domain"][key], float) for key in ("lower", "upper"))
    distance = np.prod((upper - x) * (x - lower), axis=1)
    return lifted(table, x, lower, upper) + distance * (function(phases) @ numbers["coefficients"])


def lifted(table: dict[str, Any], x: np.ndarray, lower: np.ndarray, upper: np.ndarray):
    """The bilinear blend of the values of g on the sides (Coons)."""
    g, t = table["equation"].get("g", 0), (x - lower) / (upper - lower)

    def at(**fixed: float) -> np.ndarray:
        y = np.array(x)
        for name, v in fixed.items():
            y[:, int(name[1]) - 1] = v
        return value(g, y, table.get("definitions"))

    left, right = (at(x1=v) for v in (lower[0], upper[0]))
    low, high = (at(x2=v) for v in (lower[1], upper[1]))
    corner = {
        (i, j): at(x1=(lower, upper)[i][0], x2=(lower, upper)[j][1]) for i in (0, 1) for j in (0, 1)
    }
    s, r = t[:, 0], t[:, 1]
    bilinear = sum((s if i else 1 - s) * (r if j else 1 - r) * v for (i, j), v in corner.items())
    return (1 - s) * left + s * right + (1 - r) * low + r * high - bilinear


def chebyshev(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points on [-1, 1] and the matrix of the derivative (Trefethen)."""
    x = np.cos(np.pi * np.arange(n + 1) / n)
    c = np.ones(n + 1)
    c[[0, -1]] = 2
    c *= (-1.0) ** np.arange(n + 1)
    D = np.outer(c, 1 / c) / (x[:, None] - x[None, :] + np.eye(n + 1))
    return x, D - np.diag(np.sum(D, axis=1))


def collocated(table: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """The solution of a linear equation with smooth data, at points."""
    equation, (t, D) = table["equation"], chebyshev(DEGREE)
    lower, upper = (np.array(table["domain"][key], float) for key in ("lower", "upper"))
    half, middle = (upper - lower) / 2, (upper + lower) / 2
    grid = np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
    points, eye = middle + half * grid, np.eye(len(t))
    D1, D2 = np.kron(D, eye) / half[0], np.kron(eye, D) / half[1]
    names = table.get("definitions")
    at = lambda text: value(text, points, names)[:, None]  # noqa: E731
    A, b = equation["A"], equation.get("b", [0, 0])
    L = at(A[0][0]) * (D1 @ D1) + (at(A[0][1]) + at(A[1][0])) * (D1 @ D2) + at(A[1][1]) * (D2 @ D2)
    L = L + at(b[0]) * D1 + at(b[1]) * D2 - at(equation.get("c", 0)) * np.eye(len(points))
    right = value(equation["f"], points, names).copy()
    boundary = np.any(np.abs(grid) == 1, axis=1)
    L[boundary] = np.eye(len(points))[boundary]
    right[boundary] = value(equation.get("g", 0), points, names)[boundary]
    u = np.linalg.solve(L, right).reshape(len(t), len(t))
    # Barycentric interpolation at the points of a product.
    weights = (-1.0) ** np.arange(DEGREE + 1)
    weights[[0, -1]] /= 2
    rows = []
    for k in range(2):
        gap = (x[:, k] - middle[k])[:, None] / half[k] - t
        row = weights / np.where(gap == 0, 1e-300, gap)
        rows.append(row / np.sum(row, axis=1, keepdims=True))
    return np.einsum("ni,ij,nj->n", rows[0], u, rows[1])


def falsehood(data: dict[str, Any], bounds: dict[str, str]) -> str | None:
    """What is wrong with the bounds of u - u_θ, seen at points."""
    table = tomllib.loads(data["problem"])
    equation = table["equation"]
    lower, upper = (np.array(table["domain"][key], float) for key in ("lower", "upper"))
    nodes, shares = np.polynomial.legendre.leggauss(POINTS)
    x = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1).reshape(-1, 2)
    x, weight = (lower + upper) / 2 + (upper - lower) / 2 * x, np.outer(shares, shares).ravel()
    if equation["f"] == "L(exact)":
        u = value(equation["exact"], x)
    elif table["kind"] == "monge-ampere":
        if equation["f"] != "(1 + r**2)*exp(r**2)" or equation["g"] != "exp(r**2/2)":
            return "the truth is not known"
        u = np.exp(np.sum(x * x, axis=1) / 2)
    else:
        u = collocated(table, x)
    error = np.abs(u - answer(data, table, x))
    true = {"Linf": float(np.max(error))}
    true["L2"] = math.sqrt(float(weight @ error**2) * float(np.prod(upper - lower)) / 4)
    for name, least in true.items():
        if name in bounds and not least * (1 - 1e-6) - LOSS <= float(bounds[name]):
            return f"{name}: {least:.4e} > {bounds[name]}"
    return None
