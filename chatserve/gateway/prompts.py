"""The endpoints of registered prompts: operators change those of any tenant, members read theirs.

Owns the way between the registry and the wire, and who may see what. For a member, the prompts of
other tenants and the preamble are not there: the answer is the one for a prompt that does not
exist.
"""

from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import NotFound
from chatserve.gateway.identity import identity_of, require_operator
from chatserve.gateway.operations import Operation, flag, text
from chatserve.gateway.prompt_objects import prompt_object
from chatserve.gateway.query import check_names, flag_of
from chatserve.gateway.replies import json_response, take_whole_body
from chatserve.gateway.services import Services
from chatserve.protocol.errors import describe
from chatserve.protocol.prompts import (
    ActiveVersion,
    NewPrompt,
    PromptChange,
    PromptDeleted,
    PromptList,
    PromptObject,
)
from chatserve.store.named_prompt import (
    PREAMBLE_NAME,
    PUBLIC_TENANT,
    NamedPrompt,
    parse_version,
)
from chatserve.store.prompt_reports import PromptReport, read_reports

_ALL = "/v1/chatserve/prompts"
_ONE = f"{_ALL}/{{name}}"

_OWNER = ("tenant", "public")
"""The parameters that say whose prompt is meant."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The prompt that a path and its query name, and perhaps a version of it."""

    tenant: str
    name: str
    version: str | None

    @property
    def number(self) -> int:
        """The version that is named, if one is; no version has the number 0."""
        return parse_version(self.version or "") or 0

    def missing(self) -> NotFound:
        in_version = f" in version {describe(self.version)}" if self.version is not None else ""
        return NotFound(
            f"there is no prompt {describe(self.name)}{in_version}",
            code=ErrorCode.PROMPT_NOT_FOUND,
            param="name",
        )


async def list_prompts(request: Request) -> Response:
    """Serve `GET /v1/chatserve/prompts`: a tenant's, or for an operator by default everybody's."""
    check_names(request, *_OWNER)
    services: Services = request.app.state.services
    identity = identity_of(request)
    named = PUBLIC_TENANT if flag_of(request, "public") else request.query_params.get("tenant")
    found: list[NamedPrompt] = []
    if identity.is_operator and named is None:
        found = services.prompts.all()
    elif identity.is_operator or named in (None, identity.tenant):
        found = services.prompts.of_tenant(identity.tenant if named is None else named)
    if not found and identity.is_operator and named not in (None, identity.tenant, PUBLIC_TENANT):
        await _check_tenant(services, named)
    objects = [
        prompt_object(report, for_operator=identity.is_operator)
        for report in await read_reports(services.store, found)
    ]
    return json_response(PromptList(object="list", data=objects).to_wire())


async def _check_tenant(services: Services, name: str) -> None:
    if await services.store.tenants.get(name) is None:
        message = f"there is no tenant {describe(name)}"
        raise NotFound(message, code=ErrorCode.TENANT_NOT_FOUND, param="tenant")


async def add_prompt(request: Request) -> Response:
    """Serve `POST /v1/chatserve/prompts`."""
    identity = require_operator(request)
    check_names(request)
    services: Services = request.app.state.services
    new = await take_whole_body(request, NewPrompt)
    tenant = PUBLIC_TENANT if new.is_public else new.tenant or identity.tenant
    prompt = NamedPrompt(
        tenant,
        new.name or (PREAMBLE_NAME if new.is_public else ""),
        new.text,
        new.is_pinned,
        priority=new.priority,
        ttl_s=new.ttl_s,
        defaults=new.variables,
    )
    return await _changed(services, await services.store.prompts.add(prompt))


async def get_prompt(request: Request) -> Response:
    """Serve `GET /v1/chatserve/prompts/{name}`, with `version` one that may be an older one."""
    check_names(request, *_OWNER, "version")
    services: Services = request.app.state.services
    target = _target(request)
    current = await _current(services, target)
    if target.version is None or target.number == current.version:
        (report,) = await read_reports(services.store, [current])
    else:
        older = await services.store.prompts.get(target.tenant, target.name, target.number)
        if older is None:
            raise target.missing()
        report = PromptReport(current.in_version(older), ())
    shown = prompt_object(
        report,
        for_operator=identity_of(request).is_operator,
        is_current=report.prompt is current,
    )
    return json_response({**shown.to_wire(), "text": report.prompt.text})


async def list_versions(request: Request) -> Response:
    """Serve `GET /v1/chatserve/prompts/{name}/versions`: those that are kept, the oldest first."""
    check_names(request, *_OWNER)
    services: Services = request.app.state.services
    current = await _current(services, _target(request))
    objects = [
        prompt_object(
            PromptReport(current.in_version(each), ()), is_current=each.version == current.version
        )
        for each in await services.store.prompts.versions(current.tenant, current.name)
    ]
    return json_response(PromptList(object="list", data=objects).to_wire())


