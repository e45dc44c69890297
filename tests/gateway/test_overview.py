"""`GET /v1/chatserve/overview`: what it tells, to whom, and what it costs."""

from typing import Any

import pytest
from gateway.gateway_helpers import Service
from gateway.limited_service import TENANT, Caller, limited_service, secret_of

from chatserve.gateway import overview
from chatserve.identity import Role
from chatserve.store.tenants import NO_QUOTAS, Quotas, Tenant, Tenants

PATH = "/v1/chatserve/overview"


async def look(caller: Caller, **params: str) -> dict[str, Any]:
    reply = await caller.get(PATH, **params)
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


async def boss_of(caller: Caller) -> Caller:
    secret = await secret_of(caller.service.store, "boss", role=Role.OPERATOR)
    return Caller(caller.service, secret)


async def test_tenant_is_shown_with_usage_and_what_its_limits_leave(store_url: str) -> None:
    quotas = Quotas(requests_per_minute=100, connections=5, pinned_pages=7)
    async with limited_service(store_url, quotas) as caller:
        usage = (await caller.chat("hello")).json()["usage"]
        async with caller.socket():
            (tenant,) = (await look(await boss_of(caller)))["tenants"]

    assert tenant == {
        "name": TENANT,
        "requests_running": 0,
        "requests_queued": 0,
        "connections": 1,
        "usage_today": {
            "requests": 1,
            "input_tokens": usage["prompt_tokens"],
            "cached_tokens": usage["prompt_tokens_details"]["cached_tokens"],
            "output_tokens": usage["completion_tokens"],
        },
        "limits": {
            "requests_per_minute": {"limit": 100, "used": 1},
            "connections": {"limit": 5, "used": 1},
            "pinned_pages": {"limit": 7, "used": None},
        },
    }


async def test_requests_in_flight_are_told_by_tenant_worker_and_queue(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        service, boss = caller.service, await boss_of(caller)
        service.model.hold()
        running = service.spawn(caller.chat("hello"))
        await service.wait_until_held()
        seen = await look(boss)
        service.model.release()
        await running

    (tenant,), (worker,), (queue,) = seen["tenants"], seen["workers"], seen["queues"]
    assert (tenant["requests_running"], tenant["requests_queued"]) == (1, 0)
    assert tenant["connections"] is None
    assert (worker["id"], worker["model"]) == ("worker-1", "echo")
    assert 0 <= worker["beat_age_ms"] < 4000
    pages = worker["pages_free"] + worker["pages_used"] + worker["pages_cached"]
    assert pages == worker["num_pages"]
    assert queue == {"model": "echo", "length": 0, "max_length": service.services.config.max_queue}


async def test_tenants_come_in_pages(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        for name in ("b", "c", "d"):
            await caller.service.store.tenants.add(Tenant(name))
        boss = await boss_of(caller)
        first = await look(boss, limit="3")
        second = await look(boss, limit="3", after="c")

    assert [each["name"] for each in first["tenants"]] == [TENANT, "b", "c"]
    assert [each["name"] for each in second["tenants"]] == ["d"]
    assert (first["has_more"], second["has_more"]) == (True, False)


async def test_those_who_ask_at_once_share_a_look(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "FRESH_S", 60.0)
    looks: list[int] = []
    list_tenants = Tenants.list

    async def counted(self: Tenants, limit: int, after: str = "") -> Any:
        looks.append(limit)
        return await list_tenants(self, limit, after)

    monkeypatch.setattr(Tenants, "list", counted)

    replies = [await service.http.get(PATH) for _ in range(3)]
    await service.http.get(PATH, params={"limit": 5})

    assert replies[0].json() == replies[2].json()
    assert looks == [21, 6]


async def test_service_without_keys_shows_the_tenant_that_everybody_is(service: Service) -> None:
    (tenant,) = (await service.http.get(PATH)).json()["tenants"]

    assert (tenant["name"], tenant["limits"]) == ("default", {})


async def test_members_are_refused(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as member:
        refused = await member.get(PATH)

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "operator_only")
