"""Faults of ours, and answers that end badly: told plainly, without details, and logged."""

import json
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat, first_response_id, sse_data

PATH = "/v1/chat/completions"


@pytest.fixture
def broken(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service with a bug on the way of requests for a model that nobody serves."""

    def refusal(*_arguments: Any) -> Any:
        raise ZeroDivisionError("a detail that is nobody's business")

    monkeypatch.setattr(service.services.models, "refusal", refusal)
    return service


async def test_fault_over_http_is_a_500_without_details(broken: Service) -> None:
    reply = await broken.http.post(PATH, json=chat("Hi", model="another"))

    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "server_error")
    assert "detail" not in reply.text


async def test_fault_on_a_socket_closes_it_with_1011_and_is_logged(
    broken: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with broken.socket() as socket:
        await socket.create("Hi", model="another")

        close = await socket.receive_close()

    assert (close.code, close.reason) == (1011, "internal error")
    assert "ZeroDivisionError" in caplog.text
    assert socket.opened["connection_id"] in caplog.text


async def cancel_over_a_socket(service: Service, response_id: str) -> None:
    async with service.socket() as socket:
        await socket.send("response.cancel", response_id=response_id)
        await socket.send("chatserve:ping")
        await socket.receive_until("chatserve:pong")


async def test_stream_that_is_cancelled_by_somebody_else_ends_with_an_error(
    service: Service,
) -> None:
    service.model.hold()
    async with service.http.stream("POST", PATH, json=chat("Hi", stream=True)) as reply:
        await service.wait_until_held()
        await cancel_over_a_socket(service, reply.headers["x-request-id"])
        body = (await reply.aread()).decode()

    *_, last = sse_data(body)
    assert json.loads(last)["error"]["code"] == "cancelled"
    assert "[DONE]" not in body


async def test_plain_answer_that_is_cancelled_by_somebody_else_is_an_error(
    service: Service,
) -> None:
    service.model.hold()
    asking = service.http.build_request("POST", PATH, json=chat("Hi"))
    sending = service.spawn(service.http.send(asking))
    response_id = await first_response_id(service.store)
    await service.wait_until_held()

    await cancel_over_a_socket(service, response_id)

    reply = await sending
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "cancelled")
