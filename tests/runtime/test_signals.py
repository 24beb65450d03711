"""Signals are remembered, and heeded where nothing is left half done."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import cordes
from cordes.runtime import signals
from cordes.runtime.clock import Clock, check_deadline
from cordes.runtime.progress import Progress
from cordes.runtime.signals import (
    heeded_by_commands,
    heeded_by_solves,
    held,
    pause,
    received,
    taken,
)

each_one = pytest.mark.parametrize("number", signals.HEEDED)


@each_one
@pytest.mark.parametrize(
    "ask",
    [pause, check_deadline, lambda: Clock().over, lambda: Progress("", False).update(step=1)],
    ids=["pause", "deadline", "clock", "progress"],
)
def test_a_signal_is_raised_at_the_next_pause_and_once(number, ask):
    before = signal.getsignal(number)
    with heeded_by_commands():
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            ask()
        ask()
        assert received() is number
    assert signal.getsignal(number) is before
    assert received() is None


def test_nothing_is_raised_where_python_would_swallow_it():
    """A callback of the garbage collector, as JAX has one, cannot raise."""

    def callback(phase, _):
        if phase == "start":
            signal.raise_signal(signal.SIGINT)

    with heeded_by_commands():
        gc.callbacks.append(callback)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(callback)
        with pytest.raises(KeyboardInterrupt):
            pause()


def test_what_must_not_be_cut_is_finished_first():
    with heeded_by_commands():
        with held():
            signal.raise_signal(signal.SIGTERM)
            pause()
        with pytest.raises(KeyboardInterrupt):
            pause()


@pytest.fixture
def quick(monkeypatch):
    """No signal is taken for the one before."""
    monkeypatch.setattr(signals, "AGAIN", 0.0)


@each_one
@pytest.mark.usefixtures("quick")
def test_the_second_signal_ends_a_command_at_once(monkeypatch, number):
    ends = []
    monkeypatch.setattr(os, "_exit", ends.append)
    with heeded_by_commands(), held():
        signal.raise_signal(signal.SIGINT)
        assert not ends
        signal.raise_signal(number)
    # Both the handler and the thread do it.
    assert set(ends) == {128 + number}


COMPILED = """
import jax, jax.numpy as jnp
from cordes.runtime.signals import heeded_by_commands
with heeded_by_commands():
    print("begun", flush=True)
    jax.jit(lambda x: jax.lax.while_loop(lambda x: x >= 0.0, lambda x: x + 1.0, x))(0.0).item()
"""


@pytest.mark.long
def test_the_second_signal_ends_compiled_code_at_once():
    """While it runs, Python calls no handler."""
    command = [sys.executable, "-c", COMPILED]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as process:
        try:
            assert process.stdout.readline() == "begun\n"
            # Long after it was begun, and again long after people were told.
            time.sleep(5)
            process.send_signal(signal.SIGTERM)
            assert process.stderr.read(9).strip() == "Stopping"
            time.sleep(2 * signals.AGAIN)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()


def test_a_command_leaves_no_listener_behind(monkeypatch):
    """Even where a child of its process lives on, and holds all that was open."""
    held_open, pipe = [], os.pipe

    def inherited():
        ends = pipe()
        held_open.extend(map(os.dup, ends))
        return ends

    monkeypatch.setattr(os, "pipe", inherited)
    before = threading.active_count()
    with heeded_by_commands():
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    assert signal.set_wakeup_fd(-1) == -1
    for descriptor in held_open:
        os.close(descriptor)


def test_one_signal_may_come_twice(monkeypatch):
    """As `timeout` sends it."""
    monkeypatch.setattr(os, "_exit", lambda _: pytest.fail("ended"))
    with heeded_by_commands(), held():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("quick")
def test_the_second_interrupt_of_a_solve_raises_at_once():
    with heeded_by_solves():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with heeded_by_commands():
            signal.raise_signal(signal.SIGINT)
            pause()
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_of_others_are_left_alone():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with heeded_by_solves():
            signal.raise_signal(signal.SIGINT)
            pause()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_other_threads_neither_listen_nor_are_stopped():
    failed = []

    def work():
        try:
            with heeded_by_commands(), heeded_by_solves():
                pause()
        except BaseException as error:
            failed.append(error)

    with heeded_by_commands():
        signal.raise_signal(signal.SIGINT)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert taken()
    assert not failed


def test_an_interrupt_too_late_for_a_pause_is_told(monkeypatch):
    problem = cordes.Linear(cordes.Box([0], [1]), 1.0, 1.0)
    judged = cordes.Solution.judged

    def late(solution):
        signal.raise_signal(signal.SIGINT)
        return judged(solution)

    monkeypatch.setattr(cordes.Solution, "judged", late)
    solution = cordes.solve(problem, features=10, progress=False)
    assert solution.result is cordes.Result.interrupted
    assert solution.certificate is not None
