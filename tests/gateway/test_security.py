"""Foreign hosts and origins are refused before anything else, also for sockets."""

import asyncio
from typing import Any

import pytest
import websockets
from gateway.gateway_helpers import Service, chat, run_service
from websockets.exceptions import InvalidStatus

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "",
        "localhost.evil.example",
        "evil.example@127.0.0.1",
        "user:password@localhost:80",
        "127.0.0.1:80/evil.example",
        "127.0.0.1/evil.example",
        "127.0.0.1?evil.example",
        "127.0.0.1#evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1:99999",
        "127.0.0.1:+80",
        "127.0.0.1, evil.example",
        "127.0.0.1%2f",
        "127.0.0.1\\evil.example",
        "[::1]evil.example",
        "[127.0.0.1]x",
        "[::1",
    ],
)
async def test_foreign_host_is_refused(shared_service: Service, host: str) -> None:
    reply = await shared_service.http.get("/health", headers={"host": host})

    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:", "127.0.0.1:8000", "[::1]", "192.0.2.7:80"]
)
async def test_own_names_and_addresses_are_answered(shared_service: Service, host: str) -> None:
    reply = await shared_service.http.get("/health", headers={"host": host})

    assert reply.status_code == 200


async def test_configured_host_is_answered(store_url: str) -> None:
    async with run_service(store_url, allowed_hosts=("chat.example",)) as service:
        reply = await service.http.get("/health", headers={"host": "Chat.Example:443"})

    assert reply.status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "file://",
        "http://[",
        "",
        "http://evil.example@{own}",
        "http://{own}/",
        "http://{own}/evil.example",
        "http://{own}?evil.example",
        "http://{own}#evil.example",
        "http://http://{own}",
    ],
)
async def test_foreign_origin_is_refused_over_http(shared_service: Service, origin: str) -> None:
    reply = await shared_service.http.post(
        "/v1/chat/completions",
        json=chat("Hi"),
        headers={"origin": origin.format(own=f"127.0.0.1:{shared_service.port}")},
    )

    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "origin_not_allowed")


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_foreign_origin_is_refused_before_the_upgrade(
    shared_service: Service, origin: str
) -> None:
    uri = f"ws://127.0.0.1:{shared_service.port}/v1/responses"

    with pytest.raises(InvalidStatus) as refused:
        async with websockets.connect(uri, additional_headers={"origin": origin}):
            pass

    response = refused.value.response
    assert response.status_code == 403
    assert b"origin_not_allowed" in response.body


async def test_own_origin_may_connect_over_http_and_socket(shared_service: Service) -> None:
    headers = {"origin": shared_service.url}

    reply = await shared_service.http.get("/health", headers=headers)
    async with shared_service.socket(additional_headers=headers) as socket:
        opened = socket.opened

    assert reply.status_code == 200
    assert opened["type"] == "chatserve:connection.opened"


async def test_page_behind_a_proxy_that_ends_tls_is_same_origin(store_url: str) -> None:
    headers = {"host": "chat.example", "origin": "https://chat.example"}
    async with run_service(store_url, allowed_hosts=("chat.example",)) as service:
        reply = await service.http.get("/health", headers=headers)

    assert reply.status_code == 200


async def test_configured_origin_may_connect_and_read(store_url: str) -> None:
    origin = "https://app.example"
    async with run_service(store_url, allowed_origins=(origin,)) as service:
        preflight = await service.http.options(
            "/v1/chat/completions",
            headers={
                "origin": origin,
                "access-control-request-method": "POST",
                "access-control-request-headers": "content-type",
            },
        )
        reply = await service.http.post(
            "/v1/chat/completions", json=chat("Hi", colour=1), headers={"origin": origin}
        )
        async with service.socket(additional_headers={"origin": origin}) as socket:
            opened = socket.opened

    assert preflight.status_code == 200
    assert reply.headers["access-control-allow-origin"] == origin
    assert "x-chatserve-ignored" in reply.headers["access-control-expose-headers"]
    assert opened["type"] == "chatserve:connection.opened"


async def test_foreign_origin_gets_no_cors_headers(shared_service: Service) -> None:
    reply = await shared_service.http.get("/v1/models", headers={"origin": shared_service.url})

    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("path", ["/", "/health", "/v1/nothing"])
async def test_every_reply_carries_the_security_headers(shared_service: Service, path: str) -> None:
    reply = await shared_service.http.get(path)

    assert "script-src 'self'" in reply.headers["content-security-policy"]
    assert "worker-src 'self'" in reply.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/conversations/conv_1", "/v1/chatserve/me"])
async def test_no_browser_keeps_what_the_api_has_told(shared_service: Service, path: str) -> None:
    """Another user of the same browser could read it there."""
    reply = await shared_service.http.get(path)

    assert reply.headers["cache-control"] == "no-store"


async def test_socket_on_another_path_is_refused(shared_service: Service) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with websockets.connect(f"ws://127.0.0.1:{shared_service.port}/v1/other"):
            pass

    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("kind", ["plain", "stream", "bad"])
async def test_prompts_and_answers_are_never_logged(
    shared_service: Service, caplog: Any, kind: str
) -> None:
    caplog.set_level("DEBUG", logger="chatserve")
    caplog.set_level("DEBUG", logger="uvicorn")
    body = chat("my-secret-words", stream=kind == "stream", temperature=9 if kind == "bad" else 1)
    async with shared_service.socket() as socket:
        await socket.create("my-secret-words")
        await socket.receive_answer()

    await shared_service.http.post(
        "/v1/chat/completions", json=body, headers={"authorization": "Bearer my-secret-key"}
    )

    assert "my-secret" not in caplog.text


async def test_request_without_a_host_is_refused(shared_service: Service) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared_service.port)
    writer.write(b"GET /health HTTP/1.0\r\n\r\n")

    status = await reader.readline()
    writer.close()

    assert status.split()[1] == b"403"
