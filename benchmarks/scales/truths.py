"""The layers of `problems.py` by another method, to measure errors where no solution is known.

    python benchmarks/scales/truths.py FOLDER [NAME …]

The equation ε Δu + b·∇u = f with constant numbers on the unit square is a tensor product of one
variable with the other. Each has elements of degree 16 by Galerkin's method, in lines that are
graded to the layer and to both ends, so that the corners are resolved too, and as fine as the root
of ε elsewhere, which is the width of the kink that comes in at the corner (1, 1). What is left is a
Sylvester equation between dense matrices. Nothing of cordes is used. NAME.npz has the points `x`,
half of them in the layers, the `values`, and `own_error`: the largest difference to degree 12.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import solve_sylvester

DRIFT = (1.0, 0.5)
DEGREE, COARSE = 16, 12
# Widths of the first lines in units of the layer, and the ratio of those next to an end.
NEAR, RATIO, FURTHER = (1.0, 3.0, 6.0, 10.0, 16.0, 24.0, 34.0), 0.2, 6
# The widest lines are the root of ε over this number.
KINK = 0.4
# ε and the right-hand side.
LAYERS = {
    "P4-layer-1e-2": (1e-2, 1.0),
    "P4-layer-1e-3": (1e-3, 1.0),
    "P4-layer-1e-4": (1e-4, 1.0),
    "layer-1e-2": (1e-2, -1.0),
    "layer-1e-3": (1e-3, -1.0),
}


def lines_of(epsilon: float, width: float) -> np.ndarray:
    """From 0, where the layer of this width is, to 1."""
    even = np.linspace(0, 1, 5 + int(np.ceil(KINK / np.sqrt(epsilon))))
    layer = np.array([step * width for step in NEAR if step * width < 0.4])
    ends = RATIO ** np.arange(1, FURTHER)
    return np.unique(np.round(np.concatenate([even, width * ends, layer, 1 - even[1] * ends]), 14))


class Line:
    """Elements of one degree between lines: functions that are zero at both ends."""

    def __init__(self, lines: np.ndarray, degree: int):
        self.lines, self.degree = lines, degree
        elements = len(lines) - 1
        self.size = elements * degree - 1
        reference, weights = legendre.leggauss(degree + 2)
        shapes, slopes = self._shapes(reference)
        self.mass, self.stiffness, self.transport = np.zeros((3, self.size + 2, self.size + 2))
        self.load = np.zeros(self.size + 2)
        for k, width in enumerate(np.diff(lines)):
            own = slice(k * degree, (k + 1) * degree + 1)
            weighted = shapes * weights[:, None]
            self.mass[own, own] += weighted.T @ shapes * width / 2
            self.transport[own, own] += weighted.T @ slopes
            self.stiffness[own, own] += (slopes * weights[:, None]).T @ slopes * 2 / width
            self.load[own] += np.sum(weighted, axis=0) * width / 2
        inner = slice(1, -1)
        self.mass, self.stiffness = self.mass[inner, inner], self.stiffness[inner, inner]
        self.transport, self.load = self.transport[inner, inner], self.load[inner]

    def _shapes(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hat at the left end, bubbles, the hat at the right end, and their slopes."""
        n = np.arange(2, self.degree + 1)
        table = legendre.legvander(s, self.degree)
        bubbles = (table[:, n] - table[:, n - 2]) / np.sqrt(4 * n - 2)
        inside = table[:, n - 1] * np.sqrt(n - 0.5)
        one = np.ones((len(s), 1))
        values = np.concatenate([(1 - s[:, None]) / 2, bubbles, (1 + s[:, None]) / 2], axis=1)
        return values, np.concatenate([-one / 2, inside, one / 2], axis=1)

    def at(self, x: np.ndarray) -> np.ndarray:
        """All functions at points, (N, size)."""
        element = np.clip(np.searchsorted(self.lines, x, side="right") - 1, 0, len(self.lines) - 2)
        low, width = self.lines[element], np.diff(self.lines)[element]
        values, _ = self._shapes(2 * (x - low) / width - 1)
        found = np.zeros((len(x), self.size + 2))
        columns = element[:, None] * self.degree + np.arange(self.degree + 1)
        found[np.arange(len(x))[:, None], columns] = values
        return found[:, 1:-1]


def layer(epsilon: float, right: float, x: np.ndarray, degree: int) -> np.ndarray:
    """u at points: M⁻¹K₁ U + U (M⁻¹K₂)ᵀ = -f (M⁻¹1)(M⁻¹1)ᵀ with K = ε stiffness - b transport."""
    axes = [Line(lines_of(epsilon, epsilon / b), degree) for b in DRIFT]
    parts, loads = [], []
    for axis, b in zip(axes, DRIFT, strict=True):
        K = epsilon * axis.stiffness - b * axis.transport
        parts.append(np.linalg.solve(axis.mass, K))
        loads.append(np.linalg.solve(axis.mass, axis.load))
    U = solve_sylvester(parts[0], parts[1].T, -right * np.outer(*loads))
    return np.einsum("ni,ij,nj->n", axes[0].at(x[:, 0]), U, axes[1].at(x[:, 1]), optimize=True)


def points_of(epsilon: float) -> np.ndarray:
    random = np.random.default_rng(11)
    x, near = random.uniform(size=(2, 2000, 2))
    which = random.integers(0, 2, 2000)
    widths = epsilon / np.array(DRIFT)[which]
    near[np.arange(2000), which] = widths * random.exponential(3.0, 2000)
    x = np.concatenate([x, near])
    return x[np.all((x > 0) & (x < 1), axis=1)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if wrong := set(options.names) - set(LAYERS):
        parser.error(f"{', '.join(sorted(wrong))}: names are {', '.join(LAYERS)}.")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or LAYERS:
        epsilon, right = LAYERS[name]
        x = points_of(epsilon)
        fine, coarse = (layer(epsilon, right, x, degree) for degree in (DEGREE, COARSE))
        size = float(np.max(np.abs(fine)))
        own = float(np.max(np.abs(fine - coarse))) / size
        np.savez(options.folder / f"{name}.npz", x=x, values=fine, own_error=own)
        print(f"{name}: {len(x)} points, largest |u| {size:.6f}, own error {own:.0e}")


if __name__ == "__main__":
    main()
