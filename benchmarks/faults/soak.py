"""Random commands against one folder of outputs, with random kills.

    python benchmarks/faults/soak.py SECONDS [SEED]

Two commands at a time, often into the same folder. At the end a command runs in each folder,
and nothing may be left but complete runs.
"""

import collections
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from commands import Child, import_everything, is_complete, write_inputs, wrong_in

COMMANDS = (
    ["solve", "one.toml", "--features", "20"],
    ["solve", "two.toml", "--features", "60"],
    ["solve", "two.toml", "--max-seconds", "0.5"],
    ["solve", "time.toml", "--features", "40", "--max-seconds", "4"],
    ["check", "one.toml"],
    ["surface", "small.obj", "--no-network"],
)
FOLDERS = ("a", "b", "c")
LAST = (COMMANDS[0], COMMANDS[-2], COMMANDS[-1])
# These write to places of their own: pages of answers that others may be writing, a study, a proof.
REPORT = ["report", "a", "b", "--out", "page.html"]
STUDY = ["study", "ex4.2-continuous", "--epochs", "50", "--seeds", "1", "--train-only"]
STUDY += ["--out", "study"]
PROVE = ["prove", "square.toml", "--out", "proofs", "--overwrite"]
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None, None)
STATUSES = {0, 1, 2, 129, 130, 143, -9}
# Seconds within which a command must end on a busy machine.
PATIENCE = 300


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    choose, counts, faults = random.Random(seed), collections.Counter(), []
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    write_inputs(root)
    import_everything()
    end, number, running = time.monotonic() + seconds, 0, []
    while time.monotonic() < end or running:
        while len(running) < 2 and time.monotonic() < end:
            number += 1
            more = ["--overwrite"] if choose.random() < 0.5 else []
            words = [*choose.choice(COMMANDS), "--out", choose.choice(FOLDERS), *more]
            words = choose.choices((words, REPORT, STUDY, PROVE), (16, 2, 1, 1))[0]
            log, sent = root / f"log{number % 10}", choose.choice(SIGNALS)
            running.append((Child(words, root, log), words, sent, choose.uniform(0.0, 12.0)))
        time.sleep(0.02)
        for entry in list(running):
            child, words, sent, after = entry
            age = time.monotonic() - child.began
            if sent is not None and age > after:
                child.send(sent)
                running[running.index(entry)] = entry = (child, words, None, after)
            if age > PATIENCE:
                faults.append(f"{words} hangs")
                child.ended(0)
            if child.poll() is None:
                continue
            running.remove(entry)
            counts[words[0], child.status] += 1
            folder = root / words[words.index("--out") + 1]
            # Another command may be writing there, or a killed one may have been before.
            wrong = list(wrong_in(folder, killed=True))
            if child.status not in STATUSES or "Traceback" in child.said:
                wrong.append(f"status {child.status}: {child.said[-300:]}")
            faults += [f"{number}: {words}: {each}" for each in wrong]
            for each in wrong:
                print(number, words, each, flush=True)
    for name, words in zip(FOLDERS, LAST, strict=True):
        folder = root / name
        status = Child([*words, "--out", name, "--overwrite"], root, root / "log").ended(PATIENCE)
        if status != 0 or not is_complete(folder):
            faults.append(f"{name}: status {status}, {[path.name for path in folder.iterdir()]}")
    for words in (STUDY, PROVE, ["report", "a", "a", "--out", "page.html"]):
        status = Child(words, root, root / "log").ended(PATIENCE)
        faults += [] if status == 0 else [f"{words}: status {status}"]
    left = [each for name in ("study", "proofs") for each in wrong_in(root / name, killed=False)]
    left += [*(path.name for path in root.glob(".*"))]
    faults += [f"at the end: {each}" for each in left]
    for key, many in sorted(counts.items(), key=str):
        print(many, *key)
    print(f"{number} commands in {seconds:.0f} s, {len(faults)} faults")
    for fault in faults[:50]:
        print(fault)
    shutil.rmtree(root)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
