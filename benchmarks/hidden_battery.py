"""Small features: are certified bounds below the truth, and answers wrong and called converged?

    python benchmarks/hidden_battery.py [COUNT] [SEED] [--first N] [--processes N] [--save FILE]
                                        [--seconds S] [--fault remainder|cell]

Cases are drawn by `hidden_cases`. Nine of ten certify an answer with a planted error, one is solved
from the start, and its error measured. The truth is a norm on a fine grid around the feature, which
no certificate sees: no bound may lie below it, and nothing that is wrong by more than 1e-3 of
max|u| may be called converged. Printed: tables by width, kind and level, every violation, seconds,
and how much of what rules may leave out is really left out. Status 1 where anything is violated.

A case depends on its number and the seed alone: a run may be split by `--first` and over processes.
With `--save` results are appended to a file of JSON lines; those that are in it are not computed
again, and the tables are those of the whole file: a COUNT of 0 only prints them. `--seconds` ends a
run by the clock. `--fault` plants one, and must be noticed.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEED, COUNT = 20_261, 3000
WIDTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
# The error of the grid for planted errors, which are smooth, and for data that may jump.
DOUBT, DOUBT_OF_DATA = 0.004, 0.01
# The share of max|u| by which nothing that is called converged may be wrong.
WRONG = 1e-3
# A bound is useful if it is no more times the truth than this, or below the size of the answer.
USEFUL = 1000.0
FEATURES, SECONDS = 120, 20.0
ERRORS = ("Linf", "rms", "map_L2")


class Outcome(NamedTuple):
    """What came of a case: `result` of a solve, or `certified`, `no bound`, `refused`, `failed`."""

    number: int
    family: str
    kind: str
    domain: str
    share: float
    solved: bool
    result: str
    level: str
    bounds: dict[str, float]
    truth: dict[str, float]
    useful: bool
    violations: list[str]
    said: str
    seconds: float

    @property
    def violated(self) -> bool:
        return bool(self.violations) or self.result == "failed"

    @property
    def ratio(self) -> float:
        """The largest truth/bound."""
        pairs = [(self.truth[norm], bound) for norm, bound in self.bounds.items()]
        return max((truth / max(bound, 1e-300) for truth, bound in pairs), default=0.0)


def judged(number: int, seed: int) -> Outcome:
    """One case from its number. What the library refuses is refused; other errors are failures."""
    import hidden_cases

    from cordes.errors import CordesError

    start = time.perf_counter()
    warnings.simplefilter("ignore")
    try:
        case = hidden_cases.draw(number, seed)
        found = _solved(case) if case.solved else _certified(case)
        known = case.family, case.kind, case.domain, case.share, case.solved
    except CordesError as error:
        known, found = _outline(number, seed), ("refused", "", {}, {}, False, [], str(error)[:160])
    except Exception as error:
        # A crash is a finding, and must not end the battery.
        text = f"{type(error).__name__}: {error}"[:300]
        known, found = _outline(number, seed), ("failed", "", {}, {}, False, [], text)
    return Outcome(number, *known, *found, seconds=time.perf_counter() - start)


def _outline(number: int, seed: int) -> tuple[str, str, str, float, bool]:
    """Of a case that could not be made."""
    import hidden_cases

    family, kind, domain, share, solved, *_ = hidden_cases.outline(number, seed)
    return family, kind, type(domain).__name__, share, solved


def _certified(case: Any) -> tuple:
    import jax
    import numpy as np

    import cordes

    certificate = cordes.certify(case.problem, case.answer)
    truth = case.truth.norms(certificate.lambda_ or 0.0, case.problem.domain.volume)
    x = case.problem.domain.interior_points(500, 1)
    size = float(np.max(np.abs(jax.vmap(case.answer)(x))))
    bounds = _bounds(certificate, truth)
    result = "certified" if bounds else "no bound"
    below = _below(bounds, truth, DOUBT_OF_DATA if case.exact is None else DOUBT)
    return _compared(result, certificate, bounds, truth, size, below)


def _solved(case: Any) -> tuple:
    """Solve, and measure the error around the feature and at points everywhere."""
    import jax
    import numpy as np

    import cordes

    domain = case.problem.domain
    solution: Any = cordes.solve(
        case.problem, features=FEATURES, max_seconds=SECONDS, progress=False
    )
    everywhere = np.concatenate([case.points, domain.interior_points(2000, 2)])
    if case.family == "transport":
        there = np.asarray(jax.vmap(jax.grad(case.exact))(case.points))
        square = np.sum((solution.map(case.points) - there) ** 2, axis=1)
        weighted = case.truth.weight * np.sum(square * case.problem.source_density(case.points))
        truth = {"map_L2": float(np.sqrt(weighted))}
        size = float(np.sqrt(np.max(np.sum((there - domain.center) ** 2, axis=1))))
        largest = truth["map_L2"]
    else:
        there = np.asarray(jax.jit(jax.vmap(case.exact))(everywhere))
        error = np.abs(solution(everywhere) - there)
        size, largest = float(np.max(np.abs(there))), float(np.max(error))
        local = float(np.sqrt(case.truth.weight * np.sum(error[: len(case.points)] ** 2)))
        truth = {"Linf": largest, "L2": local, "rms": local / domain.volume**0.5}
    false = solution.result == "converged" and largest > WRONG * size
    violations = [f"converged, wrong by {largest:.3g} of {size:.3g}"] if false else []
    certificate = solution.certificate
    bounds = {} if certificate is None else _bounds(certificate, truth)
    violations += _below(bounds, truth, DOUBT)
    return _compared(str(solution.result), certificate, bounds, truth, size, violations)


def _below(bounds: dict[str, float], truth: dict[str, float], doubt: float) -> list[str]:
    return [norm for norm, bound in bounds.items() if not bound >= (1 - doubt) * truth[norm]]


def _bounds(certificate: Any, truth: dict[str, float]) -> dict[str, float]:
    given = {norm: getattr(certificate, norm) for norm in truth}
    upper = {
        norm: bound[1] if norm == "energy" and bound else bound for norm, bound in given.items()
    }
    return {norm: float(bound) for norm, bound in upper.items() if bound is not None}


def _compared(
    result: str,
    certificate: Any,
    bounds: dict[str, float],
    truth: dict[str, float],
    size: float,
    violations: list[str],
) -> tuple:
    errors = [(bounds[norm], truth[norm]) for norm in ERRORS if norm in bounds]
    useful = any(bound <= max(USEFUL * true, size) for bound, true in errors)
    level = (certificate and certificate.level) or "none"
    said = (certificate and certificate.reason) or ""
    return result, level, bounds, truth, useful, violations, said[:160]


# Running ----------------------------------------------------------------------------------------


def outcomes(numbers: Iterable[int], seed: int, fault: str | None = None) -> Iterator[Outcome]:
    """One after the other, in this process."""
    if fault is not None:
        import hidden_faults

        hidden_faults.plant(fault)
    for number in numbers:
        yield judged(number, seed)


def _start(fault: str | None) -> None:
    sys.path.append(str(Path(__file__).parent))
    if fault is not None:
        import hidden_faults

        hidden_faults.plant(fault)


def _task(task: tuple[int, int]) -> Outcome:
    return judged(*task)


def parallel(numbers: list[int], seed: int, processes: int, fault: str | None) -> Iterator[Outcome]:
    """In processes of one thread each, which are replaced after some cases: compiled programs are
    never forgotten."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _start, (fault,), maxtasksperchild=50) as pool:
        yield from pool.imap_unordered(_task, [(number, seed) for number in numbers])


