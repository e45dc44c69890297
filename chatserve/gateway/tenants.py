"""The operator's endpoints for tenants and keys, below `/v1/chatserve/`.

Owns the way between the store's records and the wire. `chatserve tenant` and `chatserve key` do the
same from a shell, on the store itself, and so work without a key; that is how the first is made.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import NotFound
from chatserve.gateway.identity import require_operator
from chatserve.gateway.operations import LIMIT, Operation, text
from chatserve.gateway.paging import first_page, page_limit
from chatserve.gateway.query import check_names
from chatserve.gateway.replies import json_response, take_whole_body
from chatserve.gateway.services import Services
from chatserve.identity import Role
from chatserve.protocol.errors import describe
from chatserve.protocol.tenants import (
    KeyFields,
    NewKey,
    NewTenant,
    QuotaFields,
    Rotation,
    TenantChange,
)
from chatserve.store.api_keys import ApiKey, IssuedKey, KeyChange, place_of
from chatserve.store.tenant_removal import remove_tenant
from chatserve.store.tenants import NO_QUOTAS, Quotas, Tenant

_TENANT = "/v1/chatserve/tenants/{name}"
_KEY = "/v1/chatserve/keys/{key_id}"


def routes() -> list[BaseRoute]:
    """Return the paths of tenants and keys."""
    return [
        Route("/v1/chatserve/tenants", list_tenants, methods=["GET"]),
        Route("/v1/chatserve/tenants", add_tenant, methods=["POST"]),
        Route(_TENANT, get_tenant, methods=["GET"]),
        Route(_TENANT, update_tenant, methods=["POST"]),
        Route(_TENANT, delete_tenant, methods=["DELETE"]),
        Route("/v1/chatserve/keys", list_keys, methods=["GET"]),
        Route("/v1/chatserve/keys", add_key, methods=["POST"]),
        Route(_KEY, get_key, methods=["GET"]),
        Route(_KEY, update_key, methods=["POST"]),
        Route(_KEY, revoke_key, methods=["DELETE"]),
        Route(f"{_KEY}/rotate", rotate_key, methods=["POST"]),
    ]


async def list_tenants(request: Request) -> Response:
    """Serve `GET /v1/chatserve/tenants`: by name, those after `after`."""
    services = _services(request, "limit", "after")
    limit = page_limit(request)
    found = await services.store.tenants.list(limit + 1, request.query_params.get("after", ""))
    return json_response(first_page([_tenant_object(tenant) for tenant in found], limit))


async def add_tenant(request: Request) -> Response:
    """Serve `POST /v1/chatserve/tenants`."""
    services = _services(request)
    new = await take_whole_body(request, NewTenant)
    tenant = Tenant(new.name, quotas=_quotas(new.quotas), models=tuple(new.models))
    added = await services.store.tenants.add(tenant)
    return json_response(_tenant_object(added))


async def get_tenant(request: Request) -> Response:
    """Serve `GET /v1/chatserve/tenants/{name}`."""
    name = request.path_params["name"]
    tenant = await _services(request).store.tenants.get(name)
    if tenant is None:
        raise _no_tenant(name)
    return json_response(_tenant_object(tenant))


async def update_tenant(request: Request) -> Response:
    """Serve `POST /v1/chatserve/tenants/{name}`: what the body names is replaced as a whole."""
    services, name = _services(request), request.path_params["name"]
    change = await take_whole_body(request, TenantChange)
    quotas = _quotas(change.quotas) if change.quotas is not None else None
    tenant = await services.store.tenants.update(name, quotas=quotas, models=change.models)
    if tenant is None:
        raise _no_tenant(name)
    return json_response(_tenant_object(tenant))


async def delete_tenant(request: Request) -> Response:
    """Serve `DELETE /v1/chatserve/tenants/{name}`; done when all that belongs to it is erased."""
    services, name = _services(request), request.path_params["name"]
    removed = await remove_tenant(services.store, name)
    if removed is None:
        raise _no_tenant(name)
    return json_response(
        {
            "object": "chatserve.tenant.deleted",
            "name": name,
            "deleted": True,
            "keys": removed.num_keys,
            "prompts": removed.num_prompts,
            "conversations": removed.num_sessions,
            "responses": removed.num_responses,
        }
    )


async def list_keys(request: Request) -> Response:
    """Serve `GET /v1/chatserve/keys`: of one `tenant`, or of all, the oldest first."""
    services = _services(request, "limit", "after", "tenant")
    limit = page_limit(request)
    tenant, after = request.query_params.get("tenant"), request.query_params.get("after")
    if tenant is not None and await services.store.tenants.get(tenant) is None:
        raise _no_tenant(tenant)
    last = await _known_key(services, after) if after is not None else None
    found = await services.store.api_keys.list(
        limit + 1, tenant=tenant, after=place_of(last) if last is not None else ""
    )
    return json_response(first_page([_key_object(key) for key in found], limit))


async def add_key(request: Request) -> Response:
    """Serve `POST /v1/chatserve/keys`: the reply is the only one that has the secret."""
    services = _services(request)
    new = await take_whole_body(request, NewKey)
    key = ApiKey(
        "",
        new.tenant,
        new.user,
        Role(new.role),
        label=new.label,
        expires_at=new.expires_at,
        quotas=_quotas(new.quotas),
    )
    issued = await services.store.api_keys.add(key)
    return _issued(issued)


async def get_key(request: Request) -> Response:
    """Serve `GET /v1/chatserve/keys/{id}`, without the secret, which nobody knows."""
    key = await _known_key(_services(request), request.path_params["key_id"])
    return json_response(_key_object(key))


async def update_key(request: Request) -> Response:
    """Serve `POST /v1/chatserve/keys/{id}`: what the body names is replaced, at once."""
    services, key_id = _services(request), request.path_params["key_id"]
    fields = await take_whole_body(request, KeyFields)
    change = KeyChange(
        role=Role(fields.role) if fields.role is not None else None,
        label=fields.label,
        expires_at=fields.expires_at,
        quotas=_quotas(fields.quotas) if fields.quotas is not None else None,
    )
    key = await services.store.api_keys.update(key_id, change)
    if key is None:
        raise _no_key(key_id)
    return json_response(_key_object(key))


async def rotate_key(request: Request) -> Response:
    """Serve `POST /v1/chatserve/keys/{id}/rotate`: another secret, for `grace_s` both."""
    services, key_id = _services(request), request.path_params["key_id"]
    rotation = await take_whole_body(request, Rotation)
    issued = await services.store.api_keys.rotate(key_id, rotation.grace_s)
    if issued is None:
        raise _no_key(key_id)
    return _issued(issued)


async def revoke_key(request: Request) -> Response:
    """Serve `DELETE /v1/chatserve/keys/{id}`."""
    services, key_id = _services(request), request.path_params["key_id"]
    if not await services.store.api_keys.revoke(key_id):
        raise _no_key(key_id)
    return json_response({"object": "chatserve.key.deleted", "id": key_id, "deleted": True})


def _services(request: Request, *parameters: str) -> Services:
    """Return the services for an operator whose query has no other parameters than these.

    Nobody else gets any further.
    """
    require_operator(request)
    check_names(request, *parameters)
    services: Services = request.app.state.services
    return services


async def _known_key(services: Services, key_id: str) -> ApiKey:
    key = await services.store.api_keys.get(key_id)
    if key is None:
        raise _no_key(key_id)
    return key


def _quotas(fields: QuotaFields | None) -> Quotas:
    return Quotas(**fields.named()) if fields is not None else NO_QUOTAS


def _issued(issued: IssuedKey) -> Response:
    return json_response({**_key_object(issued.key), "secret": issued.secret})


def _tenant_object(tenant: Tenant) -> dict[str, Any]:
    return {
        "object": "chatserve.tenant",
        "name": tenant.name,
        "created_at": tenant.created_at,
        "quotas": tenant.quotas.to_dict(),
        "models": list(tenant.models),
        "is_being_removed": tenant.is_closed,
    }


def _key_object(key: ApiKey) -> dict[str, Any]:
    return {
        "object": "chatserve.key",
        "id": key.key_id,
        "tenant": key.tenant,
        "user": key.user,
        "role": key.role.value,
        "label": key.label,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "old_secret_until": key.old_secret_until,
        "quotas": key.quotas.to_dict(),
    }


def _no_tenant(name: str) -> NotFound:
    return NotFound(f"there is no tenant {describe(name)}", code=ErrorCode.TENANT_NOT_FOUND)


def _no_key(key_id: str) -> NotFound:
    return NotFound(f"there is no key {describe(key_id)}", code=ErrorCode.KEY_NOT_FOUND)


OPERATIONS = (
    Operation("GET", "/v1/chatserve/tenants", "List tenants by name", query=(LIMIT, text("after"))),
    Operation("POST", "/v1/chatserve/tenants", "Add a tenant", body=NewTenant, errors=(409,)),
    Operation("GET", _TENANT, "Read a tenant"),
    Operation("POST", _TENANT, "Replace what the body names of a tenant", body=TenantChange),
    Operation("DELETE", _TENANT, "Remove a tenant", errors=(409,)),
    Operation(
        "GET",
        "/v1/chatserve/keys",
        "List keys",
        query=(LIMIT, text("after"), text("tenant")),
        errors=(404,),
    ),
    Operation("POST", "/v1/chatserve/keys", "Issue a key", body=NewKey, errors=(404, 409)),
    Operation("GET", _KEY, "Read a key, without its secret"),
    Operation("POST", _KEY, "Replace what the body names of a key", body=KeyFields),
    Operation("DELETE", _KEY, "Revoke a key", errors=(409,)),
    Operation(
        "POST",
        f"{_KEY}/rotate",
        "Give a key another secret",
        body=Rotation,
        errors=(409,),
    ),
)
