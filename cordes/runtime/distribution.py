"""Many devices and many processes: rows are shared out, parameters are not.

Every process runs the same program on the same problem. It works alone on what is small (points,
rows, the certificate), and with the others on what is large:

- training: rows are spread over all devices of all processes; each device takes its part through
  the network, and JAX adds up losses and gradients;
- least squares: each process evaluates its part of the rows and reduces them to a triangle by a QR
  factorisation; the triangles of all processes below each other are a small least-squares problem
  with the same solution (TSQR: Demmel, Grigori, Hoemmen, Langou 2012).

What decides how a solve goes on (residuals, the clock) is the same number everywhere, since
processes that go different ways would wait for each other for ever. With one process and one device
nothing here does anything.
"""

import atexit
import contextlib
import os
import signal
import socket
import sys
import zlib
from collections.abc import Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.extend.backend import register_backend_factory
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cordes.errors import OptionError
from cordes.runtime.files import standard_output_kept
from cordes.runtime.roll_call import ProcessError, call_roll
from cordes.runtime.signals import HEEDED

AXIS = "rows"
# How long a process waits for the others to start.
WAIT = 120.0
Tree = TypeVar("Tree")


# Processes ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def session(
    coordinator: str | None,
    processes: int | None,
    process_id: int | None,
    arguments: Any = None,
    wait: float = WAIT,
) -> Iterator[None]:
    """Within this context all processes work together. `arguments` must be the same in all of them.

    The libraries that connect processes write to standard output, which is where the answer goes:
    until the end it is standard error for them.
    """
    if coordinator is None and processes is None and process_id is None:
        yield
        return
    address, processes, process_id = _checked(coordinator, processes, process_id)
    if _backend_used():
        raise OptionError(
            "A device was used before the session began: make problems, and whatever else "
            "calls JAX, inside of it."
        )
    with standard_output_kept(), _ended_by_interrupts():
        call_roll(address, processes, process_id, zlib.crc32(repr(arguments).encode()), wait)
        try:
            _start(address, processes, process_id)
            _meet()
            yield
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                # All is well with whoever ends a program so; the others are waited for.
                raise
            # At its end a process waits for the others, which may be waiting for this one: it must
            # leave without that.
            atexit.register(_leave, 130 if isinstance(error, KeyboardInterrupt) else 2)
            if isinstance(error, jax.errors.JaxRuntimeError):
                first_line = str(error).partition("\n")[0]
                raise ProcessError(
                    f"Process {process_id} of {processes} cannot go on; most likely another one "
                    f"has ended: see its messages. ({first_line})"
                ) from error
            raise


def is_first() -> bool:
    """Whether this is the process that prints and writes files."""
    return jax.process_index() == 0


def facts() -> dict[str, int]:
    """How many processes and devices there are, where there are several."""
    if jax.device_count() == 1:
        return {}
    return {"processes": jax.process_count(), "devices": jax.device_count()}


def _checked(
    coordinator: str | None, processes: int | None, process_id: int | None
) -> tuple[tuple[str, int], int, int]:
    """Host and port, and the two numbers; anything that cannot work is refused."""
    if coordinator is None or processes is None or process_id is None:
        names = ("--coordinator", "--processes", "--process-id")
        values = (coordinator, processes, process_id)
        missing = [name for name, value in zip(names, values, strict=True) if value is None]
        raise OptionError(
            f"{' and '.join(missing)} missing: several processes need --coordinator HOST:PORT, "
            "--processes N, and --process-id 0 … N-1, one for each."
        )
    if not 0 <= process_id < processes:
        raise OptionError(
            f"--process-id {process_id} with --processes {processes}: the processes are "
            f"numbered from 0 to {processes - 1}."
        )
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise OptionError(
            f"--coordinator {coordinator}: give the host of process 0 and a free port there, "
            "as in 192.0.2.1:29500."
        )
    return (host.strip("[]"), int(port)), processes, process_id


def _start(address: tuple[str, int], processes: int, process_id: int) -> None:
    """Connect this process with the others, before anything has used a device."""
    # A process that is told to end should end; JAX would catch the signal and tell the others.
    jax.config.update("jax_enable_preemption_service", False)
    _connect_from(_own_address(address))
    host, port = address
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    # The coordinator listens at the address that it was given, not at all that the host has.
    jax.distributed.initialize(
        name,
        processes,
        process_id,
        cluster_detection_method="deactivate",
        coordinator_bind_address=name,
    )


def _backend_used() -> bool:
    """Whether JAX has taken hold of the devices already; it cannot let go of them."""
    from jax._src import xla_bridge

    return xla_bridge.backends_are_initialized()


