"""Liveness, readiness and version.

Owns what "ready" means: the store answers and takes what is written, a worker with a usable model
lives, and its queue has room. Liveness asks for nothing but the event loop, so that an overloaded
process is not restarted.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from chatserve import __version__
from chatserve.errors import StoreError
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services

_RETRY_AFTER_S = "1"

_PATIENCE_S = 1.5
"""How long the store may take to answer. Whoever asks for readiness has a timeout of their own."""


async def get_health(_request: Request) -> Response:
    """Serve `GET /health`."""
    return json_response({"status": "ok"})


class Readiness:
    """`GET /ready`.

    Anybody may ask, and the answer takes several round trips to the store: those who ask at once
    share one.

    Owns: the look that is under way.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._looking: asyncio.Task[str | None] | None = None

    async def serve(self, request: Request) -> Response:
        """Reply with 200, or with 503 and what is missing."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(_missing(request.app.state.services))
        missing = await asyncio.shield(self._looking)
        if missing is None:
            return json_response({"status": "ready"})
        return json_response(
            {"status": "not ready", "reason": missing},
            status=503,
            headers={"retry-after": _RETRY_AFTER_S},
        )


async def get_version(_request: Request) -> Response:
    """Serve `GET /version`."""
    return json_response({"version": __version__})


async def _missing(services: Services) -> str | None:
    """Return what keeps this gateway from serving, None if nothing does."""
    if services.drain.is_draining:
        return "draining"
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await services.store.probe()
            await services.models.refresh()
            models = services.models.live
            depths = [await services.store.queue.depth(model.card.name) for model in models]
    except (StoreError, TimeoutError):
        return "the store does not answer, or takes nothing new"
    if not models:
        return "no engine worker is running"
    if min(depths) >= services.config.max_queue:
        return "the queue is full"
    return None


OPERATIONS = (
    Operation("GET", "/health", "Tell that the process lives"),
    Operation("GET", "/ready", "Tell whether requests can be served"),
    Operation("GET", "/version", "Tell the version"),
)
