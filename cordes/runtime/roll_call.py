"""Who is there: before JAX connects several processes, process 0 counts them, and all learn in
words what is wrong if some are missing or differ.

JAX ends a process whose partners do not come without an exception. The coordinator's port is used
for a moment: each process says its number, the number of processes and a mark of its arguments;
process 0 answers when all are there.
"""

import contextlib
import socket
import time

from cordes.errors import CordesError, OptionError

GO = "go"
# Nobody has more to say than this, nor needs longer to say it.
LONGEST, PATIENCE = 1000, 5.0


class ProcessError(CordesError):
    """Another process is missing, was started differently, or has ended; or this one is a fork."""

    kind = "process"


def call_roll(
    address: tuple[str, int], processes: int, process_id: int, mark: int, wait: float
) -> None:
    """Return in every process once all are there; after `wait` seconds raise in every process."""
    end = time.monotonic() + wait
    if process_id == 0:
        _count(address, processes, mark, wait, end)
    else:
        _report(address, f"{process_id} {processes} {mark}", wait, end)


def _count(address: tuple[str, int], processes: int, mark: int, wait: float, end: float) -> None:
    """Process 0: wait for the others, and tell them how it went."""
    name = f"{address[0]}:{address[1]}"
    try:
        family, *_, where = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        server = socket.create_server(where[:2], family=family)
    except OSError as error:
        raise OptionError(
            f"--coordinator {name}: process 0 cannot listen there ({error.strerror or error}). "
            "Give an address of its own host and a free port."
        ) from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(server)
        present, told = {0}, []
        answer = GO
        while len(present) < processes and answer == GO:
            server.settimeout(max(end - time.monotonic(), 0.01))
            try:
                connection = stack.enter_context(server.accept()[0])
            except TimeoutError:
                missing = ", ".join(str(i) for i in range(1, processes) if i not in present)
                answer = (
                    f"Of {processes} processes these did not come to {name} within {wait:g} s: "
                    f"{missing}. Start the same command once for each --process-id from 0 to "
                    f"{processes - 1}."
                )
                break
            words = _heard(connection).split()
            if len(words) != 3 or not all(word.isdecimal() for word in words):
                connection.close()
                continue
            process_id, others, theirs = (int(word) for word in words)
            if others != processes or theirs != mark:
                answer = (
                    f"Process {process_id} was started with other arguments than process 0: all "
                    "but --process-id, --out and --json must be the same, the contents of the "
                    "problem file and the versions of cordes, JAX and NumPy too."
                )
            elif process_id in present or process_id >= processes:
                answer = (
                    f"There are two processes, or too many, with the number {process_id}: give "
                    f"each its own --process-id from 0 to {processes - 1}."
                )
            present.add(process_id)
            told.append(connection)
        for connection in told:
            with contextlib.suppress(OSError):
                connection.sendall(f"{answer}\n".encode())
    if answer != GO:
        raise ProcessError(answer)


def _report(address: tuple[str, int], words: str, wait: float, end: float) -> None:
    """Any other process: say that it is there, and hear whether all are."""
    name = f"{address[0]}:{address[1]}"
    while True:
        try:
            connection = socket.create_connection(address, timeout=max(end - time.monotonic(), 0.1))
            break
        except OSError as error:
            if time.monotonic() + 0.2 > end:
                raise ProcessError(
                    f"Nothing answers at {name} after {wait:g} s ({error.strerror or error}): "
                    "start process 0 there, with the same --coordinator, and see that its port "
                    "can be reached from this host."
                ) from error
            time.sleep(0.2)
    with connection, contextlib.suppress(OSError):
        connection.sendall(f"{words}\n".encode())
        # Process 0 may have begun to wait later than this one.
        answer = _heard(connection, wait + PATIENCE)
        if answer == GO:
            return
        if answer:
            raise ProcessError(answer)
    raise ProcessError(
        f"What listens at {name} does not answer as process 0 does: see its messages, or "
        "choose another port."
    )


def _heard(connection: socket.socket, patience: float = PATIENCE) -> str:
    """One line from the other side, or nothing."""
    heard = b""
    end = time.monotonic() + patience
    with contextlib.suppress(OSError):
        while not heard.endswith(b"\n") and len(heard) < LONGEST:
            connection.settimeout(max(end - time.monotonic(), 0.01))
            part = connection.recv(LONGEST)
            if not part:
                break
            heard += part
    return heard.decode("utf-8", "replace").strip()
