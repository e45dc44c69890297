"""Who may open a socket: headers before the upgrade, the first message after it."""

import json
from typing import Any

import pytest
import websockets
from gateway.gateway_helpers import Event, Socket
from gateway.secured_helpers import Secured, bearer, run_secured_service
from websockets.asyncio.client import ClientConnection
from websockets.typing import Subprotocol

from chatserve.gateway.connection_limits import ConnectionLimits

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNKNOWN = "csk_0123456789abcdef_" + "a" * 43


def connect(secured: Secured, **options: Any) -> websockets.connect:
    return websockets.connect(f"ws://127.0.0.1:{secured.service.port}/v1/responses", **options)


async def answer(connection: ClientConnection) -> list[str]:
    """Return the kinds of the first frame, and of the end of an answer."""
    socket = Socket(connection)
    opened = await socket.receive()
    await socket.create("Hi")
    return [opened["type"], (await socket.receive_answer())[-1]["type"]]


async def closed_after(connection: ClientConnection, *frames: str | bytes | Event) -> int:
    """Return the close code that comes after some frames."""
    for frame in frames:
        await connection.send(json.dumps(frame) if isinstance(frame, dict) else frame)
    return (await Socket(connection).receive_close()).code


async def test_a_key_in_the_header_opens_a_socket(secured: Secured) -> None:
    async with connect(secured, additional_headers=bearer(secured.member)) as connection:
        kinds = await answer(connection)

    assert kinds == ["chatserve:connection.opened", "response.completed"]


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {UNKNOWN}"},
        {"authorization": "Bearer nonsense"},
        {"authorization": "Basic Ym9iOnNlY3JldA=="},
        {"cookie": "chatserve-login=csl_" + "a" * 43, "origin": "OWN"},
    ],
    ids=str,
)
async def test_a_credential_that_is_no_good_is_refused_before_the_upgrade(
    secured: Secured, headers: dict[str, str]
) -> None:
    if "origin" in headers:
        headers = {**headers, **secured.origin}

    status, error = await secured.refused(additional_headers=headers)

    assert (status, error["code"]) == (401, "invalid_api_key")


async def test_a_login_opens_a_socket_with_an_own_origin(secured: Secured) -> None:
    cookie = await secured.cookie(secured.member)

    async with connect(secured, additional_headers={**cookie, **secured.origin}) as connection:
        kinds = await answer(connection)

    assert kinds[-1] == "response.completed"


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ({"origin": "https://evil.example"}, "origin_not_allowed"),
        ({"origin": "null"}, "origin_not_allowed"),
        ({}, "origin_required"),
    ],
    ids=str,
)
async def test_a_login_with_a_foreign_origin_or_none_is_refused_before_the_upgrade(
    secured: Secured, origin: dict[str, str], code: str
) -> None:
    cookie = await secured.cookie(secured.member)

    status, error = await secured.refused(additional_headers={**cookie, **origin})

    assert (status, error["code"]) == (403, code)


async def test_a_key_as_a_subprotocol_opens_a_socket_and_is_not_echoed(secured: Secured) -> None:
    offered = [
        Subprotocol("realtime"),
        Subprotocol(f"openai-insecure-api-key.{secured.member.secret}"),
    ]

    async with connect(secured, subprotocols=offered) as connection:
        kinds = await answer(connection)
        agreed = connection.subprotocol

    assert agreed == "realtime"
    assert kinds[-1] == "response.completed"


async def test_no_subprotocol_that_is_a_credential_is_ever_agreed_on(secured: Secured) -> None:
    offered = [Subprotocol(f"openai-insecure-api-key.{secured.member.secret}")]

    async with connect(secured, subprotocols=offered) as connection:
        agreed = connection.subprotocol

    assert agreed is None


