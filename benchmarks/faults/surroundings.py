"""What surrounds a command: locale, terminal, pipes, folders, disks, caches, limits.

    python benchmarks/faults/surroundings.py [PATTERN]     those whose names match, all by default

Each command runs in a shell and a folder of its own. It may end with its status alone and without
a traceback; what lay in the folder before is there still, as it was; a folder of outputs holds
whole files and no others; an answer is on standard output, in a file that is named, or in the
folder. Disks that are full or cannot be written are mounts, which root alone can make.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from commands import is_complete, write_inputs, wrong_in

ROOT = Path(__file__).parents[2]
PATIENCE, SKIPPED = 180.0, 99
# Where nothing may be left, whatever the names of caches are.
STRAY = {"cordes", ".cache/cordes", "here/cordes", "jax"}
MOUNT = "mkdir -p {0} && mount -t tmpfs -o {1} tmpfs {0}"
SOLVE = "$C solve one.toml --features 20"
PRINTS = """import os
print(1)
os.write(1, b"raw")
import cordes
problem = cordes.gallery["ex4.2-continuous"]
"""


class Surrounding(NamedTuple):
    """A command, the statuses that it may end with, what was done before it, the folder that it
    writes to, what is said, and whether a run that is there may be replaced."""

    name: str
    command: str
    status: tuple[int, ...] = (0,)
    before: str = ""
    out: str = ""
    says: str = ""
    replaced: bool = False


def solve(name: str, more: str = "", environment: str = "", **others: object) -> Surrounding:
    return Surrounding(name, f"{environment} {SOLVE} {more}".strip(), **others)  # pyright: ignore


def check(name: str, environment: str = "", more: str = "", **others: object) -> Surrounding:
    return Surrounding(name, f"{environment} $C check one.toml {more}".strip(), **others)  # pyright: ignore


def mounted(name: str, place: str, options: str, case: Surrounding) -> Surrounding:
    """With a file system of its own."""
    before = f"{MOUNT.format(place, options)} || exit {SKIPPED}; {case.before}"
    return case._replace(name=name, before=before)


ASCII = "PYTHONIOENCODING=ascii"
LANGUAGES = [
    check("LANG=C", "LANG=C LC_ALL=C"),
    check("POSIX, no UTF-8 mode", "LC_ALL=POSIX PYTHONCOERCECLOCALE=0 PYTHONUTF8=0"),
    check("ascii, check", ASCII),
    solve("ascii, solve", environment=ASCII),
    solve("latin-1, solve", environment="PYTHONIOENCODING=latin-1"),
    solve("utf-16, solve", environment="PYTHONIOENCODING=utf-16"),
    solve("ascii, solve --json", "--json", ASCII),
    Surrounding("ascii, gallery", f"{ASCII} $C gallery"),
    Surrounding("ascii, help", f"{ASCII} $C --help"),
    Surrounding("ascii, no such file", f"{ASCII} $C check nothing.toml", (2,), says="nothing.toml"),
    Surrounding("ascii, bad option", f"{ASCII} {SOLVE} --tol -1", (2,), says="positive"),
    check("TERM=dumb", "TERM=dumb"),
    *(check(f"COLUMNS={width}", f"COLUMNS={width}") for width in ("0", "1", "40", "abc", "-5")),
    check("PYTHONOPTIMIZE=2", "PYTHONOPTIMIZE=2"),
    Surrounding("PYTHONOPTIMIZE=2, help", "PYTHONOPTIMIZE=2 $C solve --help"),
    check("warnings are errors", "PYTHONWARNINGS=error"),
]
CACHES = [
    check("no HOME", "env -u HOME -u XDG_CACHE_HOME"),
    check("HOME=/nonexistent", "HOME=/nonexistent env -u XDG_CACHE_HOME"),
    check("HOME is empty", "HOME= env -u XDG_CACHE_HOME"),
    check("XDG_CACHE_HOME is empty", "XDG_CACHE_HOME="),
    check("XDG_CACHE_HOME is relative", "XDG_CACHE_HOME=here"),
    check("cache is a file", "XDG_CACHE_HOME=$PWD/mine", before="echo mine > mine"),
    *(
        solve(
            f"cache of {what}",
            environment="XDG_CACHE_HOME=/tmp/$TAG",
            before="cp -r $XDG_CACHE_HOME /tmp/$TAG; for f in $(find /tmp/$TAG -type f); "
            f"do {fill} > $f; done",
        )
        for what, fill in (("garbage", "head -c 200 /dev/urandom"), ("empty files", ":"))
    ),
    mounted(
        "cache on a full disk",
        "full",
        "size=16k",
        solve("", environment="XDG_CACHE_HOME=$PWD/full"),
    ),
    mounted("cache cannot be written", "ro", "ro", solve("", environment="XDG_CACHE_HOME=$PWD/ro")),
    solve("TMPDIR=/nonexistent", "--out o", "TMPDIR=/nonexistent", out="o"),
    solve("matplotlib has no folder", "--out o", "MPLCONFIGDIR=/nonexistent", out="o"),
    *(
        solve(f"matplotlib for {name}", "--out o", f"MPLBACKEND={name}", status=status, out="o")
        for name, status in (("TkAgg", (0,)), ("nonsense", (0, 70)))
    ),
]
STREAMS = [
    check("standard output is closed", more=">&-"),
    check("standard error is closed", more="2>&-"),
    check("standard input is closed", more="<&-"),
    check("all streams are closed", more="<&- >&- 2>&-"),
    solve("solve --out, no streams", "--out o <&- >&- 2>&-", out="o"),
    solve("solve, no standard error", "2>&-"),
    Surrounding("errors to nobody", f"{SOLVE} --no-multiplier --out o 2> >(true)", (0, 1), out="o"),
    solve("standard output is for reading", "--out o 1< /dev/null", status=(1,), out="o"),
    Surrounding("pipe to head -1", "$C check one.toml | head -1", (0, 141)),
    Surrounding("pipe to true", "$C gallery | true", (0, 141)),
    Surrounding("pipe to true, --json", "$C gallery --json | true", (0, 141)),
    Surrounding("solve --out, pipe to true", f"{SOLVE} --out o | true", (0, 141), out="o"),
    Surrounding("gallery to /dev/full", "$C gallery > /dev/full", (1,), says="it is in /"),
    solve("solve to /dev/full", "> /dev/full", status=(1,)),
    solve("solve --json to /dev/full", "--json > /dev/full", status=(1,)),
    solve("solve --out to /dev/full", "--out o > /dev/full", status=(1,), out="o"),
    solve("errors to /dev/full", "--out o 2> /dev/full", out="o"),
    solve("all to /dev/full", "--out o > /dev/full 2>&1", status=(1,), out="o"),
]
FOLDERS = [
    solve("--out is a file", "--out mine", status=(2,), before="echo mine > mine"),
    solve("--out below a file", "--out mine/o", status=(2,), before="echo mine > mine"),
    solve("--out is empty", "--out ''", status=(2,), says="it is empty"),
    solve("--out has a line break", "--out $'a\\nb'", out="a\nb"),
    solve("--out is no UTF-8", "--out $'\\xff'", status=(0, 1)),
    solve("--out of 300 characters", f"--out {'n' * 300}", status=(2,)),
    solve("--out /dev/null", "--out /dev/null", status=(2,)),
    solve("--out is a link to a folder", "--out l", before="mkdir o; ln -s o l", out="o"),
    solve("--out is a link to nowhere", "--out l", status=(2,), before="ln -s nowhere l"),
    mounted(
        "disk is full at once",
        "o",
        "size=4k",
        solve("", "--out o", status=(1,), out="o", says="No space left"),
    ),
    mounted(
        "disk is full in the middle",
        "o",
        "size=100k",
        solve("", "--out o", status=(1,), out="o", says="No space left"),
    ),
    mounted(
        "disk is full, a run is there",
        "o",
        "size=600k",
        solve(
            "",
            "--out o",
            status=(1, 2),
            before=f"{SOLVE} --out o > /dev/null; head -c 1M /dev/zero > o/zeros",
            out="o",
        ),
    ),
    mounted("disk cannot be written", "o", "ro", solve("", "--out o", status=(2,))),
    Surrounding("files of 50 KB at most", f"ulimit -f 50; {SOLVE} --out o", (1,), out="o"),
    solve(
        "another run is there",
        "--out o",
        status=(2,),
        before="$C check one.toml --out o > /dev/null",
        out="o",
        says="--overwrite",
    ),
    solve(
        "another run is replaced",
        "--out o --overwrite",
        before="$C check one.toml --out o > /dev/null",
        out="o",
        replaced=True,
    ),
    *(
        solve(
            f"{name} is {what}",
            "--out o --overwrite",
            status=(2,),
            before=f"mkdir o; echo mine > mine; {made.format(name)}",
        )
        for name in ("report.html", "result.json", ".cordes.lock")
        for what, made in (
            ("mine", "echo mine > o/{0}"),
            ("a link", "ln -s $PWD/mine o/{0}"),
            ("a folder", "mkdir o/{0}"),
            ("a pipe", "mkfifo o/{0}"),
        )
        if (name, what) != (".cordes.lock", "mine")
    ),
    solve(
        "old names of parts are links",
        "--out o",
        before="mkdir o; echo mine > mine; ln -s $PWD/mine o/answer.cordes.part",
    ),
    Surrounding(
        "two runs into one folder",
        f"{SOLVE} --out o & {SOLVE} --seed 1 --out o; a=$?; wait $!; b=$?; "
        'echo "statuses $a $b"; [ $((a + b)) = 2 ]',
        out="o",
        says="statuses (0 2|2 0)",
    ),
    Surrounding("folder is gone", "mkdir d; cd d; rmdir ../d; $C check ex4.2-continuous"),
    Surrounding(
        "folder is gone, --out",
        "mkdir d; cd d; rmdir ../d; $C check lakkis-pryer-4.2 --out o",
        (2,),
    ),
    Surrounding("a problem that is a folder", "mkdir d.toml; $C check d.toml", (2,)),
    Surrounding("a problem that is a pipe", "mkfifo d.toml; $C check d.toml", (2,)),
    Surrounding("a problem that never ends", "$C check /dev/zero", (2,)),
    Surrounding("a problem, no UTF-8", "cp one.toml $'\\xff.toml'; $C check $'\\xff.toml'"),
    *(
        Surrounding(f"{words} with a long name", f"$C {words} {'n' * 300}{end}", (2,))
        for words, end in (
            ("check", ""),
            ("check", ".toml"),
            ("surface", ".obj"),
            ("new", ".toml"),
            ("report first", ""),
        )
    ),
    Surrounding("a mesh that is a pipe", "mkfifo d.obj; $C surface d.obj", (2,)),
    Surrounding("an answer that is a pipe", "mkfifo d; $C report d d --out p.html", (2,)),
    Surrounding("a new file that is there", "$C new mine.toml", (2,), "echo mine > mine.toml"),
    mounted(
        "a new file on a full disk",
        "o",
        "size=4k",
        Surrounding("", "$C new o/my.toml", (2,), "head -c 1M /dev/zero > o/zeros; true"),
    ),
]
LIMITS = [
    Surrounding("20 open files", "ulimit -n 20; $C check one.toml", (0, 2)),
    Surrounding("2 GB of addresses", "ulimit -v 2000000; $C check one.toml"),
    Surrounding("1.6 GB of addresses", "ulimit -v 1600000; $C check one.toml", (2,), says="JAX"),
    Surrounding("one core", f"taskset -c 0 {SOLVE}"),
    check("strange numbers of threads", "OMP_NUM_THREADS=abc OPENBLAS_NUM_THREADS=-3"),
    check("single precision", "JAX_ENABLE_X64=0"),
    check("no such device", "JAX_PLATFORMS=nonsense", status=(2, 70)),
    Surrounding("signals are ignored", f"trap '' INT TERM PIPE; {SOLVE}"),
    Surrounding("nice", f"nice -n 19 {SOLVE}"),
]
PROGRAMS = [
    solve("--json", "--json --out o", out="o"),
    *(
        Surrounding(f"--json, {name}", f"$C {words} --json", (status,))
        for name, words, status in (
            ("no such problem", "solve nothing", 2),
            ("bad option", "solve one.toml --nonsense 3", 2),
            ("no argument", "solve", 2),
            ("unknown command", "frobnicate", 2),
            ("help", "solve --help", 0),
            ("version", "--version", 0),
            ("nothing", "", 0),
            ("file that prints", "check prints.py", 0),
            ("file that exits", "check exits.py", 2),
            ("file without an end", "check deep.py", 2),
            ("file that closes all", "check closes.py", 0),
            (
                "study",
                "study ex4.2-continuous --epochs 10 --seeds 1 --train-only --out s",
                0,
            ),
        )
    ),
]
PROVE = "$C prove square.toml"
PROVED = f"{PROVE} > /dev/null"
PROOFS = [
    *(
        Surrounding(f"{name} is {what}", f"{PROVE} {more}", (2,), f"echo mine > mine; {made}")
        for name in ("square.proof", "square.cordes", "square-proved.cordes")
        for what, more, made in (
            ("there", "", f"echo mine > {name}"),
            ("mine", "--overwrite", f"echo mine > {name}"),
            ("a pipe", "--overwrite", f"mkfifo {name}"),
            ("a folder", "--overwrite", f"mkdir {name}"),
        )
    ),
    Surrounding("prove, ascii", f"{ASCII} {PROVE}", says="THEOREM"),
    Surrounding("prove to /dev/full", f"{PROVE} > /dev/full", (1,)),
    Surrounding("prove, no streams", f"{PROVE} <&- >&- 2>&-"),
    Surrounding("prove --out is a file", f"{PROVE} --out mine", (2,), "echo mine > mine"),
    Surrounding("prove, no time", f"{PROVE} --max-seconds 0.1", (1,)),
    Surrounding("prove, bad time", f"{PROVE} --max-seconds nan", (2,)),
    Surrounding("prove a damaged answer", "$C prove a.cordes", (2,), "echo PK > a.cordes"),
    Surrounding("prove nothing", "$C prove nothing.cordes", (2,)),
    Surrounding("prove a pipe", "mkfifo a.cordes; $C prove a.cordes", (2,)),
    mounted(
        "prove on a full disk",
        "o",
        "size=4k",
        Surrounding("", f"{PROVE} --out o", (1,), says="No space left"),
    ),
    *(
        Surrounding(f"checker, {name}", f"{environment} $K {words}", status, PROVED)
        for name, environment, words, status in (
            ("ascii", ASCII, "square.proof", (0,)),
            ("to /dev/full", "", "square.proof > /dev/full", (1,)),
            ("to nobody", "", "square.proof | true", (0, 141)),
            ("no streams", "", "square.proof <&- >&- 2>&-", (0,)),
            ("no file", "", "nothing.proof", (2,)),
            ("a folder", "", ".", (2,)),
            ("an answer", "", "square.cordes", (2,)),
            ("no words", "", "", (2,)),
        )
    ),
]
ALL = [*LANGUAGES, *CACHES, *STREAMS, *FOLDERS, *LIMITS, *PROGRAMS, *PROOFS]


def contents(folder: Path) -> dict[str, object]:
    """What lies in a folder, links and pipes as such."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        kept = path.is_file() and not path.is_symlink()
        kind = os.readlink(path) if path.is_symlink() else "other"
        found[str(path.relative_to(folder))] = path.read_bytes() if kept else kind
    return found


