"""How to cite cordes, and the paper whose method it starts from."""

import cordes

TITLE = (
    "cordes: elliptic equations in non-divergence form, solved with neural networks and certified"
)
AUTHOR = "The cordes developers"

_SOFTWARE = """@software{{cordes,
  author  = {{{{{author}}}}},
  title   = {{{title}}},
  version = {{{version}}},
  license = {{Apache-2.0}}
}}"""

_PAPER = r"""@unpublished{cpinn,
  author = {Hu, Bingcheng and Jin, Lixiang and Li, Zhaoxiang},
  title  = {{C-PINN}: A neural network framework based on the {Cord\`{e}s} condition for solving
            linear and fully nonlinear equations in non-divergence form and its applications},
  note   = {Shanghai Normal University}
}"""


def citation() -> str:
    """Two BibTeX entries: `cordes`, this version of the software, and `cpinn`, the paper that
    proposed the Cordès multiplier in the loss.

    Cite the first for results made with cordes, and the second as well for the multiplier, for the
    problems `ex4.1` to `ex5.2` and for comparisons with them.
    """
    return "\n\n".join(
        [_SOFTWARE.format(author=AUTHOR, title=TITLE, version=cordes.__version__), _PAPER]
    )
