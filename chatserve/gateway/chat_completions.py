"""`POST /v1/chat/completions`: a conversation in, an answer out, plain or streamed.

Owns the way from the body to a prompt. The rest is common to both completion surfaces and stands
in `completion_reply.py`.
"""

import time

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from chatserve.gateway.completion_reply import Completion, reply_to_completion
from chatserve.gateway.identity import identity_of
from chatserve.gateway.model_list import find_model
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import read_body
from chatserve.gateway.services import Services
from chatserve.protocol.chat import parse_chat_request
from chatserve.protocol.completion_answers import ChatShape
from chatserve.text.chat_template import ChatMessage


class ChatCompletions:
    """The endpoint, as an ASGI application.

    Owns: nothing.
    Used from: the event loop.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started_at = time.perf_counter()
        request = Request(scope, receive)
        services: Services = request.app.state.services
        body = parse_chat_request(await read_body(request, services.config.max_message_bytes))
        identity = identity_of(request)
        asked = await find_model(services, identity, body.reply.model)
        await services.quotas.check_requests(identity, body.reply.n)
        said = [ChatMessage(message.role, message.text) for message in body.messages]
        messages = services.preamble.before(asked.messages(said))
        prompt = await asked.served.chat_token_ids(
            messages, tenant=identity.tenant, param="messages"
        )
        completion = Completion(
            identity=identity,
            model=asked.served,
            prompt_token_ids=prompt,
            prompt_param="messages",
            sampling=body.sampling,
            queue=body.queue,
            reply=body.reply,
            shape=ChatShape(),
            id_prefix="chatcmpl-",
            ignored=body.ignored,
            started_at=started_at,
            default_max_tokens=await services.quotas.default_max_tokens(identity, len(prompt)),
        )
        await reply_to_completion(services, completion, scope, receive, send)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/chat/completions",
        "Answer a conversation that the body holds",
        body={
            "type": "object",
            "required": ["model", "messages"],
            "properties": {
                "model": {"type": "string"},
                "messages": {"type": "array", "items": {"type": "object"}, "minItems": 1},
            },
        },
        errors=(404, 409, 500, 504),
    ),
)
