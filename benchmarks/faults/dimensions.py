"""Peak memory and time of `check` and `solve` in many dimensions, and of files with too much of
everything, through the command.

    python benchmarks/faults/dimensions.py [D …]       2 10 100 200 1000 10000 by default
    python benchmarks/faults/dimensions.py python D …  the same equation written in Python
    python benchmarks/faults/dimensions.py bulk        files with too much of something
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

USUAL, SECONDS, PATIENCE = (2, 10, 100, 200, 1000, 10_000), 10, 300
BOX = 'schema = 1\nkind = "linear"\n[domain]\ntype = "box"\nlower = {}\nupper = {}\n'
SQUARE = BOX.format([-1, -1], [1, 1])
PYTHON = """import cordes, jax.numpy as jnp
d = {}
box = cordes.Box(d * [0.0], d * [1.0])
problem = cordes.Linear(box, lambda x: (1 + x[0] ** 2) * jnp.eye(d), 1.0)
"""


def toml(d: int) -> str:
    return BOX.format([0] * d, [1] * d) + '[equation]\nA = "1 + x1*x1"\nf = 1\n'


def bulk() -> dict[str, str]:
    """A problem file for each kind of too much."""
    corners = ", ".join(f"[{k}, {k * k}]" for k in range(20_000))
    chained = "".join(f"d{k} = 'sin(d{k - 1})'\n" for k in range(1, 3000))
    products = "".join(f"d{k} = '{'*'.join(['x1'] * 600)}'\n" for k in range(300))
    controls = "controls = {from = 0, to = 1, count = 100000}\nA = '1+a'\nf = 'a*x1'\n"
    polygon = f"{SQUARE.split('type')[0]}type = 'polygon'\nvertices = [{corners}]\n"
    end = "[equation]\nA = 1\nf = 1\n"
    return {
        "5000 digits": SQUARE + "[equation]\nA = 1\nf = " + "9" * 5000 + "\n",
        "key of 10**5 parts": "a." * 100_000 + "a = 1\n" + SQUARE + end,
        "10 MB name": 'name = "' + "n" * 10_000_000 + '"\n' + SQUARE + end,
        "20,000 corners": polygon + end,
        "3000 definitions": f"{SQUARE}[definitions]\nd0 = 'x1'\n{chained}{end}",
        "180,000 products": f"{SQUARE}[definitions]\n{products}{end}",
        "10**5 controls": SQUARE.replace("linear", "hjb") + "[equation]\n" + controls,
        "600 lengths": f"{SQUARE}[equation]\nA = 1\nf = '{'+'.join(['r'] * 600)}'\n",
        "A = 1 + r, d = 200": toml(200).replace("1 + x1*x1", "1 + r"),
    }


def measure(label: str, words: list[str], folder: Path) -> bool:
    """Run the command; whether it ended in time, with a status of its own, below 2 GB."""
    start = time.perf_counter()
    with open(folder / "out", "w+") as out, open(folder / "error", "w+") as error:
        run = subprocess.Popen(
            [sys.executable, "-m", "cordes", *words, "--json"], stdout=out, stderr=error
        )
        ended = 0
        while not ended and time.perf_counter() - start < PATIENCE:
            time.sleep(0.05)
            ended, status, used = os.wait4(run.pid, os.WNOHANG)
        if not ended:
            run.kill()
            _, status, used = os.wait4(run.pid, 0)
        out.seek(0), error.seek(0)
        said, trace = out.read(), "Traceback" in error.read()
    code, peak = os.waitstatus_to_exitcode(status), used.ru_maxrss // 1024
    facts = json.loads(said) if said.startswith("{") else {}
    told = (facts.get("error") or {}).get("message") or facts.get("result") or facts.get("epsilon")
    seconds = time.perf_counter() - start
    print(f"{label:<24} {words[0]:<6} status {code:>4} {seconds:7.1f} s {peak:>6} MB", end=" ")
    print("TRACEBACK" if trace else "", str(told)[:110], flush=True)
    return bool(ended) and code in (0, 1, 2) and not trace and peak < 2000


def main(words: list[str]) -> int:
    cases: dict[str, str] = {}
    if words[:1] == ["bulk"]:
        cases = bulk()
    elif words[:1] == ["python"]:
        cases = {f"d = {d}, in Python": PYTHON.format(d) for d in words[1:]}
    else:
        cases = {f"d = {d}": toml(int(d)) for d in words or USUAL}
    failures = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for label, text in cases.items():
            path = folder / ("a.py" if text.startswith("import") else "a.toml")
            path.write_text(text)
            for command in (["check"], ["solve", "--max-seconds", str(SECONDS)]):
                if command == ["check"] or words[:1] != ["bulk"]:
                    failures += not measure(label, [*command, str(path)], folder)
    print(f"{failures} failures")
    return failures


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
