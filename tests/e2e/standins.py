"""A program: the real supervisor, lifeline and store, with shell commands as engine and gateway.

    standins.py DATA_DIR NAME=SHELL_COMMAND...

Prints "ready" once everything has been started. A child that ignores SIGTERM is given 30 seconds.
"""

import asyncio
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

from chatserve.environment import process_environ
from chatserve.errors import ChatServeError
from chatserve.log import configure_logging
from chatserve.supervisor.child_process import ChildProcess
from chatserve.supervisor.data_folder import lock_folder
from chatserve.supervisor.lifeline import Lifeline
from chatserve.supervisor.store_service import StoreService
from chatserve.supervisor.supervisor import RestartPolicy, Service, Supervisor

IMPATIENT = RestartPolicy(first_delay_s=0.01, max_early_deaths=4)


def services(folder: Path, commands: list[str], lifeline: Lifeline) -> Iterator[Service]:
    yield StoreService(folder / "store", lifeline)
    for named_command in commands:
        name, command = named_command.split("=", 1)
        yield ChildProcess(
            name,
            ["/bin/sh", "-c", command],
            process_environ(),
            lifeline=lifeline,
            stop_deadline_s=30,
        )


async def ready() -> bool:
    return True


async def run(folder: Path, commands: list[str], lifeline: Lifeline) -> int:
    logging.info("started the guardian, process %d", lifeline.pid)
    supervisor = Supervisor(
        list(services(folder, commands, lifeline)),
        is_ready=ready,
        on_ready=lambda: logging.info("ready"),
        policy=IMPATIENT,
    )
    return await supervisor.run()


def main(folder: Path, commands: list[str]) -> int:
    configure_logging("info", "serve")
    try:
        with lock_folder(folder) as lock, Lifeline(keep_open=lock) as lifeline:
            return asyncio.run(run(folder, commands, lifeline))
    except ChatServeError as error:
        logging.error("standins: %s", error)
        return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
