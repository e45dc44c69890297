"""Requests whose caller loses access while they are served: streams, answers and exports end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from gateway.gateway_helpers import (
    Event,
    Service,
    chat,
    eventually,
    first_response_id,
    outcome_of,
    sse_data,
)
from gateway.secured_helpers import Secured, bearer, error_of, run_secured_service

from chatserve.engine.api import FinishReason, RequestId
from chatserve.store.api_keys import IssuedKey
from chatserve.store.sessions import Outline

HINT = "this access has ended: show a valid key"
STREAMS: list[tuple[str, Event]] = [
    ("/v1/responses", {"model": "echo", "input": "Hello", "stream": True}),
    ("/v1/chat/completions", chat("Hello", stream=True)),
    ("/v1/completions", {"model": "echo", "prompt": "Hello", "stream": True}),
]


async def rotate(secured: Secured, issued: IssuedKey) -> None:
    """End a secret, as one that has leaked; unlike a revocation it cancels no answer."""
    assert await secured.service.store.api_keys.rotate(issued.key.key_id) is not None


def last_event(reply: httpx.Response) -> Event:
    event: Event = json.loads(sse_data(reply.text)[-1])
    return event


async def in_time(posting: asyncio.Task[httpx.Response]) -> httpx.Response:
    async with asyncio.timeout(5):
        return await posting


@asynccontextmanager
async def held(secured: Secured, path: str, **options: Any) -> AsyncIterator[Any]:
    """Send a request whose answer the model holds back, and yield its task."""
    service = secured.service
    service.model.hold()
    service.model.allow(2)
    posting = service.spawn(service.http.request(options.pop("method", "POST"), path, **options))
    await service.wait_until_held()
    try:
        yield posting
    finally:
        service.model.release()
        await service.wait_until_idle()


@pytest.mark.parametrize(("path", "body"), STREAMS)
async def test_a_stream_ends_with_an_error_when_its_secret_is_replaced(
    store_url: str, path: str, body: Event
) -> None:
    """It went on to its end with a secret that was known to have leaked."""
    async with (
        run_secured_service(store_url) as secured,
        held(secured, path, json=body, headers=bearer(secured.member)) as posting,
    ):
        await rotate(secured, secured.member)
        reply = await in_time(posting)
        store = secured.service.store
        outcome = await outcome_of(store, await first_response_id(store))

    error = last_event(reply)["error"]
    assert (error["code"], error["message"]) == ("invalid_api_key", HINT)
    assert outcome.finish_reason is FinishReason.ABORT


@pytest.mark.parametrize(("path", "body"), STREAMS)
async def test_a_request_that_waits_for_its_answer_is_refused_when_its_secret_is_replaced(
    store_url: str, path: str, body: Event
) -> None:
    whole = {**body, "stream": False}
    async with (
        run_secured_service(store_url) as secured,
        held(secured, path, json=whole, headers=bearer(secured.member)) as posting,
    ):
        await rotate(secured, secured.member)
        reply = await in_time(posting)
        store = secured.service.store
        outcome = await outcome_of(store, await first_response_id(store))

    assert (reply.status_code, error_of(reply.content)["message"]) == (401, HINT)
    assert outcome.finish_reason is FinishReason.ABORT


async def until_read(service: Service) -> None:
    registry = service.services.metrics.registry
    await eventually(lambda: registry.get_sample_value("chatserve_readers") == 1)


async def background(service: Service, issued: IssuedKey) -> str:
    body = {"model": "echo", "input": "Hello", "background": True}
    reply = await service.http.post("/v1/responses", json=body, headers=bearer(issued))
    response_id: str = reply.json()["id"]
    return response_id


async def test_a_revoked_key_no_longer_reads_the_answer_of_another_one_which_goes_on(
    store_url: str,
) -> None:
    async with run_secured_service(store_url) as secured:
        service, issued = secured.service, await secured.issue()
        service.model.hold()
        response_id = await background(service, secured.member)
        path = f"/v1/responses/{response_id}?stream=true"
        async with held(secured, path, method="GET", headers=bearer(issued)) as posting:
            await until_read(service)
            await service.store.api_keys.revoke(issued.key.key_id)
            reply = await in_time(posting)
        outcome = await outcome_of(service.store, RequestId(response_id))

    assert last_event(reply)["error"]["message"] == HINT
    assert outcome.finish_reason is FinishReason.STOP


async def test_a_logout_ends_the_streams_of_its_login(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        service, cookie = secured.service, await secured.cookie(secured.member)
        service.model.hold()
        response_id = await background(service, secured.member)
        path = f"/v1/responses/{response_id}?stream=true"
        async with held(secured, path, method="GET", headers=cookie) as posting:
            await until_read(service)
            headers = {**cookie, **secured.origin}
            await service.http.post("/v1/chatserve/logout", headers=headers)
            reply = await in_time(posting)

    assert last_event(reply)["error"]["message"] == HINT


async def test_an_export_breaks_off_when_its_secret_is_replaced(
    store_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_secured_service(store_url) as secured:
        service, headers = secured.service, bearer(secured.member)
        await service.http.post("/v1/conversations", json={}, headers=headers)
        is_reading = asyncio.Event()

        async def read_for_ever(_session_id: str) -> Outline:
            is_reading.set()
            await asyncio.Event().wait()
            raise AssertionError

        monkeypatch.setattr(service.store.sessions, "outline", read_for_ever)
        exporting = service.spawn(
            service.http.get("/v1/chatserve/conversations/export", headers=headers)
        )
        await is_reading.wait()
        await rotate(secured, secured.member)

        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            await in_time(exporting)

    assert not caplog.records
