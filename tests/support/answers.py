"""Gallery problems solved once: kept in a folder that all workers share."""

import time
from pathlib import Path

import cordes
from cordes.solutions.solution import Solution

PAUSE, PATIENCE = 0.05, 600.0


class Answers:
    """`answers(name, **options)`: what `cordes.solve` gives. The worker that solves a problem first
    writes it down, and the others, who wait if they ask meanwhile, load it. Within one worker it is
    the same object. `answers.certified(…)` has a certificate too, made once in a worker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Solution] = {}
        self.with_certificate: dict[str, Solution] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, name: str, **options) -> Solution:
        key = _key(name, options)
        if key not in self.made:
            self.made[key] = self.shared(key, name, options)
        return self.made[key]

    def certified(self, name: str, **options) -> Solution:
        key = _key(name, options)
        if key not in self.with_certificate:
            self.with_certificate[key] = self(name, **options).certified()
        return self.with_certificate[key]

    def shared(self, key: str, name: str, options: dict) -> Solution:
        path, mark = self.folder / f"{key}.cordes", self.folder / f"{key}.begun"
        end = time.monotonic() + PATIENCE
        while not path.exists():
            assert time.monotonic() < end, f"The other worker did not finish {key}."
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                time.sleep(PAUSE)
                continue
            return self.solved(path, mark, name, options)
        return cordes.load(path)

    def solved(self, path: Path, mark: Path, name: str, options: dict) -> Solution:
        try:
            solution = cordes.solve(cordes.gallery[name], progress=False, certify=False, **options)
            solution.save(path)
            return solution
        finally:
            # Without an answer the next one who asks tries again, and sees the error too.
            mark.unlink()


def _key(name: str, options: dict) -> str:
    return " ".join([name, *(f"{key}={value}" for key, value in sorted(options.items()))])