def _own_address(coordinator: tuple[str, int]) -> str:
    """The address by which this host reaches the coordinator; nothing is sent to find out."""
    family, kind, protocol, _, where = socket.getaddrinfo(*coordinator, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(where)
        return probe.getsockname()[0]


def _connect_from(address: str) -> None:
    """Processors talk through Gloo at this address. Left alone it takes the one that the host's
    name stands for: often a loopback address that other hosts cannot reach, or one open to
    everybody while all processes are on this host."""
    from jax._src import distributed, xla_bridge
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]

    def client() -> Any:
        return xla_bridge.make_cpu_client(
            _jax.make_gloo_tcp_collectives(
                distributed_client=distributed.global_state.client, hostname=address
            )
        )

    register_backend_factory("cpu", client, priority=0, fail_quietly=False)


def _meet() -> None:
    """The first exchange makes the connections, which all processes must do at about the same time;
    later ones may keep each other waiting."""
    total, devices = float(_total(np.ones(jax.device_count()))), jax.device_count()
    if total != devices or len(gather(np.zeros(1))) != jax.process_count():
        raise ProcessError(
            f"A sum over {devices} devices gave {total:g}: the connection between the "
            "processes does not work."
        )


@jax.jit
def _total(values: Any) -> Any:
    return jnp.sum(spread(values))


@contextlib.contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Signals end the process at once. Solvers would stop with the best answer so far, but in one
    process alone, out of step with the others."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in HEEDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


# Numbers that all processes share -----------------------------------------------------------------


def gather(array: np.ndarray) -> np.ndarray:
    """The arrays of all processes, of one shape, stacked; as bytes, which JAX does not round."""
    if jax.process_count() == 1:
        return array[None]
    sent = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    received = multihost_utils.process_allgather(sent)
    return np.ascontiguousarray(received).view(array.dtype).reshape(-1, *array.shape)


def agreed(value: Tree) -> Tree:
    """What process 0 says, a number or an array."""
    if jax.process_count() == 1:
        return value
    said = gather(np.asarray(value))[0]
    return said if isinstance(value, np.ndarray) else said.item()


def norm(part: np.ndarray) -> float:
    """The norm of a vector of which this process has a part."""
    return float(np.linalg.norm(gather(np.asarray(np.linalg.norm(part)))))


# Rows over processes (NumPy) ----------------------------------------------------------------------


def share(rows: Tree) -> Tree:
    """The rows that this process works on: every n-th."""
    processes = jax.process_count()
    if processes == 1:
        return rows
    count = min((len(leaf) for leaf in jax.tree.leaves(rows)), default=processes)
    if count < processes:
        raise OptionError(
            f"{count} rows cannot be shared by {processes} processes: use fewer processes, or "
            "more points."
        )
    return jax.tree.map(lambda leaf: np.asarray(leaf)[jax.process_index() :: processes], rows)


def reduced(matrix: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The triangles of all shares: a small problem with the solution of the large one."""
    if jax.process_count() == 1:
        return matrix, target
    both = np.concatenate([matrix, target[:, None]], axis=1)
    triangle: np.ndarray = np.linalg.qr(both, mode="r")  # pyright: ignore
    # A share with fewer rows than columns has a flat triangle; all must have one shape.
    padded = np.zeros((triangle.shape[1], triangle.shape[1]))
    padded[: len(triangle)] = triangle
    together = gather(padded).reshape(-1, triangle.shape[1])
    return together[:, :-1], together[:, -1]


# Rows over devices (JAX) --------------------------------------------------------------------------


def _layout() -> NamedSharding:
    return NamedSharding(Mesh(np.asarray(jax.devices()), (AXIS,)), PartitionSpec(AXIS))


def place(rows: Tree) -> Tree:
    """Rows on the devices that work on them, filled up with zeros, which no sum of squares sees."""
    devices = jax.device_count()
    if devices == 1:
        return rows
    layout = _layout()

    def placed(leaf: Any) -> Any:
        array = np.asarray(leaf)
        filled = np.zeros((-len(array) % devices, *array.shape[1:]), array.dtype)
        array = np.concatenate([array, filled])
        return jax.make_array_from_callback(array.shape, layout, lambda part: array[part])

    return jax.tree.map(placed, rows)


def spread(rows: Tree) -> Tree:
    """Inside a compiled function: the devices of these rows compute what is made of them."""
    devices = jax.device_count()
    if devices == 1:
        return rows
    layout = _layout()

    def constrained(leaf: Any) -> Any:
        if len(leaf) % devices:
            # An argument that cannot be cut into equal parts comes in whole; the compiler would cut
            # it as it likes, which JAX does not understand.
            leaf = everywhere(leaf)
        return jax.lax.with_sharding_constraint(leaf, layout)

    return jax.tree.map(constrained, rows)


def everywhere(tree: Tree) -> Tree:
    """Inside a compiled function: all devices get the whole of what they computed in parts."""
    if jax.device_count() == 1:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(_layout().mesh, PartitionSpec()))


def local(tree: Tree) -> Tree:
    """Parameters, which all devices have, as arrays of this process alone."""
    if jax.device_count() == 1:
        return tree
    return jax.tree.map(
        lambda leaf: jnp.asarray(np.asarray(leaf)) if isinstance(leaf, jax.Array) else leaf, tree
    )
