"""Cells are joined along their tree: two parts that meet at a plane become one, whose unknowns are
the values on its own outer faces. Dense matrices that are as small as the parts; what has not
changed since the last time is not joined again.

On the plane both agree in the values on the larger of two faces that meet, and their slopes agree
in the modes of the same face: (S_a + S_b) t = -(F_a + F_b) - what the other faces give.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cordes.ansatz.cells.tree import UNITS, NoTreeError
from cordes.runtime.clock import check_deadline
from cordes.solvers.cells.element import Element
from cordes.solvers.cells.plain import solved_each

Array = np.ndarray


class CellFace(NamedTuple):
    """A part of a plane across an axis: its place and its ends along the other axes, in units, and
    how many modes it has."""

    axis: int
    place: int
    ends: tuple[int, ...]
    modes: int

    def holds(self, other: "CellFace") -> bool:
        pairs = zip(self.ends[::2], self.ends[1::2], other.ends[::2], other.ends[1::2], strict=True)
        return all(low <= start and end <= high for low, high, start, end in pairs)

    @property
    def size(self) -> int:
        total = 1
        for low, high in zip(self.ends[::2], self.ends[1::2], strict=True):
            total *= high - low
        return total


class MergedPart(NamedTuple):
    """Something with outer faces: how the slopes on them (outwards, low modes of all faces one
    after another), and what the values there have beside their low modes, depend on the low modes
    of the values, (n, 1 + n) and (e, 1 + n)."""

    faces: tuple[CellFace, ...]
    slopes: Array
    more: Array


class Node:
    """A part of the domain that is one cell, or made of two: then `inner` says how the values on
    the plane between, as each of the two sees them, depend on those of its outer faces."""

    def __init__(self, mark: tuple[int, ...], part: MergedPart, leaf: bytes | None = None):
        self.mark, self.part, self.leaf = mark, part, leaf
        self.plane: tuple[int, int] | None = None
        self.children: tuple[Node, ...] = ()
        self.inner: tuple[Array, ...] = ()
        self.shares: tuple[Share, ...] = ()

    def values(self, outer: Array, found: dict[bytes, Array]) -> None:
        """The values on the faces of all cells, from those on the outer faces."""
        if self.leaf is not None:
            found[self.leaf] = outer
            return
        start = 0
        for child, share, inner in zip(self.children, self.shares, self.inner, strict=True):
            own = np.empty(len(share.between) + len(share.outside))
            own[share.outside] = outer[start : start + len(share.outside)]
            own[share.between] = inner[:, 0] + inner[:, 1:] @ outer
            start += len(share.outside)
            child.values(own, found)


class Share(NamedTuple):
    """Of one of two parts: its faces on the plane between, in the order of the larger ones; the
    numbers of the values on them and on the others, and of what these have beside."""

    faces: list[CellFace]
    between: Array
    outside: Array
    more_between: Array
    more_outside: Array


class Merging:
    """Joins parts, and keeps what it has joined."""

    def __init__(self, element: Element):
        self.element = element
        self.root: Node | None = None

    def joined(self, whole: Array, cells: Array, leaves: Sequence[MergedPart | None]) -> Node:
        """The tree of all cells; None stands for those outside of the domain."""
        check_deadline()
        inside = np.array([k for k, leaf in enumerate(leaves) if leaf is not None], int)
        self.root = self._node(whole, cells, inside, leaves, self.root)
        return self.root

    def _node(
        self,
        box: Array,
        cells: Array,
        inside: Array,
        leaves: Sequence[MergedPart | None],
        before: Node | None,
    ) -> Node:
        mark = tuple(id(leaves[k]) for k in inside)
        if before is not None and before.mark == mark:
            return before
        if len(inside) == 1:
            leaf = leaves[inside[0]]
            assert leaf is not None
            return Node(mark, leaf, cells[inside[0]].tobytes())
        box, axis, place, low, high = _cut(box, cells, inside)
        ends = box.copy(), box.copy()
        ends[0][axis, 1] = ends[1][axis, 0] = place
        old: tuple[Node | None, ...] = (None, None)
        if before is not None and before.plane == (axis, place):
            assert before.children is not None
            old = before.children
        below = self._node(ends[0], cells, low, leaves, old[0])
        above = self._node(ends[1], cells, high, leaves, old[1])
        return self._joined(mark, below, above, (axis, place))

    def _joined(
        self, mark: tuple[int, ...], below: Node, above: Node, plane: tuple[int, int]
    ) -> Node:
        parts = below.part, above.part
        own = [[f for f in part.faces if (f.axis, f.place) == plane] for part in parts]
        larger = _larger(own[0], own[1])
        shares = tuple(self._share(p, f, larger) for p, f in zip(parts, own, strict=True))
        blocks = _Blocks(parts, shares)
        seen = self._seen(blocks, larger)
        # Slopes on the larger faces, whose sum is zero, as they depend on the values there.
        matrix = right = 0.0
        for k, share in enumerate(shares):
            given = blocks.slopes_between(k)
            through = blocks.slopes_inner(k)
            inside = through @ seen.of_larger[k] if seen.of_larger else through
            given = given + through @ seen.of_outer[k] if seen.of_outer else given
            if share.faces != larger:
                gather = self._gather(share.faces, larger)
                inside, given = gather @ inside, gather @ given
            matrix, right = matrix + inside, right - given
        values = solved_each(np.asarray(matrix)[None], np.asarray(right)[None])[0]
        inner = tuple(
            (of_larger @ values + of_outer)
            for of_larger, of_outer in zip(seen.of_larger, seen.of_outer, strict=True)
        ) or (values, values)
        faces = tuple(f for part in parts for f in part.faces if (f.axis, f.place) != plane)
        node = Node(mark, MergedPart(faces, *blocks.outside(inner)))
        node.plane, node.children = plane, (below, above)
        node.shares, node.inner = shares, inner
        return node

    def _share(self, part: MergedPart, own: list[CellFace], larger: list[CellFace]) -> Share:
        """In the order of the larger faces, so that faces that are the same need no matrix."""
        own = sorted(own, key=lambda face: (_holder(face, larger), face.ends))
        starts, extras, total, beside = {}, {}, 0, 0
        extra = len(part.more) // max(len(part.faces), 1)
        for face in part.faces:
            starts[face], extras[face] = total, beside
            total, beside = total + face.modes, beside + extra
        nothing = np.zeros(0, int)
        between = np.concatenate(
            [nothing, *(np.arange(starts[f], starts[f] + f.modes) for f in own)]
        )
        more = np.concatenate([nothing, *(np.arange(extras[f], extras[f] + extra) for f in own)])
        others = np.setdiff1d(np.arange(total), between), np.setdiff1d(np.arange(beside), more)
        return Share(own, between, others[0], more, others[1])

    def _seen(self, blocks: "_Blocks", larger: list[CellFace]) -> "_Seen":
        """What each part has on its own faces: v = P t + K h, where t are the low modes on the
        larger faces, and h is what the values on a larger face have beside, if it is one of the
        other part: h = m + M v + N (values on outer faces)."""
        shares = blocks.shares
        if all(share.faces == larger for share in shares):
            return _Seen((), ())
        size = sum(face.modes for face in larger)
        starts = np.cumsum([0, *(face.modes for face in larger)])
        counts = [len(share.between) for share in shares]
        extra = [len(share.more_between) for share in shares]
        P, K = np.zeros((sum(counts), size)), np.zeros((sum(counts), sum(extra)))
        row = 0
        for k, share in enumerate(shares):
            other = shares[1 - k]
            each = len(other.more_between) // max(len(other.faces), 1)
            for face in share.faces:
                number = _holder(face, larger)
                whole, rows = larger[number], slice(row, row + face.modes)
                if face.ends == whole.ends:
                    block = np.eye(face.modes, whole.modes)
                else:
                    full = self.element.restricted(*_inside(face, whole))[: face.modes]
                    block = full[:, : whole.modes]
                    if whole in other.faces:
                        first = (0 if k else extra[0]) + each * other.faces.index(whole)
                        own = full[:, whole.modes : whole.modes + each]
                        K[rows, first : first + own.shape[1]] = own
                P[rows, starts[number] : starts[number] + whole.modes] = block
                row += face.modes
        M, rest = blocks.more_between()
        solved = np.linalg.solve(np.eye(len(P)) - K @ M, np.concatenate([P, K @ rest], axis=1))
        cut = np.split(solved, [counts[0]])
        return _Seen(tuple(s[:, :size] for s in cut), tuple(s[:, size:] for s in cut))

    def _gather(self, own: list[CellFace], larger: list[CellFace]) -> Array:
        """Modes on larger faces of what is given on faces."""
        found = np.zeros((sum(f.modes for f in larger), sum(f.modes for f in own)))
        starts = np.cumsum([0, *(f.modes for f in larger)])
        column = 0
        for face in own:
            number = _holder(face, larger)
            whole = larger[number]
            block = self.element.gathered(*_inside(face, whole))
            rows = slice(starts[number], starts[number] + whole.modes)
            found[rows, column : column + face.modes] = block[: whole.modes, : face.modes]
            column += face.modes
        return found


class _Seen(NamedTuple):
    """What each of two parts has on its faces, by the values on the larger faces and by (1, those
    on the outer faces); nothing where all faces are the larger ones."""

    of_larger: tuple[Array, ...]
    of_outer: tuple[Array, ...]


class _Blocks:
    """The matrices of two parts, cut into what belongs to the plane between and to the outer faces;
    columns are (1, values on the outer faces of both)."""

    def __init__(self, parts: tuple[MergedPart, MergedPart], shares: tuple[Share, ...]):
        self.parts, self.shares = parts, shares
        counts = [len(share.outside) for share in shares]
        self.width = 1 + sum(counts)
        self.columns = slice(1, 1 + counts[0]), slice(1 + counts[0], self.width)

    def slopes_inner(self, k: int) -> Array:
        share = self.shares[k]
        return self.parts[k].slopes[np.ix_(share.between, 1 + share.between)]

    def slopes_between(self, k: int) -> Array:
        return self._spread(self.parts[k].slopes, self.shares[k].between, k)

    def more_between(self) -> tuple[Array, Array]:
        """What values have beside, by those on the plane of both parts and by the others."""
        M = [
            part.more[np.ix_(share.more_between, 1 + share.between)]
            for part, share in zip(self.parts, self.shares, strict=True)
        ]
        rest = [
            self._spread(part.more, share.more_between, k)
            for k, (part, share) in enumerate(zip(self.parts, self.shares, strict=True))
        ]
        (a, b), (c, d) = M[0].shape, M[1].shape
        both = np.zeros((a + c, b + d))
        both[:a, :b], both[a:, b:] = M
        return both, np.concatenate(rest)

    def outside(self, inner: tuple[Array, ...]) -> tuple[Array, Array]:
        """Slopes on the outer faces, and what values have beside there."""
        found = []
        for name in ("slopes", "more"):
            parts = []
            for k, (part, share) in enumerate(zip(self.parts, self.shares, strict=True)):
                rows = share.outside if name == "slopes" else share.more_outside
                matrix = getattr(part, name)
                through = matrix[np.ix_(rows, 1 + share.between)]
                parts.append(self._spread(matrix, rows, k) + through @ inner[k])
            found.append(np.concatenate(parts))
        return found[0], found[1]

    def _spread(self, matrix: Array, rows: Array, k: int) -> Array:
        found = np.zeros((len(rows), self.width))
        found[:, 0] = matrix[rows, 0]
        found[:, self.columns[k]] = matrix[np.ix_(rows, 1 + self.shares[k].outside)]
        return found


def _inside(face: CellFace, whole: CellFace) -> tuple[float, ...]:
    """The ends of a face as those of a part of [-1, 1]^(d-1)."""
    found = []
    for k in range(0, len(face.ends), 2):
        low, high = whole.ends[k : k + 2]
        found += [2 * (end - low) / (high - low) - 1 for end in face.ends[k : k + 2]]
    return tuple(found)


def _larger(below: list[CellFace], above: list[CellFace]) -> list[CellFace]:
    """Of the faces on both sides of a plane those that lie in no other."""
    found: list[CellFace] = []
    for face in sorted({*below, *above}, key=lambda face: (-face.size, face.modes)):
        if not any(other.holds(face) for other in found):
            found.append(face)
    return sorted(found, key=lambda face: face.ends)


def _holder(face: CellFace, larger: list[CellFace]) -> int:
    return next(k for k, other in enumerate(larger) if other.holds(face))


def _cut(box: Array, cells: Array, inside: Array) -> tuple[Array, int, int, Array, Array]:
    """The smallest box around some cells that is one of the tree, and where it is cut."""
    while True:
        for axis in range(len(box)):
            start, end = box[axis]
            lines = (end - start) // UNITS
            place = start + lines // 2 * UNITS if lines > 1 else (start + end) // 2
            ends = cells[inside, axis]
            below, above = ends[:, 1] <= place, ends[:, 0] >= place
            if place in (start, end) or not np.all(below | above):
                continue
            if np.any(below) and np.any(above):
                return box, axis, int(place), inside[below], inside[above]
            box = box.copy()
            box[axis, 1 if np.any(below) else 0] = place
            break
        else:
            raise NoTreeError("cells that are no halves of each other")