async def change_prompt(request: Request) -> Response:
    """Serve `POST /v1/chatserve/prompts/{name}`: how it is kept, not what it says."""
    require_operator(request)
    check_names(request, *_OWNER)
    services: Services = request.app.state.services
    change = await take_whole_body(request, PromptChange)
    target = _target(request)
    changed = await services.store.prompts.configure(
        target.tenant,
        target.name,
        is_pinned=change.is_pinned,
        priority=change.priority,
        ttl_s=change.ttl_s,
    )
    if changed is None:
        raise target.missing()
    return await _changed(services, changed)


async def activate_version(request: Request) -> Response:
    """Serve `POST /v1/chatserve/prompts/{name}/activate`."""
    require_operator(request)
    check_names(request, *_OWNER)
    services: Services = request.app.state.services
    wanted = await take_whole_body(request, ActiveVersion)
    target = replace(_target(request), version=str(wanted.version))
    changed = await services.store.prompts.activate(target.tenant, target.name, wanted.version)
    if changed is None:
        raise target.missing()
    return await _changed(services, changed)


async def delete_prompt(request: Request) -> Response:
    """Serve `DELETE /v1/chatserve/prompts/{name}`, with `version` only that one."""
    require_operator(request)
    check_names(request, *_OWNER, "version")
    services: Services = request.app.state.services
    target, prompts = _target(request), services.store.prompts
    if target.version is None:
        is_removed = await prompts.remove(target.tenant, target.name)
    else:
        is_removed = await prompts.remove_version(target.tenant, target.name, target.number)
    if not is_removed:
        raise target.missing()
    await services.prompts.reload()
    deleted = PromptDeleted(
        object="chatserve.prompt.deleted",
        name=target.name,
        version=target.number or None,
        deleted=True,
    )
    return json_response(deleted.to_wire())


def _target(request: Request) -> _Target:
    """Return the prompt that a request is about, or raise NotFound where it is not to be seen."""
    identity, query = identity_of(request), request.query_params
    tenant = query.get("tenant", identity.tenant)
    if flag_of(request, "public"):
        tenant = PUBLIC_TENANT
    target = _Target(tenant, request.path_params["name"], query.get("version"))
    if tenant != identity.tenant and not identity.is_operator:
        raise target.missing()
    return target


async def _current(services: Services, target: _Target) -> NamedPrompt:
    current = await services.store.prompts.get(target.tenant, target.name)
    if current is None:
        raise target.missing()
    return current


async def _changed(services: Services, prompt: NamedPrompt) -> Response:
    """Reply with a prompt that was changed, once this gateway itself knows of it."""
    await services.prompts.reload()
    (report,) = await read_reports(services.store, [prompt])
    changed = prompt_object(report, for_operator=True)
    return json_response({**changed.to_wire(), "text": prompt.text})


_WHOSE = (text("tenant"), flag("public"))
_WHICH = (*_WHOSE, text("version"))

OPERATIONS = (
    Operation(
        "GET", _ALL, "List registered prompts", query=_WHOSE, reply=PromptList, errors=(404,)
    ),
    Operation(
        "POST",
        _ALL,
        "Register a prompt, or a new version of one",
        body=NewPrompt,
        reply=PromptObject,
        errors=(409,),
    ),
    Operation("GET", _ONE, "Read a registered prompt", query=_WHICH, reply=PromptObject),
    Operation(
        "POST",
        _ONE,
        "Say how a registered prompt is kept",
        body=PromptChange,
        query=_WHOSE,
        reply=PromptObject,
        errors=(409,),
    ),
    Operation(
        "DELETE",
        _ONE,
        "Remove a registered prompt, or an old version of it",
        query=_WHICH,
        reply=PromptDeleted,
        errors=(409,),
    ),
    Operation(
        "GET",
        f"{_ONE}/versions",
        "List the versions of a registered prompt",
        query=_WHOSE,
        reply=PromptList,
    ),
    Operation(
        "POST",
        f"{_ONE}/activate",
        "Make a version of a registered prompt the current one",
        body=ActiveVersion,
        query=_WHOSE,
        reply=PromptObject,
        errors=(409,),
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route(_ALL, list_prompts, methods=["GET"]),
        Route(_ALL, add_prompt, methods=["POST"]),
        Route(_ONE, get_prompt, methods=["GET"]),
        Route(_ONE, change_prompt, methods=["POST"]),
        Route(_ONE, delete_prompt, methods=["DELETE"]),
        Route(f"{_ONE}/versions", list_versions, methods=["GET"]),
        Route(f"{_ONE}/activate", activate_version, methods=["POST"]),
    ]
