"""Liveness, readiness, version and the list of models.

Owns what "ready" means: the store answers, a worker with a usable model lives, and its queue has
room. Liveness asks for nothing but the event loop, so that an overloaded process is not restarted.
"""

from starlette.requests import Request
from starlette.responses import Response

from chatserve import __version__
from chatserve.errors import StoreError
from chatserve.gateway.models import ServedModel
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services

_RETRY_AFTER_S = "1"


async def get_health(_request: Request) -> Response:
    """Serve `GET /health`."""
    return json_response({"status": "ok"})


async def get_ready(request: Request) -> Response:
    """Serve `GET /ready`: 200, or 503 with what is missing."""
    missing = await _missing(request.app.state.services)
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


async def list_models(request: Request) -> Response:
    """Serve `GET /v1/models`."""
    services: Services = request.app.state.services
    models = [_model_object(model) for model in services.models.live]
    return json_response({"object": "list", "data": models})


async def get_model(request: Request) -> Response:
    """Serve `GET /v1/models/{model}`, or raise NotFound."""
    services: Services = request.app.state.services
    return json_response(_model_object(await services.models.get(request.path_params["model"])))


def _model_object(model: ServedModel) -> dict[str, object]:
    return {
        "id": model.card.name,
        "object": "model",
        "created": model.loaded_at,
        "owned_by": "chatserve",
        "max_model_len": model.card.max_model_len,
    }


async def _missing(services: Services) -> str | None:
    """Return what keeps this gateway from serving, None if nothing does."""
    try:
        await services.store.ping()
        await services.models.refresh()
        models = services.models.live
        depths = [await services.store.queue.depth(model.card.name) for model in models]
    except StoreError:
        return "the store does not answer"
    if not models:
        return "no engine worker is running"
    if min(depths) >= services.config.max_queue:
        return "the queue is full"
    return None