def saved(path: Path | None) -> list[Outcome]:
    lines = path.read_text().splitlines() if path is not None and path.exists() else []
    return [Outcome(**json.loads(line)) for line in lines]


# Tables -----------------------------------------------------------------------------------------


def row(name: str, part: list[Outcome]) -> str:
    given = [each for each in part if each.bounds]
    useful, violated = (sum(getattr(e, name) for e in part) for name in ("useful", "violated"))
    worst = max((each.ratio for each in given), default=0.0)
    share = 100 * useful / max(len(part), 1)
    return f"{name:<24}{len(part):7}{len(given):8}{share:8.0f} %{violated:10}{worst:12.4g}"


def tables(found: list[Outcome]) -> str:
    head = f"{'':<24}  cases  bounds    useful  violated  truth/bound"
    lines = [f"{'by width':<24}{head[24:]}"]
    for low, high in itertools.pairwise(WIDTHS):
        lines.append(row(f"{low:g} to {high:g}", [e for e in found if low <= e.share < high]))
    names = {
        "by family": lambda e: e.family,
        "by kind": lambda e: e.kind,
        "by domain": lambda e: e.domain,
        "by level": lambda e: e.level if e.bounds else "no bound",
        "by result": lambda e: f"{'solve: ' * e.solved}{e.result}",
    }
    for title, key in names.items():
        lines += ["", f"{title:<24}{head[24:]}"]
        lines += [row(k, [e for e in found if key(e) == k]) for k in sorted({*map(key, found)})]
    lines += ["", row("all", found), ""]
    for each in found:
        if each.violated:
            lines.append(f"violated: {', '.join(each.violations)} {each}")
    seconds = sorted(each.seconds for each in found)
    middle = seconds[len(seconds) // 2] if seconds else 0.0
    return "\n".join([*lines, f"seconds: median {middle:.2f}, in all {sum(seconds):.0f}"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Are bounds below the truth, or answers wrong and converged?"
    )
    parser.add_argument("count", type=int, nargs="?", default=COUNT)
    parser.add_argument("seed", type=int, nargs="?", default=SEED)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--fault", choices=("remainder", "cell"))
    asked = parser.parse_args()
    found = saved(asked.save)
    done, end = {each.number for each in found}, time.monotonic() + asked.seconds
    numbers = [n for n in range(asked.first, asked.first + asked.count) if n not in done]
    if asked.processes > 1:
        running = parallel(numbers, asked.seed, asked.processes, asked.fault)
    else:
        running = outcomes(numbers, asked.seed, asked.fault)
    for each in running:
        found.append(each)
        if asked.save is not None:
            with asked.save.open("a") as file:
                file.write(json.dumps(each._asdict()) + "\n")
        if time.monotonic() > end:
            break
    import hidden_faults

    missed = hidden_faults.largest_share_left_out(asked.seed)
    print(tables(sorted(found)))
    print(f"of what rules may leave out, at most {missed:.3f} is left out")
    sys.exit(int(any(each.violated for each in found) or missed > 1))


if __name__ == "__main__":
    main()
