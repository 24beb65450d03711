"""One Adam step of the paper preset (10,000 points, 4×64 SiLU, float32 with full products):
milliseconds, and its cost in plain epochs of this machine.

Steps and epochs are measured in turn, each in compiled loops of its own; compilation is shown
apart.     python benchmarks/adam_step.py [NAME] [--seeds N]
"""

import argparse
import statistics
import time

import jax
import numpy as np

import cordes
from cordes.solutions.errors import error_points
from cordes.studies.ensemble import EVERY, Ensemble, methods_of
from cordes.studies.yardstick import epoch_seconds

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", default="ex4.2-continuous")
    parser.add_argument("--seeds", type=int, default=1, help="networks trained at once")
    parser.add_argument("--records", type=int, default=10 if jax.default_backend() != "cpu" else 2)
    options = parser.parse_args()
    problem = cordes.gallery[options.name]
    truth = np.asarray(jax.jit(jax.vmap(problem.exact))(error_points(problem.domain)))
    ensemble = Ensemble(problem, methods_of(problem)[0], range(options.seeds), truth)
    state, data = ensemble.start(), ensemble.data()
    start = time.perf_counter()
    function = ensemble.compiled(state, data, options.records)
    compile_seconds = time.perf_counter() - start
    steps, epochs = [], []
    state, _ = ensemble.advance(function, state, data)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        state, _ = ensemble.advance(function, state, data)
        steps.append((time.perf_counter() - start) / (EVERY * options.records * options.seeds))
        epochs.append(epoch_seconds(problem.domain.dimension, repeats=1))
    step, epoch = statistics.median(steps), statistics.median(epochs)
    device = jax.devices()[0]
    print(
        f"{options.name}, {options.seeds} seeds on {device.device_kind}: {1e3 * step:.3f} ms for "
        f"each step and seed, plain epoch {1e3 * epoch:.2f} ms, ratio {step / epoch:.3f}; compile "
        f"{compile_seconds:.1f} s; error measured every {EVERY} steps included"
    )


if __name__ == "__main__":
    main()
