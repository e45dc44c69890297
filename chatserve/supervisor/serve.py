"""`chatserve serve`: the whole service on one machine, from nothing.

Owns the way from a config to running services: one lock per data folder, what the service stands
on, the model on the disk, then store, engine and gateway under the supervisor. Each obstacle is one
line. Knows how the processes are started, not what they do.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import replace

from chatserve.config import EngineConfig, GatewayConfig, ServeConfig, bracketed
from chatserve.engine.api import BEAT_TTL_MS
from chatserve.environment import process_environ
from chatserve.model_fetch import fetch_if_missing
from chatserve.settings import to_environ
from chatserve.store.embedded_files import STORE_FOLDER
from chatserve.supervisor.child_process import ChildProcess
from chatserve.supervisor.data_folder import lock_folder
from chatserve.supervisor.lifeline import Lifeline
from chatserve.supervisor.preflight import check_surroundings
from chatserve.supervisor.store_service import StoreService
from chatserve.supervisor.supervisor import RestartPolicy, Service, Supervisor

logger = logging.getLogger(__name__)

# Beyond the time for running answers: for what a child closes in the end.
_STOP_MARGIN_S = 10.0
_PROBE_TIMEOUT_S = 5.0

POLICY = RestartPolicy(settle_s=BEAT_TTL_MS / 1e3 + 1.0)
"""A dead engine's heartbeat makes the gateway ready until it runs out."""

_LOCAL_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def serve(config: ServeConfig, say: Callable[[str], None]) -> int:
    """Serve until told to stop, and return the exit code; `say` prints a line for the person."""
    with lock_folder(config.engine.data_dir) as lock:
        check_surroundings(config)
        fetch_if_missing(config.engine.model, config.engine.data_dir, sys.stderr)
        with Lifeline(keep_open=lock) as lifeline:
            logger.debug("started the guardian, process %d", lifeline.pid)
            return asyncio.run(_supervise(config, lifeline, say))


async def answers_ready(host: str, port: int) -> bool:
    """Return whether a gateway there says that it is ready."""
    request = f"GET /ready HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request.encode())
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except OSError:  # nobody listens yet, or TimeoutError
        return False


async def _supervise(config: ServeConfig, lifeline: Lifeline, say: Callable[[str], None]) -> int:
    host = _LOCAL_ADDRESS.get(config.gateway.host, config.gateway.host)
    port = config.gateway.port
    supervisor = Supervisor(
        _services(config, lifeline),
        is_ready=lambda: answers_ready(host, port),
        on_ready=lambda: say(_welcome(config.gateway, f"http://{bracketed(host)}:{port}")),
        policy=POLICY,
    )
    return await supervisor.run()


def _services(config: ServeConfig, lifeline: Lifeline) -> list[Service]:
    """Return what is to run, in the order of starting: each needs those before it."""
    services: list[Service] = []
    engine, gateway = config.engine, config.gateway
    if config.uses_bundled_store:
        store = StoreService(engine.data_dir / STORE_FOLDER, lifeline)
        services.append(store)
        engine = replace(engine, redis_url=store.url)
        gateway = replace(gateway, redis_url=store.url)
    return [*services, _role("engine", engine, lifeline), _role("gateway", gateway, lifeline)]


def _role(name: str, config: EngineConfig | GatewayConfig, lifeline: Lifeline) -> ChildProcess:
    return ChildProcess(
        name,
        # -P: a numpy.py in the folder where `serve` was started is none of ours.
        [sys.executable, "-P", "-m", "chatserve", name],
        {**process_environ(), **to_environ(config)},
        lifeline=lifeline,
        stop_deadline_s=config.drain_s + _STOP_MARGIN_S,
    )


def _welcome(config: GatewayConfig, url: str) -> str:
    keys = "" if config.is_loopback else "everybody needs a key; "
    line = f"  chatserve is ready:  {url}  ({keys}Ctrl-C stops it)  "
    return "\n".join(("", "-" * len(line), line, "-" * len(line), ""))
