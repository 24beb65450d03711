"""Problems with small scales, and harder ones, by finite elements (NGSolve): a program of its own,
which knows nothing of cordes.

    python benchmarks/rivals/elements.py NAME POINTS.npz OUT.npz

One JSON line for each resolution: its seconds of the processor and of the clock, mesh and assembly
included, imports not. The values at the points go to OUT, one row for each resolution.

The method is C0 elements for A:D²u + b·∇u - cu = f, after Neilan and Wu: ∫ γ Lu (Δv - λv) and the
jumps of normal derivatives, with these as unknowns on facets so that the inside of elements is
eliminated. Layers and the polygon are solved in divergence form, which constant coefficients allow,
layers on lines that are graded to them; the circle is fitted and its elements are curved.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

PENALTY = 10.0
SKEW = (2.0, 0.5, 0.5, 1.0)
HOWARD = 15
WIDTH, PEAK = 0.02, (0.4, 0.6)


class C0:
    """The space on a mesh, and one linear solve in it."""

    def __init__(self, ng: Any, mesh: Any, degree: int, more: int = 4, outer: str = ".*"):
        self.ng, self.degree, self.more = ng, degree, more
        values = ng.H1(mesh, order=degree, dirichlet=outer)
        self.space = values * ng.NormalFacetFESpace(mesh, order=degree - 1)
        self.found = ng.GridFunction(self.space)

    def solve(self, A: Any, f: Any, b: Any = None, c: float = 0.0, shift: float = 0.0) -> Any:
        ng, d = self.ng, self.space.mesh.dim
        (u, s), (v, t) = self.space.TnT()
        normal, size = ng.specialcf.normal(d), ng.specialcf.mesh_size
        bent = u.Operator("hesse")
        top, bottom = trace(A, d), ng.InnerProduct(A, A)
        if shift:
            drift = 0.0 if b is None else b * b / (2 * shift)
            top, bottom = top + c / shift, bottom + (c / shift) ** 2 + drift
        equation = ng.InnerProduct(A, bent) - c * u
        if b is not None:
            equation = equation + b * ng.grad(u)
        test = trace(v.Operator("hesse"), d) - shift * v
        form, right = ng.BilinearForm(self.space, condense=True), ng.LinearForm(self.space)
        form += (top / bottom * equation * test).Compile() * ng.dx(bonus_intorder=self.more)
        jumps = (ng.grad(u) - s) * normal * ((ng.grad(v) - t) * normal)
        form += PENALTY * self.degree**2 / size * jumps * ng.dx(element_boundary=True)
        right += (top / bottom * f * test).Compile() * ng.dx(bonus_intorder=self.more)
        form.Assemble()
        right.Assemble()
        return condensed(form, right, self.space, self.found).components[0]


def trace(matrix: Any, dimension: int) -> Any:
    return sum((matrix[i, i] for i in range(1, dimension)), matrix[0, 0])


def condensed(form: Any, right: Any, space: Any, found: Any) -> Any:
    """The solution with the inside of elements eliminated."""
    vector = right.vec
    vector.data += form.harmonic_extension_trans * vector
    found.vec.data = form.mat.Inverse(space.FreeDofs(True), inverse="umfpack") * vector
    found.vec.data += form.harmonic_extension * found.vec
    found.vec.data += form.inner_solve * vector
    return found


def on_lines(ng: Any, first: np.ndarray, second: np.ndarray) -> Any:
    """Rectangles between lines."""
    from ngsolve.meshes import MakeStructured2DMesh

    across, up = len(first) - 1, len(second) - 1
    return MakeStructured2DMesh(
        quads=True,
        nx=across,
        ny=up,
        mapping=lambda s, t: (first[round(s * across)], second[round(t * up)]),
    )


def peak(ng: Any, degree: int) -> Any:
    steps = [0.04 * k for k in range(-3, 4)]
    lines = [
        np.unique(np.round([0, 1, *(c + s for s in steps), c - 0.2, c + 0.2], 12)) for c in PEAK
    ]
    X, Y = ((z - c) / WIDTH**2 for z, c in zip((ng.x, ng.y), PEAK, strict=True))
    height = ng.exp(-(X**2 + Y**2) * WIDTH**2 / 2)
    f = height * (2 * (X * X - WIDTH**-2) + X * Y + Y * Y - WIDTH**-2)
    return C0(ng, on_lines(ng, *lines), degree, 10).solve(ng.CF(SKEW, dims=(2, 2)), f)


def layer(scale: float) -> Callable:
    def solve(ng: Any, degree: int) -> Any:
        near = scale * np.array([1.5, 4, 9, 18, 30])
        lines = np.concatenate([[0], near, np.linspace(0, 1, degree), 1 - 0.3 ** np.arange(1, 5)])
        # Lines that are the same but for rounding would be elements without width.
        lines = np.unique(np.round(lines[lines <= 1], 12))
        space = ng.H1(on_lines(ng, lines, lines), order=degree, dirichlet=".*")
        u, v = space.TnT()
        form, right = ng.BilinearForm(space, condense=True), ng.LinearForm(space)
        form += (scale * ng.grad(u) * ng.grad(v) - ng.CF((1.0, 0.5)) * ng.grad(u) * v) * ng.dx
        right += v * ng.dx
        form.Assemble()
        right.Assemble()
        return condensed(form, right, space, ng.GridFunction(space))

    return solve


def graded(ng: Any, shape: Any, size: float, degree: int, levels: int, corner: Callable) -> Any:
    """Triangles, curved, smaller and smaller towards corners."""
    from netgen.occ import OCCGeometry

    for vertex in shape.vertices:
        if corner(vertex.p):
            vertex.hpref = 1
    mesh = ng.Mesh(OCCGeometry(shape, dim=2).GenerateMesh(maxh=size))
    mesh.RefineHP(levels, 0.15)
    mesh.Curve(degree)
    return mesh


def oscillating(ng: Any, degree: int) -> Any:
    from netgen.occ import WorkPlane

    square, size = WorkPlane().Rectangle(1, 1).Face(), {6: 1 / 8, 8: 1 / 12, 9: 1 / 16}[degree]
    mesh = graded(ng, square, size, degree, 3, lambda _: True)
    off, bend = 0.3 * ng.cos(20 * ng.y), 0.5 * ng.sin(20 * ng.x)
    A, b = ng.CF((1 + bend, off, off, 1 - bend), dims=(2, 2)), ng.CF((5 * ng.sin(20 * ng.y), 5.0))
    return C0(ng, mesh, degree, 6).solve(A, ng.CF(-1.0), b, 1.0, 4.0)


def circle(ng: Any, degree: int) -> Any:
    from netgen.occ import Circle, Glue, WorkPlane

    disk = Circle((0, 0), 0.5).Face()
    disk.faces.name, square = "disk", WorkPlane().MoveTo(-1, -1).Rectangle(2, 2).Face()
    rest = square - disk
    rest.faces.name = "rest"
    shape = Glue([disk, rest])
    for edge in shape.edges:
        outside = max(abs(edge.center.x), abs(edge.center.y)) > 1 - 1e-9
        edge.name = "outer" if outside else "inner"
    size = {5: 0.6, 7: 0.5, 8: 0.3}[degree]
    mesh = graded(ng, shape, size, degree, 3, lambda p: max(abs(p.x), abs(p.y)) > 0.9)
    unit = ng.CF((1.0, 0.0, 0.0, 1.0), dims=(2, 2))
    A = mesh.MaterialCF({"disk": ng.CF(SKEW, dims=(2, 2)), "rest": unit})
    return C0(ng, mesh, degree, outer="outer").solve(A, ng.CF(-1.0))


def free_boundary(ng: Any, degree: int) -> Any:
    """Howard's iteration for the larger of two operators, scaled: without the scaling it does not
    settle for these elements."""
    from netgen.occ import Circle

    size = {5: 0.4, 6: 0.2, 7: 0.1}[degree]
    space = C0(ng, graded(ng, Circle((0, 0), 1).Face(), size, degree, 0, lambda _: False), degree)
    first, second = (ng.CF(each, dims=(2, 2)) for each in (SKEW, (1.0, -0.5, -0.5, 2.0)))
    f, more = ng.CF(1.0), 1 + 0.5 * ng.x
    space.solve(first, f, c=1.0, shift=0.5)
    before = ng.GridFunction(space.space)
    for _ in range(HOWARD):
        before.vec.data = space.found.vec
        bent = before.components[0].Operator("hesse")
        other = ng.InnerProduct(second - first, bent) - (more - f)
        space.solve(ng.IfPos(other, second, first), ng.IfPos(other, more, f), c=1.0, shift=0.5)
        before.vec.data -= space.found.vec
        if ng.Norm(before.vec) < 1e-10 * ng.Norm(space.found.vec):
            break
    return space.found.components[0]


def corners_of_polygon() -> np.ndarray:
    """Those of the problem."""
    t = 2 * np.pi * (np.arange(12) + 0.25 * np.sin(5 * np.arange(12))) / 12
    return np.stack([1.3 * np.cos(t), np.sin(t)], -1)


def polygon(ng: Any, degree: int) -> Any:
    """In divergence form, which a constant matrix allows: obtuse corners ruin the other one."""
    from netgen.occ import WorkPlane

    corners = corners_of_polygon()
    outline = WorkPlane().MoveTo(*corners[0])
    for corner in corners[1:]:
        outline = outline.LineTo(*corner)
    mesh = graded(ng, outline.Close().Face(), 0.6, degree, degree // 2, lambda _: True)
    space = ng.H1(mesh, order=degree, dirichlet=".*")
    u, v = space.TnT()
    form, right = ng.BilinearForm(space, condense=True), ng.LinearForm(space)
    form += (ng.CF(SKEW, dims=(2, 2)) * ng.grad(u)) * ng.grad(v) * ng.dx
    right += v * ng.dx
    form.Assemble()
    right.Assemble()
    return condensed(form, right, space, ng.GridFunction(space))


def box(ng: Any, degree: int) -> Any:
    """Bricks between the planes on which A jumps."""
    from ngsolve.meshes import MakeStructured3DMesh

    mesh = MakeStructured3DMesh(
        hexes=True,
        nx=4,
        ny=4,
        nz=4,
        mapping=lambda a, b, c: (2 * a - 1, 2 * b - 1, 2 * c - 1),
    )
    off = ng.IfPos(ng.x * ng.y, 1.0, -1.0)
    A = ng.CF((2.0, off, 0.0, off, 2.0, 0.0, 0.0, 0.0, 2.0), dims=(3, 3))
    return C0(ng, mesh, degree, 0).solve(A, ng.CF(-1.0))


# Solvers and the degrees to try.
ELEMENTS: dict[str, tuple[Callable, tuple[int, ...]]] = {
    "peak": (peak, (6, 9, 12)),
    "layer-1e-2": (layer(1e-2), (5, 8, 11)),
    "layer-1e-3": (layer(1e-3), (5, 8, 11)),
    "oscillating": (oscillating, (6, 8, 9)),
    "circle-declared": (circle, (5, 7, 8)),
    "circle-undeclared": (circle, (5, 7, 8)),
    "free-boundary": (free_boundary, (5, 6, 7)),
    "polygon12": (polygon, (6, 9, 12)),
    "box3d": (box, (4, 5, 6)),
}


def main() -> None:
    name, points, out = sys.argv[1:4]
    import ngsolve as ng

    solve, degrees = ELEMENTS[name]
    x, found = np.load(points)["x"], []
    for degree in degrees:
        wall, processor = time.perf_counter(), time.process_time()
        u = solve(ng, degree)
        cost = time.process_time() - processor, time.perf_counter() - wall
        found.append(np.asarray(u(u.space.mesh(*x.T))).ravel())
        facts = {"degree": degree, "cpu": cost[0], "wall": cost[1], "version": ng.__version__}
        print(json.dumps(facts), flush=True)
    np.savez(out, values=np.array(found))


if __name__ == "__main__":
    main()
