"""The models that a tenant may ask for, its personas among them, and the endpoints that list them.

Owns what the name of a model means to whom: a model that is served and that the tenant may use, or
such a model and a persona, as `model:persona`. To a tenant, everything else is not there. Which
models are served is the business of `models.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.gateway.identity import identity_of
from chatserve.gateway.models import ServedModel
from chatserve.gateway.operations import Operation
from chatserve.gateway.personas import alias_names, persona_text
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.errors import describe
from chatserve.protocol.model_objects import ModelList, ModelObject
from chatserve.protocol.sampling_description import sampling_fields_of
from chatserve.store.tenants import Tenant
from chatserve.text.chat_template import ChatMessage
from chatserve.text.system_prompt import with_system_text


@dataclass(frozen=True, slots=True)
class AskedModel:
    """What a request named as its model; `persona_text` is what the named persona stands for."""

    served: ServedModel
    persona: str | None = None
    persona_text: str | None = None

    def messages(self, said: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return a conversation with the persona's text in front of its system message."""
        return with_system_text(said, self.persona_text)


def routes() -> list[BaseRoute]:
    """Return the paths of the list of models."""
    return [
        Route("/v1/models", list_models),
        Route("/v1/models/{model:path}", get_model),
    ]


async def find_model(services: Services, identity: Identity, name: str) -> AskedModel:
    """Return what a caller asks for by a model's name, or by an alias.

    Raises:
        NotFound: No worker serves it, the tenant may not use it, or has no such persona.
        InvalidRequest: The persona has a variable without a default.
        Unavailable: No worker lives at all.
    """
    tenant = await services.directory.tenant(identity.tenant)
    found = _find(services, tenant, name)
    if found is None:
        await services.models.refresh()
        found = _find(services, tenant, name)
    if found is None:
        raise services.models.refusal(name, usable_models(services, tenant))
    return found


async def find_plain_model(services: Services, identity: Identity, name: str) -> ServedModel:
    """Return a model for what has no system message, and so no place for a persona.

    Raises:
        ClientError: It is an alias, or `find_model` raises.
    """
    asked = await find_model(services, identity, name)
    if asked.persona is not None:
        raise InvalidRequest(
            f"model: {describe(name)} has a system prompt, which a raw completion has no place "
            f"for; ask for {describe(asked.served.card.name)}, or on /v1/chat/completions",
            code=ErrorCode.UNSUPPORTED,
            param="model",
        )
    return asked.served


def usable_models(services: Services, tenant: Tenant) -> list[ServedModel]:
    """Return the models that live workers serve and a tenant may use, by name."""
    return [model for model in services.models.live if tenant.may_use(model.card.name)]


async def list_models(request: Request) -> Response:
    """Serve `GET /v1/models`: each model, and after it its aliases."""
    services: Services = request.app.state.services
    tenant = await services.directory.tenant(identity_of(request).tenant)
    personas = alias_names(services.prompts, tenant.name)
    objects = [
        _model_object(model, persona)
        for model in usable_models(services, tenant)
        for persona in (None, *personas)
    ]
    return json_response(ModelList(data=objects).model_dump(by_alias=True))


async def get_model(request: Request) -> Response:
    """Serve `GET /v1/models/{model}`, or raise NotFound."""
    services: Services = request.app.state.services
    name: str = request.path_params["model"]
    found = await find_model(services, identity_of(request), name)
    return json_response(_model_object(found.served, found.persona).model_dump(by_alias=True))


def _find(services: Services, tenant: Tenant, name: str) -> AskedModel | None:
    """Return what a name means; a model's own name comes before an alias that reads the same."""
    usable = {model.card.name: model for model in usable_models(services, tenant)}
    if name in usable:
        return AskedModel(usable[name])
    # There is no colon in the name of a persona, while there may be one in a model's.
    base, _, persona = name.rpartition(":")
    if base not in usable:
        return None
    text = persona_text(services.prompts, tenant.name, persona)
    return None if text is None else AskedModel(usable[base], persona, text)


def _model_object(model: ServedModel, persona: str | None) -> ModelObject:
    name = model.card.name
    return ModelObject(
        id=name if persona is None else f"{name}:{persona}",
        created=model.loaded_at,
        max_model_len=model.card.max_model_len,
        base_model=name,
        persona=persona,
        sampling=sampling_fields_of(model.card),
    )


OPERATIONS = (
    Operation("GET", "/v1/models", "List the models that can be asked", reply=ModelList),
    Operation("GET", "/v1/models/{model:path}", "Read a model", reply=ModelObject, errors=(400,)),
)
