"""Every way in which a socket is closed, by its code, and that it is counted.

Those of its lifetime (1001), a gateway that stops (1012), a peer that does not read (1013), and of
those who may connect (4401, 4408, 4429, 1008) have modules of their own.
"""

import pytest
from gateway.gateway_helpers import Service, eventually, run_service
from gateway.raw_client import close_code, frame, raw_client

from chatserve.gateway import server
from chatserve.gateway.answering import Answering

TEXT, BINARY, CLOSE = 0x1, 0x2, 0x8


async def wait_until_closed(service: Service, code: str) -> None:
    """Return once a socket has ended with this code, by the gateway's count."""
    registry = service.services.metrics.registry
    name = "chatserve_connections_closed_total"
    await eventually(lambda: registry.get_sample_value(name, {"code": code}) == 1)


async def test_peer_that_closes_gets_its_own_code_back(service: Service) -> None:
    async with service.socket() as socket:
        await socket.connection.close(1000)
    await wait_until_closed(service, "1000")

    close = socket.connection.protocol.close_rcvd
    assert close is not None
    assert close.code == 1000


async def test_binary_frame_closes_with_1003(service: Service) -> None:
    async with service.socket() as socket:
        await socket.connection.send(b"{}")
        close = await socket.receive_close()
    await wait_until_closed(service, "1003")

    assert (close.code, close.reason) == (1003, "events are JSON in text frames")


async def test_text_that_is_no_utf8_closes_with_1007(service: Service) -> None:
    async with service.socket() as socket:
        await socket.connection.send(b"\xff\xfe", text=True)
        close = await socket.receive_close()
    await wait_until_closed(service, "1007")

    assert close.code == 1007


async def test_message_over_the_limit_closes_with_1009(store_url: str) -> None:
    async with run_service(store_url, max_message_bytes=2000) as service:
        async with service.socket() as socket:
            await socket.create("x" * 3000)
            close = await socket.receive_close()
        await wait_until_closed(service, "1009")

    assert close.code == 1009


async def test_fragments_over_the_limit_close_with_1009(store_url: str) -> None:
    async with (
        run_service(store_url, max_message_bytes=2000) as service,
        service.socket() as socket,
    ):
        await socket.connection.send("x" * 500 for _ in range(6))
        close = await socket.receive_close()

    assert close.code == 1009


async def test_fault_of_ours_closes_with_1011_and_tells_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(Answering, "create", fail)
    async with service.socket() as socket:
        await socket.create("Hello")
        close = await socket.receive_close()
    await wait_until_closed(service, "1011")

    assert (close.code, close.reason) == (1011, "internal error")
    assert "a secret" in caplog.text


async def test_peer_that_vanished_is_closed_with_1011_when_pings_stay_unanswered(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PING_INTERVAL_S", 0.05)
    monkeypatch.setattr(server, "PING_TIMEOUT_S", 0.05)
    async with run_service(store_url) as service, raw_client(service) as peer:
        head = await peer.upgrade()
        received = await peer.read_to_end()
        await wait_until_closed(service, "1011")
        await eventually(lambda: not service.server.server_state.tasks)

    assert b" 101 " in head
    assert close_code(received) == 1011


async def test_peer_that_leaves_without_a_close_frame_is_forgotten(service: Service) -> None:
    async with raw_client(service) as peer:
        await peer.upgrade()
        peer.writer.transport.abort()

        await wait_until_closed(service, "1005")

    assert await service.metric("chatserve_connections") == 0


async def test_many_senseless_frames_in_a_row_close_with_4400(service: Service) -> None:
    async with service.socket() as socket:
        for _ in range(101):
            await socket.connection.send("{")
        close = await socket.receive_close()
    await wait_until_closed(service, "4400")

    assert close.code == 4400
    assert "100 frames" in close.reason


async def test_senseless_frames_among_others_are_put_up_with(service: Service) -> None:
    async with service.socket() as socket:
        for _ in range(150):
            await socket.connection.send("{")
            await socket.send("chatserve:ping", t=1)
        kinds = [(await socket.receive())["type"] for _ in range(300)]

    assert kinds.count("chatserve:pong") == 150


@pytest.mark.parametrize("code", [1001, 3000, 4999])
async def test_codes_that_peers_make_up_are_counted_together(service: Service, code: int) -> None:
    async with raw_client(service) as peer:
        await peer.upgrade()
        await peer.send(frame(CLOSE, code.to_bytes(2, "big")))

        await wait_until_closed(service, "1001" if code == 1001 else "other")
