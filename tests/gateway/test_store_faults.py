"""The store fails under the gateway: at every command, and in the middle of a stream."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat, outcome_of, response_ids, run_service, text_of

from chatserve.errors import StoreError, StoreFault
from chatserve.store import keys

COMMANDS = ("call", "call_many", "run_many")


class Saboteur:
    """Makes the n-th command of a gateway's store fail, and counts them all."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.countdown = 0
        for name in COMMANDS:
            original = getattr(service.store.commands, name)
            monkeypatch.setattr(service.store.commands, name, self._wrapped(original))

    def _wrapped(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def command(*arguments: Any, **options: Any) -> Any:
            self.countdown -= 1
            if self.countdown == 0:
                raise StoreError("sabotage")
            return await original(*arguments, **options)

        return command


async def in_flight(service: Service) -> list[str]:
    found: list[str] = await service.store.commands.call("KEYS", keys.FIRST.key(keys.REQUEST + "*"))
    return found


async def test_any_command_that_fails_costs_an_error_and_leaves_nothing_running(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_service(store_url, disconnect_grace_s=0.0) as service:
        saboteur = Saboteur(service, monkeypatch)
        statuses = []
        for number in range(1, 12):
            saboteur.countdown = number

            reply = await service.http.post("/v1/chat/completions", json=chat("Hello"))

            saboteur.countdown = 0
            statuses.append(reply.status_code)
            for response_id in await response_ids(service.store):
                await outcome_of(service.store, response_id)
            assert await in_flight(service) == []

    assert set(statuses) == {200, 503}
    assert statuses[-1] == 200


async def test_any_command_that_fails_on_a_socket_is_an_error_frame_or_no_matter(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_service(store_url, disconnect_grace_s=0.0) as service:
        saboteur = Saboteur(service, monkeypatch)
        async with service.socket() as socket:
            for number in range(1, 12):
                saboteur.countdown = number

                await socket.create(f"Hello {number}", event_id=f"e{number}")
                events = await socket.receive_answer()

                saboteur.countdown = 0
                if events[-1]["type"] == "error":
                    assert events[-1]["error"]["code"] == "store_unavailable"
                else:
                    assert text_of(events) == f"Hello {number}"
        await service.wait_until_idle()


async def test_answer_goes_on_when_every_connection_to_the_store_is_lost(
    service: Service,
) -> None:
    service.model.hold()
    service.model.allow(3)
    async with service.socket() as socket:
        await socket.create("Hello, world")
        events = await socket.receive_texts(3)
        await service.store.commands.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        service.model.release()

        events += await socket.receive_answer()

    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert text_of(events) == "Hello, world"


async def test_command_that_makes_no_sense_is_no_outage(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that was told of an outage would repeat what can never work."""

    async def ask_nonsense(*_arguments: Any, **_options: Any) -> None:
        with pytest.raises(StoreFault):
            await service.store.commands.call_many([("XRANGE", "key", "no", "range")])
        await service.store.commands.call("XRANGE", "key", "no", "range")

    monkeypatch.setattr(service.store.sessions, "list", ask_nonsense)

    reply = await service.http.get("/v1/chatserve/conversations")

    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "server_error")
    assert "nonsense" in caplog.text
