"""What the gateway tells the store of where a request should run."""

from contextlib import nullcontext

import pytest
from gateway.gateway_helpers import Service, chat, first_response_id

from chatserve.gateway.router import Router
from chatserve.store import keys


async def test_request_carries_its_route_and_is_answered_although_nobody_is_there(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Router, "sending", lambda self, request: nullcontext("elsewhere"))

    answer = service.spawn(service.http.post("/v1/chat/completions", json=chat("hi")))
    request_id = await first_response_id(service.store)
    key = service.store.partitions.of_id(request_id).key(keys.REQUEST + request_id)

    assert await service.store.commands.call("HGET", key, "route") == "elsewhere"
    assert (await answer).status_code == 200


async def test_request_to_the_only_worker_carries_no_route(service: Service) -> None:
    service.model.hold()
    answer = service.spawn(service.http.post("/v1/chat/completions", json=chat("hi")))
    await service.wait_until_held()
    request_id = await first_response_id(service.store)
    key = service.store.partitions.of_id(request_id).key(keys.REQUEST + request_id)

    assert not await service.store.commands.call("HEXISTS", key, "route")
    service.model.release()
    assert (await answer).status_code == 200
