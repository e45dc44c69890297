"""What credentials look like on the wire: the first message, subprotocols, and the login's body.

Owns the words and shapes. Whether a credential is any good is not known here. Nothing that is
wrong with one is ever quoted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from chatserve.errors import InvalidRequest
from chatserve.protocol.body import WIRE, Body, parse_object

AUTH_EVENT = "chatserve:auth"

MAX_CREDENTIAL_CHARS = 256
MAX_AUTH_FRAME_CHARS = 4096

_KEY_PROTOCOL = "openai-insecure-api-key."
_TICKET_PROTOCOL = "chatserve-ticket."

_ECHOED_PROTOCOLS = ("realtime", "responses", "chatserve")
"""What a socket may speak by name; all of them mean this protocol."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A key's secret or a ticket, whichever was shown."""

    token: str | None = field(default=None, repr=False)
    ticket: str | None = field(default=None, repr=False)


class _AuthFields(BaseModel):
    model_config = WIRE

    type: str
    token: str | None = Field(None, max_length=MAX_CREDENTIAL_CHARS)
    ticket: str | None = Field(None, max_length=MAX_CREDENTIAL_CHARS)


class LoginFields(BaseModel):
    """The body of a login.

    Owns: nothing beyond its values.
    Used from: the login endpoint.
    """

    model_config = WIRE

    key: str = Field(repr=False)


def parse_login(raw: bytes) -> str:
    """Return the secret that a login shows."""
    return Body(parse_object(raw)).take(LoginFields).key


def parse_auth_frame(frame: str) -> Credential | None:
    """Return what the first message of a socket shows; None when it is another one."""
    if len(frame) > MAX_AUTH_FRAME_CHARS:
        return None
    try:
        fields = Body(parse_object(frame)).take(_AuthFields)
    except InvalidRequest:
        return None
    if fields.type != AUTH_EVENT or (fields.token is None) == (fields.ticket is None):
        return None
    return Credential(fields.token, fields.ticket)


def credential_of_protocols(offered: Sequence[str]) -> Credential | None:
    """Return what the subprotocols that a client offers show, if one of them is a credential."""
    for protocol in offered:
        if protocol.startswith(_KEY_PROTOCOL):
            return Credential(token=protocol.removeprefix(_KEY_PROTOCOL))
        if protocol.startswith(_TICKET_PROTOCOL):
            return Credential(ticket=protocol.removeprefix(_TICKET_PROTOCOL))
    return None


def echoed_protocol(offered: Sequence[str]) -> str | None:
    """Return the subprotocol to agree on: never one that is a credential."""
    return next((protocol for protocol in offered if protocol in _ECHOED_PROTOCOLS), None)
