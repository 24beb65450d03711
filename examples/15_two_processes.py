"""Two processes

Rows of the equation can be shared out over processes, on one machine or on many: all run the same
program, each with its number and the address of process 0, inside `distribution.session`, where
the problem is made too. Every process gets the whole answer, that of one process but for rounding.
This program solves alone, then starts itself twice and loads what process 0 has saved.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

import cordes
from cordes import distribution


def one_of_two(archive, address, number):
    with distribution.session(address, processes=2, process_id=int(number)):
        solution = cordes.solve(cordes.gallery["ex4.2-continuous"], features=300)
        if distribution.is_first():
            solution.save(archive)


def main(picture="15_two_processes.png"):
    archive = Path(picture).with_suffix(".cordes")
    alone = cordes.solve(cordes.gallery["ex4.2-continuous"], features=300)
    with socket.create_server(("127.0.0.1", 0)) as free:  # a port that nobody uses
        command = [sys.executable, __file__, archive, f"127.0.0.1:{free.getsockname()[1]}"]
    settings = {**os.environ, "JAX_PLATFORMS": "cpu"}  # two processes cannot share one GPU
    processes = [subprocess.Popen([*command, str(number)], env=settings) for number in range(2)]
    if any([process.wait() for process in processes]):
        sys.exit("One of the processes failed.")
    shared = cordes.load(archive)
    shared.plot(picture)
    x = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    difference = np.max(np.abs(shared(x) - alone(x))) / np.max(np.abs(alone(x)))
    print(f"two processes differ from one by {difference:.0e} of the largest value")
    assert difference < 1e-8, "the relative difference of the two answers"


one_of_two(*sys.argv[1:]) if len(sys.argv) == 4 else main(*sys.argv[1:])
