"""`POST /v1/completions`: a text or token ids in, their continuation out.

Owns the way from the body to a prompt. The rest is common to both completion surfaces and stands
in `completion_reply.py`.
"""

import time

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from chatserve.gateway.completion_reply import Completion, reply_to_completion
from chatserve.gateway.identity import identity_of
from chatserve.gateway.model_list import find_plain_model
from chatserve.gateway.models import ServedModel
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import read_body
from chatserve.gateway.services import Services
from chatserve.protocol.completion_answers import TextShape
from chatserve.protocol.completions import DEFAULT_MAX_TOKENS, parse_completion_request


class Completions:
    """The endpoint, as an ASGI application.

    Owns: nothing.
    Used from: the event loop.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started_at = time.perf_counter()
        request = Request(scope, receive)
        services: Services = request.app.state.services
        body = parse_completion_request(await read_body(request, services.config.max_message_bytes))
        identity = identity_of(request)
        model = await find_plain_model(services, identity, body.reply.model)
        await services.quotas.check_requests(identity, body.reply.n)
        completion = Completion(
            identity=identity,
            model=model,
            prompt_token_ids=await _token_ids(model, body.prompt, identity.tenant),
            prompt_param="prompt",
            sampling=body.sampling,
            queue=body.queue,
            reply=body.reply,
            shape=TextShape(),
            id_prefix="cmpl-",
            ignored=body.ignored,
            started_at=started_at,
            default_max_tokens=DEFAULT_MAX_TOKENS,
        )
        await reply_to_completion(services, completion, scope, receive, send)


async def _token_ids(model: ServedModel, prompt: str | list[int], tenant: str) -> tuple[int, ...]:
    if isinstance(prompt, str):
        return await model.text_token_ids(prompt, tenant=tenant, param="prompt")
    return tuple(prompt)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/completions",
        "Go on with a text",
        body={
            "type": "object",
            "required": ["model", "prompt"],
            "properties": {"model": {"type": "string"}, "prompt": {}},
        },
        errors=(404, 409, 500, 504),
    ),
)
