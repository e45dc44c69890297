"""What a client may say on the socket, and how a text frame becomes one of these.

Owns the vocabulary of client events and their envelope: `type`, the lane (`stream_id`) and the
client's own `event_id`. Knows nothing of what happens next.

A frame that makes no sense becomes a `BadEvent`, with as much of the envelope as could be read, so
that the error frame reaches the right lane.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field

from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, InvalidRequest
from chatserve.protocol.body import WIRE, Body, parse_object
from chatserve.protocol.errors import describe
from chatserve.protocol.responses import Id, ResponseRequest, StreamId, take_response_request

EventId = Annotated[str, Field(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class Envelope:
    """Where an event belongs: its lane (None is the default lane), and the client's id for it."""

    stream_id: str | None = None
    event_id: str | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """`response.create`: answer this, in the order of its lane."""

    envelope: Envelope
    request: ResponseRequest


@dataclass(frozen=True, slots=True)
class Cancel:
    """`response.cancel`: end this response, or the one that the lane is busy with.

    `create_event_id` is the `event_id` of a create of this connection, which may wait in its lane
    and so have told no id of its own yet.
    """

    envelope: Envelope
    response_id: str | None = None
    create_event_id: str | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """`chatserve:response.resume`: send what came after an event, then follow."""

    envelope: Envelope
    response_id: str
    starting_after: int


@dataclass(frozen=True, slots=True)
class Ping:
    """`chatserve:ping`: a browser cannot send protocol pings. `t` comes back as it was."""

    envelope: Envelope
    t: float | None


@dataclass(frozen=True, slots=True)
class BadEvent:
    """A frame that is no client event, and why; the socket lives on."""

    envelope: Envelope
    error: ClientError


ClientEvent = Create | Cancel | Resume | Ping | BadEvent


class _EnvelopeFields(BaseModel):
    model_config = WIRE

    stream_id: StreamId | None = None
    event_id: EventId | None = None


class _TypeField(BaseModel):
    model_config = WIRE

    type: str


class _CancelFields(BaseModel):
    model_config = WIRE

    response_id: Id | None = None
    create_event_id: EventId | None = Field(None, alias="chatserve:create_event_id")


class _ResumeFields(BaseModel):
    model_config = WIRE

    response_id: Id
    starting_after: int = Field(-1, ge=-1)


class _PingFields(BaseModel):
    model_config = WIRE

    t: float | None = None


def parse_client_event(frame: str) -> ClientEvent:
    """Read one text frame; this never raises."""
    envelope = Envelope()
    try:
        body = Body(parse_object(frame))
        envelope = _envelope(body)
        return _event(body, envelope)
    except ClientError as error:
        return BadEvent(envelope, error)


def _envelope(body: Body) -> Envelope:
    try:
        fields = body.take(_EnvelopeFields)
    except InvalidRequest as error:
        if error.param == "stream_id":
            error.code = ErrorCode.INVALID_STREAM_ID
        raise
    return Envelope(fields.stream_id, fields.event_id)


def _event(body: Body, envelope: Envelope) -> ClientEvent:
    kind = body.take(_TypeField).type
    match kind:
        case "response.create":
            return Create(envelope, take_response_request(body))
        case "response.cancel":
            cancel = body.take(_CancelFields)
            return Cancel(envelope, cancel.response_id, cancel.create_event_id)
        case "chatserve:response.resume":
            resume = body.take(_ResumeFields)
            return Resume(envelope, resume.response_id, resume.starting_after)
        case "chatserve:ping":
            return Ping(envelope, body.take(_PingFields).t)
        case "chatserve:auth":
            raise InvalidRequest(
                "chatserve:auth can only be the first message, where no other credential was shown",
                code=ErrorCode.UNSUPPORTED,
                param="type",
            )
        case "response.steer":
            raise InvalidRequest(
                "response.steer is not served: cancel the response and create another",
                code=ErrorCode.UNSUPPORTED,
                param="type",
            )
        case _:
            raise InvalidRequest(
                f"type: no such client event, received {describe(kind)}",
                code=ErrorCode.UNKNOWN_EVENT,
                param="type",
            )