class Ended(NamedTuple):
    """How a command ended."""

    status: int | None
    printed: str
    said: str
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether there is an answer on standard output, or in a file that is named."""
        place = re.search(r"it is in (/\S+\.json)", self.said)
        rescued = Path(place[1]).read_text() if place and Path(place[1]).exists() else ""
        return any("residual" in text for text in (self.printed.replace("\0", ""), rescued))


def shell(script: str, folder: Path, environment: dict[str, str]) -> Ended:
    start = time.monotonic()
    logs = [Path(tempfile.mkstemp()[1]) for _ in range(2)]
    with open(logs[0], "wb") as out, open(logs[1], "wb") as error:
        process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=error,
            start_new_session=True,
        )
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(PATIENCE)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    printed, said = (log.read_text(errors="replace") for log in logs)
    for log in logs:
        log.unlink()
    return Ended(status, printed, said, time.monotonic() - start)


def judged(case: Surrounding, folder: Path, environment: dict[str, str]) -> tuple[Ended, list[str]]:
    """How a command ended in its surroundings, and what is wrong with that."""
    folder.mkdir()
    write_inputs(folder)
    (folder / "prints.py").write_text(PRINTS)
    (folder / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "deep.py").write_text("def f():\n    return f()\n\n\nf()\n")
    (folder / "closes.py").write_text(PRINTS + "os.close(1)\nos.close(0)\n")
    environment = environment | {"TAG": f"{folder.parent.name}-{folder.name}"}
    prepared = shell(case.before, folder, environment)
    if prepared.status == SKIPPED:
        return prepared, ["skipped"]
    before = contents(folder)
    ended = shell(case.command, folder, environment)
    return ended, list(_wrong(case, ended, folder, before))


def _wrong(
    case: Surrounding, ended: Ended, folder: Path, before: dict[str, object]
) -> Iterator[str]:
    if ended.status is None:
        yield "HANG"
    elif ended.status not in case.status:
        yield f"status {ended.status}"
    if "Traceback" in ended.printed + ended.said or "Exception ignored" in ended.said:
        yield "a traceback"
    if not re.search(case.says, ended.printed + ended.said):
        yield f"{case.says!r} is not said"
    if "--json" in case.command and ended.printed and not _is_object(ended.printed):
        yield "standard output is not one object"
    after = contents(folder)
    if STRAY.intersection(after):
        yield f"left behind: {STRAY.intersection(after)}"
    if case.replaced:
        before = {name: kept for name, kept in before.items() if not name.startswith(case.out)}
    changed = [name for name, kept in before.items() if after.get(name) != kept]
    if changed:
        yield f"changed: {changed}"
    if case.out:
        yield from wrong_in(folder / case.out, killed=False)
    out = folder / case.out
    if case.out and ended.status == 0 and not (out.is_dir() and is_complete(out)):
        yield f"{case.out} is not complete"
    kept = case.out and (out / "answer.cordes").exists()
    if "solve one.toml" in case.command and ended.status in (0, 1) and not (kept or ended.answered):
        yield "the answer is lost"


def _is_object(text: str) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(text), dict)
    return False


def main(pattern: str = ".") -> int:
    chosen = [case for case in ALL if re.search(pattern, case.name)]
    place = Path(tempfile.mkdtemp(prefix="surroundings-"))
    variables = {"C": f"{sys.executable} -m cordes", "XDG_CACHE_HOME": str(place / "cache")}
    variables |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'checker'}", "PYTHONDONTWRITEBYTECODE": "1"}
    variables["K"] = f"{sys.executable} -m cordes_check"
    environment = {**os.environ, **variables}
    counts = {"as wanted": 0, "skipped": 0, "faults": 0}
    for number, case in enumerate(chosen):
        folder = place / f"{number}"
        ended, wrong = judged(case, folder, environment)
        kind = "skipped" if wrong == ["skipped"] else "faults" if wrong else "as wanted"
        counts[kind] += 1
        said = ended.said.strip().splitlines()[-1:] or [""]
        print(
            f"{case.name:<34} status {ended.status!s:>4} {ended.seconds:6.1f} s  "
            f"{'; '.join(wrong) or 'good'}  {said[0][:100]}",
            flush=True,
        )
        leave = f"umount {folder}/*; rm -rf {folder} /tmp/{place.name}-{number}"
        shell(leave, place, environment)
    shutil.rmtree(place)
    told = ", ".join(f"{many} {kind}" for kind, many in counts.items())
    print(f"{len(chosen)} surroundings: {told}")
    return counts["faults"]


if __name__ == "__main__":
    sys.exit(min(1, main(*sys.argv[1:])))
