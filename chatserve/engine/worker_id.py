"""The name of a worker: host, process and a random part.

Owns its form, and what can be told from it: a worker of this host whose process is gone is dead,
long before its heartbeat runs out.
"""

import os
import secrets
import socket

from chatserve.store.workers import Workers


def new_worker_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


async def forget_dead_neighbours(workers: Workers) -> None:
    """Remove the heartbeats of this host's dead workers, so that nobody waits for them."""
    for beat in await workers.live():
        if _is_dead_neighbour(beat.worker_id):
            await workers.remove(beat.worker_id)


def _is_dead_neighbour(worker_id: str) -> bool:
    host, pid, _ = worker_id.rsplit("-", 2)
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it lives, under another user
        return False
    return False
