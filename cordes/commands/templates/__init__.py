"""The problem files that `cordes new` writes, as they stand in this folder. Each solves as it is
within seconds; every option stands in it, with a comment.

A line such as `# epsilon = 0.3` (TOML) or `    # epsilon=0.3,` (Python) is an option that is not
used: it works as it stands once the `# ` is taken away, and a test takes all of them away. `@name`
stands for the name of the problem, `@file` for the file as a shell wants it written, `@usage` and
`@domains` for what shared.toml says.
"""

import re
import shlex
import tomllib
from importlib.resources import files

KINDS = (
    "linear",
    "insulated-box",
    "hjb",
    "monge-ampere",
    "transport",
    "heat",
    "american-put",
    "l-shape",
    "plate-with-holes",
)
# The file for each kind and the end of its name. Transport is written in Python only.
TEMPLATES = {
    (kind, ending): file
    for ending in (".toml", ".py")
    for kind in KINDS
    if (file := files(__name__) / f"{kind.replace('-', '_')}{ending}").is_file()
}


def fill_in(kind: str, ending: str, name: str) -> str:
    """The text of a template for a problem of this name."""
    text = TEMPLATES[kind, ending].read_text(encoding="utf-8")
    shared = tomllib.loads((files(__name__) / "shared.toml").read_text(encoding="utf-8"))
    for mark, words in shared.items():
        text = text.replace(f"@{mark}", words)
    # Comments of a TOML file stay in their column.
    title = f'name = "{name}"'
    text = re.sub(r'^name = "@name" +', lambda _: f"{title:<31} ", text, flags=re.MULTILINE)
    return text.replace("@name", name).replace("@file", shlex.quote(name + ending))