async def test_a_wrong_key_as_a_subprotocol_is_refused_before_the_upgrade(
    secured: Secured,
) -> None:
    offered = [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{UNKNOWN}")]

    status, error = await secured.refused(subprotocols=offered)

    assert (status, error["code"]) == (401, "invalid_api_key")


async def ticket_of(secured: Secured) -> str:
    reply = await secured.service.http.post("/v1/chatserve/ticket", headers=bearer(secured.member))
    assert reply.json()["expires_in"] == 30
    ticket: str = reply.json()["ticket"]
    return ticket


async def test_a_ticket_as_a_subprotocol_opens_one_socket(secured: Secured) -> None:
    offered = [
        Subprotocol("chatserve"),
        Subprotocol(f"chatserve-ticket.{await ticket_of(secured)}"),
    ]

    async with connect(secured, subprotocols=offered) as connection:
        kinds = await answer(connection)
        agreed = connection.subprotocol
    status, _ = await secured.refused(subprotocols=offered)

    assert (agreed, kinds[-1]) == ("chatserve", "response.completed")
    assert status == 401


async def test_a_key_in_the_first_message_opens_a_socket(secured: Secured) -> None:
    async with connect(secured) as connection:
        auth = {"type": "chatserve:auth", "token": secured.member.secret}
        await connection.send(json.dumps(auth))
        kinds = await answer(connection)

    assert kinds == ["chatserve:connection.opened", "response.completed"]


async def test_a_ticket_in_the_first_message_opens_one_socket(secured: Secured) -> None:
    auth = {"type": "chatserve:auth", "ticket": await ticket_of(secured)}

    async with connect(secured) as first:
        await first.send(json.dumps(auth))
        kinds = await answer(first)
    async with connect(secured) as second:
        code = await closed_after(second, auth)

    assert kinds[-1] == "response.completed"
    assert code == 4401


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"type": "chatserve:auth", "token": UNKNOWN}, 4401),
        ({"type": "chatserve:auth", "token": "nonsense"}, 4401),
        ({"type": "chatserve:auth", "token": 1}, 4401),
        ({"type": "chatserve:auth"}, 4401),
        ({"type": "chatserve:auth", "ticket": "cst_" + "a" * 43}, 4401),
        ({"type": "chatserve:auth", "token": UNKNOWN, "ticket": "cst_"}, 4401),
        ({"type": "response.create", "model": "echo", "input": "Hi"}, 4401),
        ("not json", 4401),
        ('{"type": "chatserve:auth", "token": "' + "x" * 10_000 + '"}', 4401),
        (b"\x00", 1003),
    ],
    ids=lambda value: ascii(value)[:50],
)
async def test_another_first_message_closes_the_socket(
    secured: Secured, frame: Event | str | bytes, code: int
) -> None:
    async with connect(secured) as connection:
        assert await closed_after(connection, frame) == code


async def test_a_first_message_that_does_not_come_closes_the_socket(store_url: str) -> None:
    async with (
        run_secured_service(store_url, limits=ConnectionLimits(auth_timeout_s=0.05)) as secured,
        connect(secured) as connection,
    ):
        assert await closed_after(connection) == 4408


async def test_a_socket_that_was_opened_needs_no_other_credential(secured: Secured) -> None:
    async with secured.service.socket(additional_headers=bearer(secured.member)) as socket:
        await socket.send("chatserve:auth", token=secured.member.secret)
        error = await socket.receive()
        await socket.create("Hi")
        events = await socket.receive_answer()

    assert (error["type"], error["error"]["code"]) == ("error", "unsupported")
    assert events[-1]["type"] == "response.completed"


async def test_a_credential_in_the_query_string_opens_nothing(secured: Secured) -> None:
    uri = f"ws://127.0.0.1:{secured.service.port}/v1/responses?ticket={await ticket_of(secured)}"

    async with websockets.connect(uri) as connection:
        code = await closed_after(connection, {"type": "chatserve:ping"})

    assert code == 4401


async def test_what_one_tenant_made_is_not_there_for_another(secured: Secured) -> None:
    async with secured.service.socket(additional_headers=bearer(secured.member)) as socket:
        await socket.create("Hi")
        response_id = (await socket.receive_answer())[-1]["response"]["id"]
    async with secured.service.socket(additional_headers=bearer(secured.stranger)) as socket:
        replies = []
        for asked in (response_id, "resp_0" + "0" * 31):
            await socket.send("chatserve:response.resume", response_id=asked)
            reply = await socket.receive()
            replies.append(json.loads(json.dumps(reply).replace(asked, "ID")))

    assert replies[0] == replies[1]
    assert replies[0]["type"] == "error"
