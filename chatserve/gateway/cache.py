"""`GET /v1/chatserve/cache`: what the workers' caches and batches look like now.

Owns the query and the reply. What a viewer may see of a snapshot is decided in `cache_viewer.py`.
"""

import asyncio
import hashlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.cache_snapshot import CacheSnapshot
from chatserve.error_codes import ErrorCode
from chatserve.errors import Forbidden, InvalidRequest
from chatserve.gateway.cache_view import worker_view
from chatserve.gateway.cache_viewer import Viewer
from chatserve.gateway.identity import identity_of
from chatserve.gateway.model_list import find_model, usable_models
from chatserve.gateway.models import ServedModel
from chatserve.gateway.operations import Operation, text
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services
from chatserve.identity import Identity, is_tenant_name
from chatserve.protocol.errors import describe

_PATH = "/v1/chatserve/cache"


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [Route(_PATH, get_cache, methods=["GET"])]


async def get_cache(request: Request) -> Response:
    """Serve `GET /v1/chatserve/cache`."""
    services: Services = request.app.state.services
    identity = identity_of(request)
    only_tenant = _tenant(request, identity)
    models = {model.card.name: model for model in await _models(request, services, identity)}
    snapshots = await services.cache_watch.snapshots()
    shown = [
        (beat.worker_id, models[beat.model], snapshots[beat.worker_id])
        for beat in services.models.beats
        if beat.model in models and beat.worker_id in snapshots
    ]
    workers = await asyncio.to_thread(
        lambda: [_worker(*each, identity=identity, only_tenant=only_tenant) for each in shown]
    )
    by_user = any(snapshot.by_user for *_, snapshot in shown)
    whose = "all" if identity.is_operator else "user" if by_user else "tenant"
    reply = {"object": "chatserve.cache", "view": whose, "workers": workers}
    return json_response(reply)


def _tenant(request: Request, identity: Identity) -> str | None:
    name = request.query_params.get("tenant")
    if name is None:
        return None
    if not is_tenant_name(name):
        raise InvalidRequest(f"tenant: {describe(name)} is no name of a tenant", param="tenant")
    if not identity.is_operator and name != identity.tenant:
        raise Forbidden("only an operator sees other tenants", code=ErrorCode.OPERATOR_ONLY)
    return name


async def _models(request: Request, services: Services, identity: Identity) -> list[ServedModel]:
    """Return the models whose workers are asked for: all that the caller may use, or one."""
    name = request.query_params.get("model")
    if identity.is_operator:
        return [await services.models.get(name)] if name is not None else services.models.live
    if name is not None:
        return [(await find_model(services, identity, name)).served]
    return usable_models(services, await services.directory.tenant(identity.tenant))


def _worker(
    worker_id: str,
    model: ServedModel,
    snapshot: CacheSnapshot,
    *,
    identity: Identity,
    only_tenant: str | None,
) -> dict[str, Any]:
    """Return one worker's entry; its name, which has that of a machine in it, is for operators."""
    viewer = Viewer(identity, snapshot.by_user, only_tenant)
    name = worker_id if viewer.sees_all else _alias(worker_id)
    view = worker_view(snapshot, viewer, model.encoder.turns_in)
    return {"id": name, "model": model.card.name, **view}


def _alias(worker_id: str) -> str:
    return hashlib.blake2b(worker_id.encode(), digest_size=6).hexdigest()


OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        "Show what the workers' caches and batches look like now",
        query=(text("model"), text("tenant")),
        errors=(404,),
    ),
)
