"""Error objects: one problem in the three shapes in which clients expect it.

Owns the shape of an HTTP error body, of an error inside an event stream and of a socket's error
frame, and the way from pydantic's finding to one sentence. Knows no transport.

The one idea: a message names the field, what was expected and what was received, and never quotes
more of the input than a short scalar, since the input may be a prompt.
"""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from chatserve.error_codes import ErrorCode
from chatserve.errors import AnswerFailed, ClientError, InvalidRequest, RateLimited

MAX_QUOTED_CHARS = 60


def error_object(error: ClientError) -> dict[str, Any]:
    """Return the members that every error shape has in common."""
    return {
        "message": error.message,
        "type": error.type,
        "param": error.param,
        "code": error.code,
    }


def error_body(error: ClientError) -> dict[str, Any]:
    """Return the body of an HTTP error, which is also an error inside an event stream."""
    return {"error": error_object(error)}


def responses_error_object(error: ClientError) -> dict[str, Any]:
    """Return an error object in the words of the Responses protocol, which are not OpenAI's."""
    families = {
        (ClientError.type, 404): "not_found",
        (RateLimited.type, 429): "too_many_requests",
    }
    plain = "invalid_request" if error.type == ClientError.type else error.type
    family = families.get((error.type, error.status), plain)
    return {**error_object(error), "type": family}


def answer_failed(message: str | None, code: str | None) -> AnswerFailed:
    """Return the error of an answer that failed; one that took too long is a timeout of ours."""
    failed = AnswerFailed(message or "the answer failed", code=code or ErrorCode.SERVER_ERROR)
    if code == ErrorCode.DEADLINE_EXCEEDED:
        failed.status = 504
    return failed


def error_frame(
    error: ClientError, *, stream_id: str | None = None, event_id: str | None = None
) -> dict[str, Any]:
    """Return an error as an event: a socket's frame, or the last event of a stream over HTTP.

    A socket stays open after it.

    Args:
        error: What to report.
        stream_id: The lane that the refused message named.
        event_id: The id that the client gave to the refused message.
    """
    frame: dict[str, Any] = {
        "type": "error",
        "status": error.status,
        "error": responses_error_object(error),
    }
    if error.headers:
        frame["error"]["headers"] = error.headers
    if stream_id is not None:
        frame["stream_id"] = stream_id
    if event_id is not None:
        frame["event_id"] = event_id
    return frame


def invalid_request(failure: ValidationError) -> InvalidRequest:
    """Return the first finding of a failed validation as a request error."""
    finding = failure.errors(include_url=False, include_context=False)[0]
    param = _path(finding["loc"]) or None
    return InvalidRequest(_sentence(param, finding), code=_code(finding["type"]), param=param)


def _path(location: tuple[int | str, ...]) -> str:
    """Return a location as clients write it: `messages[0].content`."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def _code(kind: str) -> ErrorCode:
    if kind == "missing":
        return ErrorCode.MISSING
    if kind == ErrorCode.UNSUPPORTED:
        return ErrorCode.UNSUPPORTED
    return ErrorCode.INVALID_TYPE if kind.endswith("_type") else ErrorCode.INVALID_VALUE


def _sentence(param: str | None, finding: ErrorDetails) -> str:
    if param is None:  # a rule about several fields, whose message names them
        return finding["msg"]
    if finding["type"] == "missing":
        return f"{param} is required"
    expected = finding["msg"][:1].lower() + finding["msg"][1:]
    if finding["type"] in ("too_short", "too_long"):  # counts what it received already
        return f"{param}: {expected.replace(' after validation', '')}"
    return f"{param}: {expected}, received {describe(finding['input'])}"


def describe(value: Any) -> str:
    """Return a short description of a received value, safe to send back."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)[:MAX_QUOTED_CHARS]
        case str() if len(value) <= MAX_QUOTED_CHARS:
            return f'"{value}"'
        case str():
            return f"a string of {len(value)} characters"
        case list():
            return f"a list of {len(value)}"
        case _:
            return "an object"
