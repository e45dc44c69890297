"""A guardian that lets no child outlive its supervisor, even one killed with SIGKILL.

Owns the pipe between the two: the supervisor holds the write end, the guardian (this file, run as
a program) the read end. The kernel closes the write end when the supervisor dies, however it
dies; the guardian then reads the end of the file and ends every process group it has heard of.
Standard library only, no other module of the package, so that the guardian is small and starts
in milliseconds. Needs nothing but POSIX, so it works on Linux and macOS alike.

A child writes its own `+pid` into the pipe before it becomes the program it is to run, and gives
the pipe up by becoming it. So there is no moment in which a child runs and the guardian cannot
know of it: if the supervisor dies just after the fork, the file does not end before the child has
written its line.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Self

TERMINATE_S = 5.0
_POLL_S = 0.05

# Writes the shell's own pid to its standard input, which is the pipe, then becomes the program.
_ENLIST = 'echo "+$$" >&0 && exec "$@" </dev/null'


class Lifeline:
    """The supervisor's end, a context manager.

    Owns: the guardian process and the write end of its pipe. The guardian keeps the descriptor
    `keep_open` open for as long as it lives, and so for as long as a child may live.
    Used from: the supervisor's event loop; no method waits except `__exit__`.
    """

    def __init__(self, *, keep_open: int | None = None) -> None:
        self._guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            bufsize=0,
            pass_fds=() if keep_open is None else (keep_open,),
            start_new_session=True,
        )
        assert self._guardian.stdin is not None, "the guardian was started with a pipe"
        self._pipe = self._guardian.stdin

    @property
    def pid(self) -> int:
        return self._guardian.pid

    def fileno(self) -> int:
        """Return the descriptor that an enlisted command needs as its standard input."""
        return self._pipe.fileno()

    def enlisted(self, command: Sequence[str]) -> list[str]:
        """Return a command that enlists itself and then becomes `command`, with the same pid.

        Start it as the leader of its own session, with this lifeline as standard input.
        """
        return ["/bin/sh", "-c", _ENLIST, "sh", *command]

    def forget(self, pid: int) -> None:
        """Say that a child has ended, before its pid may name another process."""
        with suppress(BrokenPipeError):
            self._pipe.write(b"-%d\n" % pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the guardian, and with it whatever child is left."""
        self._pipe.close()
        self._guardian.wait()


def guard(lines: Iterable[bytes]) -> None:
    """Keep the list of children until `lines` end, then end the children."""
    groups: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line.startswith(b"+"):
            groups.add(pid)
        else:
            groups.discard(pid)
    end_groups(groups)


def end_groups(groups: set[int]) -> None:
    """Ask process groups to end, then kill those that have not within TERMINATE_S seconds."""
    alive = {group for group in groups if signal_group(group, signal.SIGTERM)}
    deadline = time.monotonic() + TERMINATE_S
    while alive and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        alive = {group for group in alive if signal_group(group, 0)}
    for group in alive:
        signal_group(group, signal.SIGKILL)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group, 0 for none, and return whether somebody was there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS refuses where only a zombie is left
        return False
    return True


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    guard(sys.stdin.buffer)
