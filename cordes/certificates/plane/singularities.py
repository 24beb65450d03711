"""Whether the singular points of an expansion, and the cuts of its logarithms and roots, stay
outside of the domain: inside there would be a pole or a jump, which no residual shows."""

import numpy as np

from cordes.ansatz.plane.network import Expansion
from cordes.ansatz.plane.powers import LOG, LOG_MODULUS, Powers
from cordes.certificates.reason import Reason, Why
from cordes.domains.plane.region import Region
from cordes.runtime.plain import show

# Points of a cut that are looked at.
ALONG = 257
NEAR = 1e-9


def singular_inside(domain: Region, network: Expansion) -> Reason | None:
    """The first pole or cut that meets the open domain."""
    for powers in network.functions.powers:
        points, what = _places(domain, powers)
        reach = NEAR * float(np.max(np.ptp(domain.bounding_box, axis=0)))
        inside = domain.contains(points)
        inside[inside] = domain.gap(points[inside]) > reach
        if np.any(inside):
            x = points[int(np.argmax(inside))]
            sentence = f"the answer has {what} inside of the domain, at x = {show(x)}"
            return Reason(Why.kink, f"{sentence}: no residual shows it", {"point": x})
    return None


def _places(domain: Region, powers: Powers) -> tuple[np.ndarray, str]:
    """Where functions are not smooth: nowhere, at their center, or along a cut."""
    center = powers.center
    rooted = np.abs(powers.p - np.round(powers.p)) > 0
    if np.any(rooted | (powers.factor == LOG)):
        lower, upper = domain.bounding_box
        far = 4 * float(np.linalg.norm(upper - lower)) * float(np.linalg.norm(center.frame, 2))
        end = 1 / center.inverse if center.inverse > 0 else far
        steps = np.linspace(0, 1, ALONG)[:, None] ** 2 * np.array([-end, 0.0])
        return center.point + np.linalg.solve(center.frame, steps.T).T, "the cut of a root"
    if np.any((powers.p < 0) | (powers.factor == LOG_MODULUS)):
        return center.point[None], "a pole"
    return np.zeros((0, 2)), ""
