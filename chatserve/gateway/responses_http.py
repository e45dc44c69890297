"""The Responses protocol over HTTP: create, read, follow, cancel, delete.

Owns the way from requests to the same answers and events that the socket has. A create and a stream
are ASGI applications, since they must notice that their client leaves; the rest reply at once.

What a client is told about a response is the same whether it never was, is gone, or is another's.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from chatserve.engine.api import RequestId
from chatserve.error_codes import ErrorCode
from chatserve.errors import (
    ClientError,
    InvalidRequest,
    NotFound,
    StoreError,
    TooManyInFlight,
)
from chatserve.gateway.access import while_access_lasts
from chatserve.gateway.creating import answer_to
from chatserve.gateway.disconnect import until_disconnect
from chatserve.gateway.generation import Answer
from chatserve.gateway.history import find_response, input_page, no_response
from chatserve.gateway.identity import identity_of
from chatserve.gateway.ids import id_of_event, new_id
from chatserve.gateway.operations import LIMIT, ORDER, Header, Operation, Query, flag, text
from chatserve.gateway.paging import PageQuery, page_object
from chatserve.gateway.query import flag_of
from chatserve.gateway.rate_limits import limit_headers
from chatserve.gateway.replies import (
    as_client_error,
    ignored_header,
    json_response,
    read_body,
)
from chatserve.gateway.response_events import Event, events_of, response_object
from chatserve.gateway.responses import Order
from chatserve.gateway.services import Services
from chatserve.gateway.sse import Write, event_frame, send_events
from chatserve.identity import Owner
from chatserve.protocol.body import printable_names
from chatserve.protocol.conversation_objects import item_content
from chatserve.protocol.errors import answer_failed, describe, error_frame, responses_error_object
from chatserve.protocol.events import item_status
from chatserve.protocol.responses import ResponseFields, ResponseRequest, parse_response_request
from chatserve.store.responses import ResponseRecord
from chatserve.store.sessions import Message

_MAX_KEY_CHARS = 256
_MAX_DIGITS = 9

# How long a cancel is waited for. Its worker ends the answer within one turn of its event loop.
_CANCEL_WAIT_S = 2.0

_PATH = "/v1/responses/{response_id}"
_MAX_STREAMS = 64
"""How many streams of GET a user may have open at one gateway."""

_UPDATES = Header(
    "x-chatserve-updates",
    "With any value, a stream also has the events without a number: the place in the queue, how far"
    " the prompt is read, and the loss of a worker.",
)
"""Not for everybody: the `openai` package takes every event for one that is numbered, and would
fail."""

_KEY = Header(
    "Idempotency-Key",
    "The same body under the same key is answered once; again, it replays the answer.",
    {"type": "string", "minLength": 1, "maxLength": _MAX_KEY_CHARS},
)

_STREAM_PARAMS = ("stream", "starting_after", "include_obfuscation", "include", "include[]")


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [
        Route("/v1/responses", CreateResponse(), methods=["POST"]),
        Route(_PATH, delete_response, methods=["DELETE"]),
        Route(_PATH, GetResponse(), methods=["GET"]),
        Route(f"{_PATH}/cancel", cancel_response, methods=["POST"]),
        Route(f"{_PATH}/input_items", list_input_items, methods=["GET"]),
    ]


class CreateResponse:
    """`POST /v1/responses`, as an ASGI application.

    Owns: nothing.
    Used from: the event loop.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        services: Services = request.app.state.services
        raw = await read_body(request, services.config.max_message_bytes)
        order = _order(request, parse_response_request(raw))
        async with answer_to(services, order) as answer:
            headers = _headers(order, answer)
            if order.request.stream:
                await send_events(receive, send, partial(_stream, request, answer, -1), headers)
                return
            if order.request.fields.background:
                response = await response_object(services.store, answer.record)
                reply: Response | None = json_response(response, headers=headers)
            else:
                async with while_access_lasts(request):
                    reply = await until_disconnect(receive, _whole(services, answer, headers))
        if reply is not None:
            await reply(scope, receive, send)


