"""The figure of a certificate: where the residual lives, and how large the error can be at each
point."""

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from cordes.certificates.certificate import directed
from cordes.reports.plots import Panel, draw_panels, where_cut

if TYPE_CHECKING:
    from cordes.certificates.certificate import Certificate, Picture


def plot_certificate(
    certificate: "Certificate", picture: "Picture", path: str | Path | None = None
) -> Figure:
    """The residual on a logarithmic scale and, where the maximum principle gives one, the pointwise
    bound of |u - u_θ|."""
    panels = [Panel("|residual|", picture.residual, True)]
    if picture.bound is not None:
        panels.insert(0, Panel("bound of |error|", picture.bound, False))

    def headline() -> str:
        first = " — ".join([picture.problem.name, *where_cut(picture.problem.domain)])
        if certificate.rms is None:
            return f"{first}\nno bound"
        largest = (
            f", everywhere at most {directed(certificate.Linf, 2, up=True):.1e}"
            if certificate.Linf is not None
            else ""
        )
        return (
            f"{first}\nerror at most {directed(certificate.rms, 2, up=True):.1e} (root mean "
            f"square){largest}; level: {certificate.level}"
        )

    return draw_panels(picture.problem.domain, panels, headline, path)
