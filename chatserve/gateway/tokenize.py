"""`POST /tokenize` and `POST /detokenize`: what a model makes of a text, without an answer.

Owns the two endpoints. A chat is tokenised as it would be for its answer, with the preamble and the
persona that a model's alias names, so that its count is the prompt's length. Either counts as
one of a caller's requests.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.gateway.admission import check_ids
from chatserve.gateway.identity import identity_of
from chatserve.gateway.model_list import find_model, find_plain_model
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import ignored_header, json_response, read_body
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.tokenize import (
    Detokenized,
    DetokenizeFields,
    Tokenized,
    TokenizeFields,
    parse_detokenize_request,
    parse_tokenize_request,
)
from chatserve.text.chat_template import ChatMessage


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route("/tokenize", tokenize, methods=["POST"]),
        Route("/detokenize", detokenize, methods=["POST"]),
    ]


async def tokenize(request: Request) -> Response:
    """Serve `POST /tokenize`."""
    services: Services = request.app.state.services
    identity = identity_of(request)
    body = parse_tokenize_request(await read_body(request, services.config.max_message_bytes))
    await services.quotas.take_request(identity)
    name = body.model or await _only_model(services, identity)
    if body.prompt is not None:
        model = await find_plain_model(services, identity, name)
        token_ids = await model.text_token_ids(body.prompt, tenant=identity.tenant, param="prompt")
    else:
        asked = await find_model(services, identity, name)
        model = asked.served
        said = [ChatMessage(message.role, message.text) for message in body.messages]
        messages = services.preamble.before(asked.messages(said))
        token_ids = await model.chat_token_ids(messages, tenant=identity.tenant, param="messages")
    reply = Tokenized(
        count=len(token_ids), max_model_len=model.card.max_model_len, tokens=list(token_ids)
    )
    return json_response(reply.model_dump(), headers=ignored_header(body.ignored))


async def detokenize(request: Request) -> Response:
    """Serve `POST /detokenize`: control tokens are written out, broken characters replaced."""
    services: Services = request.app.state.services
    raw = await read_body(request, services.config.max_message_bytes)
    fields, ignored = parse_detokenize_request(raw)
    identity = identity_of(request)
    await services.quotas.take_request(identity)
    name = fields.model or await _only_model(services, identity)
    model = await find_plain_model(services, identity, name)
    check_ids(fields.tokens, model.card, param="tokens")
    reply = Detokenized(prompt=await model.text_of(fields.tokens, tenant=identity.tenant))
    return json_response(reply.model_dump(), headers=ignored_header(ignored))


async def _only_model(services: Services, identity: Identity) -> str:
    """Return the one model that a caller may use, for a request that names none.

    Raises:
        InvalidRequest: There are several, or none for this caller.
        Unavailable: No worker lives at all.
    """
    if not services.models.live:
        await services.models.refresh()
    if not services.models.beats:
        raise services.models.no_worker()
    tenant = await services.directory.tenant(identity.tenant)
    live = [model.card.name for model in services.models.live]
    usable = [name for name in live if tenant.may_use(name)]
    if len(usable) != 1:
        raise InvalidRequest(
            "model is required where not exactly one is served; served: "
            f"{', '.join(usable) or 'none'}",
            code=ErrorCode.MISSING,
            param="model",
        )
    return usable[0]


OPERATIONS = (
    Operation(
        "POST",
        "/tokenize",
        "Tell the tokens of a text or a chat",
        body=TokenizeFields,
        reply=Tokenized,
        errors=(404,),
    ),
    Operation(
        "POST",
        "/detokenize",
        "Tell the text of tokens",
        body=DetokenizeFields,
        reply=Detokenized,
        errors=(404,),
    ),
)
