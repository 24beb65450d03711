"""Kill, interrupt and terminate commands at random moments, and look at what is left.

    python benchmarks/faults/kills.py KILLS [SEED [COMMAND …]]     all of the table by default

Half of the signals come at any time, half shortly after the first file has changed. Afterwards
there may be no half file, no record of files that are not there and no traceback; an answer that
was there is still there; and the same command, run again now and then, ends well.
"""

import collections
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from commands import Child, import_everything, is_complete, write_inputs, wrong_in

from cordes.runtime.folders import LOCK
from cordes.runtime.signals import HEEDED

STUDY = ["study", "ex4.2-continuous", "--epochs", "100", "--seeds", "1", "--train-only"]
COMMANDS = {
    "solve": (["solve", "one.toml", "--features", "20", "--out", "solve"], "solve"),
    "wave": (["solve", "two.toml", "--tol", "1e-8", "--out", "wave"], "wave"),
    "time": (["solve", "time.toml", "--features", "100", "--out", "time"], "time"),
    "prove": (["prove", "square.toml", "--out", "proofs", "--overwrite"], "proofs"),
    "proved": (["solve", "square.toml", "--prove", "--out", "proved"], "proved"),
    "study": ([*STUDY, "--out", "study"], "study"),
    "surface": (["surface", "small.obj", "--no-network", "--out", "surface"], "surface"),
    "report": (["report", "first", "second", "--out", "page.html"], "page.html"),
}
# Studies, proofs and what depends on time take long.
ORDER = ("solve", "wave", "surface", "report") * 3 + ("study", "time", "prove", "proved")
# These have no record of their own.
WITHOUT = ("study", "report", "prove")
SIGNALS = (signal.SIGKILL, *HEEDED)
PATIENCE = 120.0
# Statuses that a command which was sent a signal may end with: that of the signal, or its own if
# it was done before.
EXPECTED = {
    signal.SIGKILL: (-9,),
    signal.SIGINT: (130,),
    signal.SIGTERM: (143,),
    signal.SIGHUP: (129,),
}


def changed(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.exists()}


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    choose, counts, faults = random.Random(seed), collections.Counter(), []
    root = Path(tempfile.mkdtemp(prefix="kills-"))
    write_inputs(root)
    import_everything()
    lengths = {}
    for name in ("first", "second"):
        words = ["solve", "one.toml", "--features", "20", "--out", name]
        assert Child(words, root, root / "log").ended(PATIENCE) == 0
    order = [name for name in ORDER if name in sys.argv[3:] or not sys.argv[3:]]
    for name in dict.fromkeys(order):
        words, _ = COMMANDS[name]
        child = Child(words, root, root / "log")
        status = child.ended(3 * PATIENCE)
        lengths[name] = time.monotonic() - child.began
        print(f"{name}: whole run {lengths[name]:.1f} s, status {status}", flush=True)
        assert status == 0, child.said
    for k in range(count):
        name = order[k % len(order)]
        words, place = COMMANDS[name]
        folder, number = root / place, choose.choice(SIGNALS)
        if choose.random() < 0.5 and folder.is_dir():
            shutil.rmtree(folder)
        answer = folder / ("square.cordes" if name == "prove" else "answer.cordes")
        had, before = answer.exists(), changed(folder)
        # What a kill has left is told there until a run has an answer.
        locked = (folder / LOCK).exists()
        child = Child(words, root, root / "log")
        if choose.random() < 0.5:
            child.wait(choose.uniform(0, lengths[name]))
        else:
            while child.poll() is None and changed(folder) == before:
                time.sleep(0.001)
            child.wait(choose.expovariate(4.0))
        hit = child.poll() is None
        child.send(number)
        sent = time.monotonic()
        status = child.ended(PATIENCE)
        lasted = time.monotonic() - sent
        wrong = list(wrong_in(folder, killed=number is signal.SIGKILL))
        wrong = [each for each in wrong if not (locked and each == f"{LOCK} is left")]
        if "Traceback" in child.said or "Exception ignored" in child.said:
            wrong.append("a traceback")
        if had and not answer.exists():
            wrong.append("the answer is gone")
        if hit and status not in (*EXPECTED[number], 0, 1):
            wrong.append(f"status {status}")
        if hit and status in (0, 1):
            # All was done when it came, or it was not heeded.
            wrong += [f"{number.name} was swallowed"] if lasted > 1 else []
        if status in (129, 130, 143) and "error" not in json.loads(child.printed or "{}"):
            counts[name, number.name, "with its answer"] += 1
        counts[name, number.name, f"status {status}" if hit else "missed"] += 1
        counts["", "", "ended more than 10 s later"] += hit and lasted > 10
        if k % 7 == choose.randrange(7) and name != "report":
            again = Child(words, root, root / "again")
            status = again.ended(3 * PATIENCE)
            good = status == 0 and (name in WITHOUT or is_complete(folder))
            wrong += [] if good else [f"run again: status {status}, {again.said[-300:]}"]
            counts[name, "", "run again"] += 1
        if wrong:
            faults.append((k, name, number.name, wrong))
            print(*faults[-1], child.said[-300:], flush=True)
    for key, many in sorted(counts.items()):
        print(many, *key)
    print(f"{count} kills, {len(faults)} faults")
    shutil.rmtree(root)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
