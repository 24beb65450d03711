"""Whether a function can have a kink or a jump in a domain, read from its operations.

A residual that vanishes proves nothing for a function whose second derivatives hide a jump of the
gradient: min(x, 1 - x, y, 1 - y) solves Δu = 0 almost everywhere. So `kink` looks at every
operation that is not smooth everywhere, at where its operand vanishes in the domain (interval
arithmetic on cells, refined where it is undecided) and at how the result is used
(`orders.py`: x|x| has no kink). `jump` asks in the same way whether a coefficient
is continuous.

The answer None is a proof, up to what `orders` assumes. The answers are one-sided: a description
means that a kink or a jump could not be excluded. Equalities that hold on a set of measure zero,
the guards of where(t == 0, 1, t), are taken as false; so "continuous" means after a change on such
a set.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from cordes.domains.domain import AbstractDomain
from cordes.formulas.intervals import Interval, UnsupportedOperation
from cordes.formulas.intervals.arithmetic import point
from cordes.formulas.intervals.program import Program
from cordes.formulas.intervals.suprema import outside_of
from cordes.formulas.regularity.expressions import Expressions, Site, Source
from cordes.formulas.regularity.orders import HARMLESS, Orders
from cordes.formulas.regularity.views import SearchCells, SiteView, first_cells
from cordes.formulas.steps import Step
from cordes.runtime.plain import show

# Rounds of refinement by dimension, and the most cells of a round.
ROUNDS = {1: 8, 2: 5, 3: 3, 4: 1, 5: 1}
MOST_CELLS = 4096
# With more sites than this none is asked whether the outputs depend on it everywhere.
MOST_HIDDEN = 16
# How much less than d/2 the exponent of a pole must be for its points to see it.
MARGIN = 0.25
UNKNOWN = "is not known"
POLES = ("division", "rsqrt", "power")

CONTINUOUS_OPERATIONS = frozenset(
    {"abs", "max", "min", "sqrt", "cbrt", "power", "reduce_max", "reduce_min"}
)
WORDING = {
    **dict.fromkeys(("abs", "sign"), "{name} whose argument {vanishes}"),
    **dict.fromkeys(("max", "min"), "{name} of two functions that {meet}"),
    "reduce_max": "max of functions that can meet",
    "reduce_min": "min of functions that can meet",
    "comparison": "a choice between two formulas that changes",
    "division": "division by a function that {vanishes}",
    "table": "a table with kinks along its grid lines",
    "lookup": "a table that is looked up by an index",
}


def kink(function: Callable, domain: AbstractDomain) -> str | None:
    """Why a function of one point may fail to be C¹ with bounded second derivatives in a domain:
    the operation, and a point near it. None if it cannot."""
    return _describe(function, domain, (), 2.0)


def jump(
    function: Callable,
    domain: AbstractDomain,
    interfaces: Sequence[Callable] = (),
    spots: bool = False,
) -> str | None:
    """Why a function of one point (of any shape) may be discontinuous in a domain, away from the
    zero sets of the interfaces; None if it cannot. A switch on an interface is recognised by its
    formula: √q < r is one on q = r².

    `spots` says that single points are no matter at which the function is bounded, or has a pole
    |x - p|^(-a) with a at most a quarter below d/2, where the square is no longer integrable: cells
    that are refined to the point see all of it. What is left of a stronger one between the points
    is not small.
    """
    return _describe(function, domain, interfaces, 0.0, spots)


def suspected(found: str | None) -> bool:
    """Whether the formula was read, and leaves the suspicion; where operations are not known it
    says nothing."""
    return found is not None and not found.endswith(UNKNOWN)


def _describe(
    function: Callable,
    domain: AbstractDomain,
    interfaces: Sequence[Callable],
    wanted: float,
    spots: bool = False,
) -> str | None:
    def everything(x: Any) -> Any:
        return function(x), [jnp.asarray(phi(x), dtype=x.dtype) for phi in interfaces]

    try:
        return _Search(everything, domain, len(interfaces), wanted, spots).run()
    except UnsupportedOperation as unsupported:
        return f"the operation '{unsupported.name}' {UNKNOWN}"


class _Search:
    """The search for sites at which the outputs may be singular: orders up to `wanted` (0), or
    below it (2), are faults."""

    def __init__(
        self,
        function: Callable,
        domain: AbstractDomain,
        interfaces: int,
        wanted: float,
        spots: bool,
    ):
        self.domain, self.wanted, self.interfaces = domain, wanted, interfaces
        self.spots = spots
        self.program = Program(function, domain.dimension)
        outputs = [value.numbers.ravel().tolist() for value in self.program.trace.outputs]
        own = {number for numbers in outputs[: len(outputs) - interfaces] for number in numbers}
        self.expressions = Expressions(self.program.trace.numbering, sorted(own))
        surfaces = outputs[len(outputs) - interfaces :]
        self.surfaces = {self.expressions.base(number) for (number,) in surfaces}
        self.decisions: dict[Site, int] = {}
        self.views: dict[Site, SiteView] = {}
        self._chosen: dict[Site, list[int]] = {}

    def run(self) -> str | None:
        if self.program.trace.numbering.analytic(*self.expressions.outputs) or not (
            faults := self._faults()
        ):
            return None
        outside, cells = outside_of(self.domain), first_cells(self.domain)
        rounds = ROUNDS.get(self.domain.dimension, 0)
        for remaining in range(rounds, -1, -1):
            cells = cells.take(~outside(cells.lower, cells.upper))
            on_interface = self._look(cells, faults)
            looked, faults = set(faults), self._faults()
            if not faults:
                return None
            if not looked.issuperset(faults):
                # Fewer singular sites make fewer faults. Should one come up late, the cells left
                # out before say nothing of it.
                early = [site for site in faults if site in looked] or list(looked)
                return self._report(early, cells, on_interface)
            undecided = np.any([self.views[site].undecided for site in faults], axis=0)
            certain = not self.interfaces and any(
                self.views[site].certain and not self._choices(site) for site in faults
            )
            many = np.sum(undecided) * 2**self.domain.dimension > MOST_CELLS
            if certain or remaining == 0 or many:
                break
            cells = cells.take(undecided).children()
        return self._report(faults, cells, on_interface)

    # Sites and what is decided about them.

    def _faults(self) -> list[Site]:
        """The sites that may be singular in a way that matters, the worst first."""
        orders = Orders(self.expressions, self._decide)
        worst = sorted(orders.worst().items(), key=lambda pair: pair[1])
        bad = [source for source, order in worst if self._is_bad(source, order)]
        sites = dict.fromkeys(site for source in bad for site in orders.sites[source])
        # Of the sites on one source those that jump say more about a jump than those that do not.
        return sorted(
            sites, key=lambda site: self.wanted == 0 and site.name in CONTINUOUS_OPERATIONS
        )

    def _is_bad(self, source: Source, order: float) -> bool:
        """Orders that are too low. At single points bounded functions, and poles that are square
        integrable by far, are left to refinement, if `spots` are."""
        if 0 < order >= self.wanted:
            return False
        enough = MARGIN - self.domain.dimension / 2
        if self.spots and order >= enough:
            return not self.expressions.is_spot(source, self.domain.dimension)
        # Bounded on both sides of an interface.
        return order < 0 or not self.expressions.vanishes_only_on(source, self.surfaces)

    def _decide(self, site: Site) -> int:
        if site not in self.decisions:
            # What an interface excuses is a jump, not a pole.
            excused = site.name not in POLES and self._on_interface(site)
            self.decisions[site] = HARMLESS if excused else 0
        return self.decisions[site]

    def _on_interface(self, site: Site) -> bool:
        """Whether the operand vanishes on interfaces only, by its formula."""
        if not self.surfaces or site.test not in ("zero", "crossing"):
            return False
        source: Source = site.operands[0]
        if len(site.operands) > 1:
            source = self.expressions.difference(*site.operands)
        return self.expressions.vanishes_only_on(source, self.surfaces)

    def _look(self, cells: SearchCells, faults: Sequence[Site]) -> np.ndarray:
        """Examine sites on cells and decide what can be decided; gives the cells that meet
        interfaces."""
        ranges, outputs = self._ranges(
            cells, sorted({number for site in faults for number in site.operands})
        )
        middles = self.domain.contains((cells.lower + cells.upper) / 2)
        for site in faults:
            view = self.views.setdefault(site, SiteView())
            view.examine(site, ranges, middles)
            if not np.any(view.undecided):
                if len(view.seen) < 2:
                    self.decisions[site] = next(iter(view.seen), HARMLESS)
                else:  # The operand jumps from one sign to the other between cells.
                    view.undecided = np.ones(len(middles), bool)
            elif len(faults) <= MOST_HIDDEN and self._hidden(site, cells.take(view.undecided)):
                self.decisions[site] = HARMLESS
        return np.any([np.zeros(len(middles), bool), *(phi.contains(0) for phi in outputs)], axis=0)

    def _choices(self, site: Site) -> list[int]:
        """The maxima and minima of two elements through which a site acts on the outputs, but for
        the site itself."""
        if site not in self._chosen:
            made_of_it = self.expressions.numbering.dependent([site.number]) - {site.number}
            self._chosen[site] = [
                number
                for number in made_of_it.intersection(self.expressions.needed)
                if self.expressions.operations[number].name in ("max", "min")
            ]
        return self._chosen[site]

    def _hidden(self, site: Site, cells: SearchCells) -> bool:
        """Whether the outputs do not depend on a site in given cells, because maxima and minima
        choose something else in all of them: the root in max(√q - 1, 0)² does not matter where q is
        small."""
        choices = self._choices(site)
        if not choices:
            return False
        operations = self.expressions.operations
        ranges, _ = self._ranges(
            cells, sorted({number for choice in choices for number in operations[choice].operands})
        )
        chosen: dict[int, int] = {}
        for choice in choices:
            name, _, (first, second) = operations[choice]
            difference = ranges[first] - ranges[second]
            if np.all(difference.lower > 0) or np.all(difference.upper < 0):
                larger = bool(np.all(difference.lower > 0))
                chosen[choice] = first if larger == (name == "max") else second
        reached = self.expressions.numbering.reached(
            self.expressions.outputs,
            lambda number: (chosen[number],) if number in chosen else operations[number].operands,
        )
        return site.number not in reached

    def _ranges(
        self, cells: SearchCells, numbers: Sequence[int]
    ) -> tuple[dict[int, Interval], list[Interval]]:
        """The intervals of elements over cells, and those of the interfaces."""
        count = len(cells.lower)
        found: dict[int, Interval] = {}
        for number in numbers:
            if number in self.expressions.constants:
                found[number] = point(np.full(count, self.expressions.constants[number]))

        def observe(step: Step, operands: list[Interval], _: list[Interval]) -> None:
            for value, interval in zip(step.inputs, operands, strict=True):
                for place in np.flatnonzero(np.isin(value.numbers.ravel(), missing)):
                    column = interval.map(lambda a, at=place: a.reshape(len(a), -1)[:, at])
                    column = column.map(lambda bound: np.broadcast_to(bound, count))
                    found.setdefault(int(value.numbers.ravel()[place]), column)

        missing = [number for number in numbers if number not in found]
        outputs, _ = self.program.run(cells.lower, cells.upper, None, observe)
        unknown = point(np.zeros(count)).unknown_where(np.ones(count, bool))
        ranges = {number: found.get(number, unknown) for number in numbers}
        return ranges, outputs[len(outputs) - self.interfaces :]

    # What is left over.

    def _report(self, faults: Sequence[Site], cells: SearchCells, on_interface: np.ndarray) -> str:
        """The worst site in words, with the middle of a cell in which it is undecided: one in the
        domain, away from interfaces and near the centre."""
        site = faults[0]
        view = self.views[site]
        usual = WORDING["abs"] if site.test == "zero" else "the operation {name}"
        verbs = ("vanishes", "meet") if view.certain else ("can vanish", "can meet")
        wording = WORDING.get(site.name, usual)
        what = wording.format(name=site.name, vanishes=verbs[0], meet=verbs[1])
        middles = (cells.lower + cells.upper) / 2
        rank = (
            np.linalg.norm(middles - self.domain.center, axis=1)
            + 1e6 * on_interface
            + 1e9 * ~self.domain.contains(middles)
            + 1e12 * ~view.undecided
        )
        # Adding zero turns -0 into 0.
        return f"{what}, near x = {show(np.round(middles[int(np.argmin(rank))], 12) + 0.0)}"
