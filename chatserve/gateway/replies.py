"""HTTP bodies in and out: bounded reading, JSON replies, errors in OpenAI's shape.

Owns what every endpoint does alike. Knows no endpoint.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from chatserve.error_codes import ErrorCode
from chatserve.errors import (
    AnswerFailed,
    BodyTimeout,
    ClientError,
    InvalidRequest,
    NotFound,
    StoreError,
    StoreFault,
    TooLarge,
    Unavailable,
)
from chatserve.gateway.body_budget import BodyBudget
from chatserve.protocol.body import Body, parse_object
from chatserve.protocol.errors import error_body, responses_error_object

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)

IGNORED_HEADER = "x-chatserve-ignored"

BODY_TIMEOUT_S = 30.0


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the whole body.

    Raises:
        TooLarge: Without having read more than the limit.
        BodyTimeout: It does not arrive in time; a peer that sends a byte now and then holds no
            connection for ever.
        Unavailable: The bodies of all requests together are too large.
    """
    bodies: BodyBudget = request.app.state.services.bodies
    try:
        with bodies.reading() as take:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await _read_body(request, max_bytes, take)
    except TimeoutError:
        raise BodyTimeout(
            f"the body did not arrive within {BODY_TIMEOUT_S:g} s", code=ErrorCode.BODY_TIMEOUT
        ) from None
    await bodies.turn(len(body))
    return body


async def read_object(request: Request) -> Body:
    """Return the JSON object of a body; an absent one is empty."""
    limit: int = request.app.state.services.config.max_message_bytes
    return Body(parse_object(await read_body(request, limit) or b"{}"))


async def take_body(request: Request, model: type[M]) -> tuple[M, tuple[str, ...]]:
    """Return the fields of a body, an absent one being empty, and the names that nobody knew."""
    body = await read_object(request)
    return body.take(model), body.ignored()


async def take_whole_body(request: Request, model: type[M]) -> M:
    """Return the fields of an operator's body, an absent one being empty.

    Raises:
        InvalidRequest: A field is wrong, or nobody knows its name: what was meant by a misspelt
            one would be left out, a limit for instance.
    """
    return (await read_object(request)).take_whole(model)


async def _read_body(request: Request, max_bytes: int, take: Callable[[int], None]) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit() and int(declared) > max_bytes:
        raise _too_large(int(declared), max_bytes)
    body = bytearray()
    async for piece in request.stream():
        take(len(piece))
        body += piece
        if len(body) > max_bytes:
            raise _too_large(len(body), max_bytes)
    return bytes(body)


def _too_large(received: int, max_bytes: int) -> TooLarge:
    return TooLarge(
        f"the body has {received} bytes or more, the limit is {max_bytes}",
        code=ErrorCode.BODY_TOO_LARGE,
    )


def json_response(
    value: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a JSON reply."""
    return Response(orjson.dumps(value), status, headers, media_type="application/json")


def ignored_header(names: Sequence[str]) -> dict[str, str]:
    """Return the header that tells which names nobody knew, if there were any."""
    return {IGNORED_HEADER: ", ".join(names)} if names else {}


def error_response(error: ClientError, path: str = "") -> Response:
    """Return an error reply in the words of the surface that a path is on.

    With the time to wait where there is one.
    """
    is_responses = path == "/v1/responses" or path.startswith("/v1/responses/")
    body = {"error": responses_error_object(error)} if is_responses else error_body(error)
    return json_response(body, status=error.status, headers=error.headers)


def as_client_error(error: ClientError | StoreError) -> ClientError:
    """Return what a client is told; a store's message may name addresses and stays here."""
    if isinstance(error, ClientError):
        return error
    if isinstance(error, StoreFault):
        logger.error("the store takes a command for nonsense", exc_info=error)
        return AnswerFailed("internal error", code=ErrorCode.SERVER_ERROR)
    return Unavailable("the store cannot serve this now", code=ErrorCode.STORE_UNAVAILABLE)


async def on_service_error(request: Request, error: Exception) -> Response:
    """Reply to an error that was raised on purpose."""
    assert isinstance(error, ClientError | StoreError), repr(error)
    return error_response(as_client_error(error), request.url.path)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Reply to what the router refuses: an unknown path, a wrong method."""
    assert isinstance(error, HTTPException), repr(error)
    if error.status_code == 405:
        refusal: ClientError = InvalidRequest(
            f"{request.method} is not allowed here", code=ErrorCode.METHOD_NOT_ALLOWED
        )
        refusal.status = 405
    else:
        refusal = NotFound(f"there is nothing at {request.url.path}", code=ErrorCode.NOT_FOUND)
        refusal.status = error.status_code
    response = error_response(refusal, request.url.path)
    response.headers.update(error.headers or {})
    return response


async def on_departure(_request: Request, _error: Exception) -> Response:
    """Reply to a client that left before its body had arrived: nobody is there to read it."""
    return Response(status_code=400)


async def on_fault(request: Request, error: Exception) -> Response:
    """Log a fault of ours with its traceback, and reply without details."""
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    fault = AnswerFailed("internal error", code=ErrorCode.SERVER_ERROR)
    return error_response(fault, request.url.path)
