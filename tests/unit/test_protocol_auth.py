"""What credentials look like on the wire, and that they are printed nowhere."""

import json

import pytest

from chatserve.errors import InvalidRequest
from chatserve.protocol.auth import (
    Credential,
    credential_of_protocols,
    echoed_protocol,
    parse_auth_frame,
    parse_login,
)


@pytest.mark.parametrize("field", ["token", "ticket"])
def test_the_first_message_shows_a_key_or_a_ticket(field: str) -> None:
    frame = json.dumps({"type": "chatserve:auth", field: "secret", "event_id": "e1"})

    assert parse_auth_frame(frame) == Credential(**{field: "secret"})


def test_a_credential_is_not_printed() -> None:
    assert "secret" not in repr(Credential("secret", "secret"))


@pytest.mark.parametrize(
    ("offered", "shown", "echoed"),
    [
        ([], None, None),
        (["realtime"], None, "realtime"),
        (["chat", "mqtt"], None, None),
        (["openai-insecure-api-key.k"], Credential(token="k"), None),
        (["realtime", "openai-insecure-api-key.k"], Credential(token="k"), "realtime"),
        (["chatserve-ticket.t", "chatserve"], Credential(ticket="t"), "chatserve"),
    ],
    ids=str,
)
def test_a_subprotocol_may_be_a_credential_and_is_then_never_echoed(
    offered: list[str], shown: Credential | None, echoed: str | None
) -> None:
    assert credential_of_protocols(offered) == shown
    assert echoed_protocol(offered) == echoed


def test_a_login_shows_a_key() -> None:
    assert parse_login(b'{"key": "secret"}') == "secret"
    with pytest.raises(InvalidRequest, match="key is required"):
        parse_login(b'{"token": "secret"}')
