"""What happens along a run: error, gradient norm and the paper's proxy of the largest curvature,
and the contraction of its theorem.

A loss that is multiplied with a constant c has c times the gradient and c times the curvature, and
Adam does not notice. C-PINN multiplies the squared residual with γ², so its gradient norm and its
proxy are smaller by about the mean of γ² for no other reason; `mean_square` tells by how much.
"""

from typing import Any

import numpy as np

from cordes.studies.runs import Run

# A curve of a JSON file has about so many points, evenly spread over the logarithm of the epoch.
CURVE_POINTS = 40
# The second half of a run, over which diagnostics are averaged, leaves the start out.
LATE = 0.5


def curves(run: Run) -> dict[str, Any]:
    """A few points of each curve: medians over the seeds, and the range of the error."""
    chosen = np.unique(np.round(np.geomspace(1, len(run.epochs), CURVE_POINTS)).astype(int)) - 1
    facts: dict[str, Any] = {"epochs": run.epochs[chosen].tolist()}
    for name, values in run.measured._asdict().items():
        facts[name] = [_significant(value) for value in np.median(values[chosen], axis=1)]
    facts["l2_range"] = [
        [_significant(value) for value in edge(run.measured.l2[chosen], axis=1)]
        for edge in (np.min, np.max)
    ]
    late = slice(int(LATE * len(run.epochs)), None)
    facts["late"] = {
        name: _significant(np.median(values[late]))
        for name, values in run.measured._asdict().items()
    }
    return facts


def contraction_facts(run: Run) -> dict[str, Any]:
    """The largest and the median ‖Δw - γA:D²w‖/‖Δw‖ over chunks and seeds, the bound √(1-ε) of the
    theorem, and how often it was exceeded or not defined."""
    ratio, bound = run.contraction, run.contraction_bound
    if not ratio.size:
        return {"records": 0}
    defined = np.isfinite(bound)
    return {
        "records": int(ratio.size),
        "first": _significant(np.median(ratio[0])),
        "last": _significant(np.median(ratio[-1])),
        "largest": _significant(np.max(ratio)),
        "bound": _significant(np.max(bound[defined])) if np.any(defined) else None,
        "exceeded": int(np.sum(ratio[defined] > bound[defined])),
        "without_condition": int(np.sum(~defined)),
    }


def _significant(value: Any) -> float | None:
    """Four digits: these are curves to look at."""
    return float(f"{value:.4g}") if np.isfinite(value) else None