class GetResponse:
    """`GET /v1/responses/{id}`, as an ASGI application: the object, or its events.

    A stream costs as much as a WebSocket and counts as one.

    Owns: how many streams each user has open here.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._num_streams: Counter[Owner] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        services: Services = request.app.state.services
        _refuse_additions(request)
        record = await _find(request)
        unknown = [name for name in request.query_params if name not in _STREAM_PARAMS]
        headers = ignored_header(printable_names(unknown))
        after = _starting_after(request)
        if after is None:
            response = await response_object(services.store, record)
            await json_response(response, headers=headers)(scope, receive, send)
            return
        identity = identity_of(request)
        async with (
            self._counted(identity.owner),
            services.connection_counts.counted(identity),
            services.generations.resume(record) as answer,
        ):
            await send_events(receive, send, partial(_stream, request, answer, after), headers)

    @asynccontextmanager
    async def _counted(self, owner: Owner) -> AsyncIterator[None]:
        if self._num_streams[owner] >= _MAX_STREAMS:
            raise TooManyInFlight(
                f"{_MAX_STREAMS} streams are open, which is the limit",
                code=ErrorCode.TOO_MANY_STREAMS,
            )
        self._num_streams[owner] += 1
        try:
            yield
        finally:
            self._num_streams[owner] -= 1
            if not self._num_streams[owner]:
                del self._num_streams[owner]


async def cancel_response(request: Request) -> Response:
    """Serve `POST /v1/responses/{id}/cancel`: end an answer; one that has ended stays as it is."""
    services: Services = request.app.state.services
    record = await _find(request)
    if record.outcome is None:
        await services.generations.cancel(record.response_id)
        await _await_end(services, record)
    return json_response(await response_object(services.store, await _find(request)))


async def delete_response(request: Request) -> Response:
    """Serve `DELETE /v1/responses/{id}`: forget a response, and cancel it if it is in flight."""
    services: Services = request.app.state.services
    record = await _find(request)
    # In this order the log of one in flight stays until its readers have its last event.
    await services.store.responses.delete(record.response_id)
    if record.outcome is None:
        await services.generations.cancel(record.response_id)
    return json_response({"id": record.response_id, "object": "response.deleted", "deleted": True})


async def list_input_items(request: Request) -> Response:
    """Serve `GET /v1/responses/{id}/input_items`: the conversation that a response answers."""
    services: Services = request.app.state.services
    record = await _find(request)
    messages, has_more = await input_page(services, record, PageQuery.of(request))
    items = [_item(message) for message in messages]
    return json_response(page_object(items, has_more=has_more))


def _order(request: Request, body: ResponseRequest) -> Order:
    identity = identity_of(request)
    key = request.headers.get(_KEY.name)
    if key is not None and not 0 < len(key) <= _MAX_KEY_CHARS:
        raise InvalidRequest(
            f"{_KEY.name}: must have 1 to {_MAX_KEY_CHARS} characters, received {len(key)}",
            param=_KEY.name,
        )
    response_id = (
        new_id("resp_", identity.tenant) if key is None else id_of_event("resp_", identity, key, "")
    )
    return Order(
        body, RequestId(response_id), identity, is_repeatable=key is not None, is_http=True
    )


def _headers(order: Order, answer: Answer) -> dict[str, str]:
    limits = limit_headers(answer.place.allowances) if answer.place else {}
    return {
        "x-request-id": order.response_id,
        **limits,
        **ignored_header(order.request.ignored),
    }


async def _stream(request: Request, answer: Answer, after: int, write: Write) -> None:
    """Write the frames of a stream; an error after the start is an event, and the last one."""

    async def send(event: Event) -> None:
        await write(event_frame(event))

    services: Services = request.app.state.services
    wants_updates = request.headers.get(_UPDATES.name) is not None
    telling = services.updates.telling(answer, after, send) if wants_updates else _silence()
    try:
        async with (
            while_access_lasts(request),
            aclosing(events_of(services.store, answer, after)) as events,
        ):
            with telling as hear:
                async for event in events:
                    await send(event)
                    hear(event)
    except (ClientError, StoreError) as error:
        await send(error_frame(as_client_error(error)))


@contextmanager
def _silence() -> Iterator[Callable[[Event], None]]:
    """Tell nothing between the events."""
    yield lambda _event: None


async def _whole(services: Services, answer: Answer, headers: dict[str, str]) -> Response:
    """Read an answer to its end, and return the reply with its response, or with its error."""
    response: Event = {}
    async with aclosing(events_of(services.store, answer)) as events:
        async for event in events:
            response = event.get("response", response)
    if response["error"] is None:
        return json_response(response, headers=headers)
    error = response["error"]
    failed = answer_failed(error["message"], error["chatserve:code"])
    body = {"error": responses_error_object(failed)}
    return json_response(body, status=failed.status, headers=headers)


async def _await_end(services: Services, record: ResponseRecord) -> None:
    """Return when an answer has ended, or when that takes too long."""
    with suppress(TimeoutError, NotFound):
        async with (
            asyncio.timeout(_CANCEL_WAIT_S),
            services.generations.resume(record) as answer,
        ):
            async for _ in answer.entries:
                pass


async def _find(request: Request) -> ResponseRecord:
    """Return the response of the path, or raise NotFound."""
    services: Services = request.app.state.services
    response_id: str = request.path_params["response_id"]
    record = await find_response(services.store, response_id, identity_of(request))
    if record is None:
        raise no_response(response_id)
    return record


def _starting_after(request: Request) -> int | None:
    """Return the event after which a stream shall begin, None where no stream is asked for."""
    is_stream = flag_of(request, "stream")
    text = request.query_params.get("starting_after")
    if text is None:
        return -1 if is_stream else None
    if not is_stream:
        raise InvalidRequest("starting_after: only a stream has events", param="starting_after")
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise InvalidRequest(
            f"starting_after: must be the number of an event, received {describe(text)}",
            param="starting_after",
        )
    return int(text)


def _refuse_additions(request: Request) -> None:
    """Refuse what would add to a response, as in the body of a create."""
    if flag_of(request, "include_obfuscation"):
        raise InvalidRequest(
            "include_obfuscation: obfuscation is not served",
            code=ErrorCode.UNSUPPORTED,
            param="include_obfuscation",
        )
    if any(name in request.query_params for name in ("include", "include[]")):
        raise InvalidRequest(
            "include: there is nothing to include", code=ErrorCode.UNSUPPORTED, param="include"
        )


def _item(message: Message) -> dict[str, Any]:
    outcome = message.outcome
    return {
        "id": message.message_id,
        "type": "message",
        "role": message.role,
        "status": "completed" if outcome is None else item_status(outcome),
        "content": item_content(message.role, message.content),
    }


OPERATIONS = (
    Operation(
        "POST",
        "/v1/responses",
        "Ask for an answer",
        body=ResponseFields,
        headers=(_KEY, _UPDATES),
        errors=(404, 409, 500, 504),
    ),
    Operation(
        "GET",
        _PATH,
        "Read a response, or its events",
        query=(
            flag("stream"),
            Query("starting_after", {"type": "integer", "minimum": 0}),
            flag("include_obfuscation"),
        ),
        headers=(_UPDATES,),
    ),
    Operation("DELETE", _PATH, "Forget a response, and stop it"),
    Operation("POST", f"{_PATH}/cancel", "Stop a response"),
    Operation(
        "GET",
        f"{_PATH}/input_items",
        "List the conversation that a response answers",
        query=(LIMIT, ORDER, text("after")),
    ),
)
