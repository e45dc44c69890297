"""Writing what a command answers, to a stream that somebody else may have closed.

Owns the errors of the standard streams. Knows nothing of what is written. What cannot be written
is the reader's doing, so it ends the command without a traceback.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TextIO

from chatserve.errors import ChatServeError


class OutputError(ChatServeError):
    """What a command answers cannot be written."""


class ReaderGone(OutputError):
    """Whoever read the answer has closed the pipe, as `head` does when it has enough."""


@dataclass(frozen=True, slots=True)
class Console:
    """Where results go, where the way to them is shown, and who answers questions, if anybody."""

    out: TextIO
    progress: TextIO
    answers: TextIO | None = None

    def confirms(self, question: str) -> bool:
        """Return whether somebody at a terminal says yes."""
        assert self.answers is not None, "nobody is there to be asked"
        write_text(self.progress, f"{question} [y/N] ")
        return self.answers.readline().strip().lower() in ("y", "yes")


def terminal() -> TextIO | None:
    """Return the standard input where a person is at it."""
    return sys.stdin if sys.stdin is not None and sys.stdin.isatty() else None


def standard_output() -> TextIO:
    """Return the standard output.

    Raises:
        OutputError: It is closed.
    """
    if sys.stdout is None:
        raise OutputError("the standard output is closed")
    return sys.stdout


def write_text(stream: TextIO, text: str) -> None:
    """Write a text at once, as UTF-8 whatever the locale is: a prompt may hold any character.

    Raises:
        ReaderGone: Nobody reads it any more.
        OutputError: It cannot be written.
    """
    try:
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")
        stream.write(text)
        stream.flush()
    except OSError as error:
        raise write_failure(stream, error) from error


def write_lines(stream: TextIO, lines: Iterable[str]) -> None:
    """Write some lines at once, as `write_text` does."""
    write_text(stream, "".join(f"{line}\n" for line in lines))


def write_failure(stream: TextIO, error: OSError) -> OutputError | ReaderGone:
    """Return what it means that writing to a stream failed; nothing more is written to it."""
    _discard(stream)
    kind = ReaderGone if isinstance(error, BrokenPipeError) else OutputError
    return kind(f"cannot write: {error.strerror}")


def _discard(stream: TextIO) -> None:
    """Lead a stream nowhere; what it still holds would fail once more when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
