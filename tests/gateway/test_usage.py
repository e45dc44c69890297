"""`GET /v1/chatserve/usage`: who sees what, and that it is what the answers said."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from gateway.limited_service import TENANT, Caller, limited_service, secret_of

from chatserve.identity import Role
from chatserve.store.tenant_removal import remove_tenant
from chatserve.store.tenants import NO_QUOTAS, Tenant

PATH = "/v1/chatserve/usage"


async def usage_of(caller: Caller, **params: str) -> dict[str, Any]:
    """Return what is reported around now, so that a test may run over midnight."""
    today = datetime.now(UTC).date()
    days = {"from": str(today - timedelta(days=1)), "to": str(today + timedelta(days=1))}
    reply = await caller.get(PATH, **{**days, **params})
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


async def test_totals_are_the_sums_over_the_answers(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        usages = [(await caller.chat(text)).json()["usage"] for text in ("one", "one", "two")]
        async with caller.socket() as socket:
            await socket.create("three")
            streamed = (await socket.receive_answer())[-1]["response"]["usage"]
        report = await usage_of(caller)

    cached = sum(each["prompt_tokens_details"]["cached_tokens"] for each in usages)
    assert report["total"] == {
        "requests": 4,
        "input_tokens": sum(each["prompt_tokens"] for each in usages) + streamed["input_tokens"],
        "cached_tokens": cached + streamed["input_tokens_details"]["cached_tokens"],
        "output_tokens": sum(each["completion_tokens"] for each in usages)
        + streamed["output_tokens"],
    }
    assert report["total"]["cached_tokens"] > 0


async def test_warm_up_counts_its_input(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller, caller.socket() as socket:
        await socket.create("warm", generate=False)
        await socket.receive_answer()
        total = (await usage_of(caller))["total"]

    assert (total["requests"], total["output_tokens"]) == (1, 0)
    assert total["input_tokens"] > 0


async def test_member_sees_own_rows_and_operator_those_of_all_users(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as ann:
        store = ann.service.store
        bob = Caller(ann.service, await secret_of(store, "bob"))
        boss = Caller(ann.service, await secret_of(store, "boss", role=Role.OPERATOR))
        await ann.chat("one")
        await ann.chat("two")
        await bob.chat("three")

        own = await usage_of(bob, group_by="user")
        all_users = await usage_of(boss, group_by="user")

    assert [(row["user"], row["requests"]) for row in own["data"]] == [("bob", 1)]
    assert own["total"]["requests"] == 1
    assert [(row["user"], row["requests"]) for row in all_users["data"]] == [("ann", 2), ("bob", 1)]


async def test_other_tenants_are_for_operators(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as ann:
        store = ann.service.store
        await store.tenants.add(Tenant("zeta"))
        boss = Caller(
            ann.service, await secret_of(store, "boss", tenant="zeta", role=Role.OPERATOR)
        )
        await ann.chat()

        seen = await usage_of(boss, tenant=TENANT)
        own = await usage_of(boss)
        missing = await boss.get(PATH, tenant="nobody")
        await remove_tenant(store, TENANT)
        removed = await usage_of(boss, tenant=TENANT)
        await store.tenants.add(Tenant(TENANT))
        ann = Caller(ann.service, await secret_of(store, "ann"))
        refused = await ann.get(PATH, tenant="zeta")
        unknown = await ann.get(PATH, tenant="nobody")

    assert (seen["tenant"], seen["total"]["requests"]) == (TENANT, 1)
    assert removed == seen
    assert (missing.status_code, missing.json()["error"]["param"]) == (404, "tenant")
    assert (own["tenant"], own["total"]["requests"]) == ("zeta", 0)
    assert (refused.status_code, refused.json()) == (403, unknown.json())
    assert refused.json()["error"]["code"] == "operator_only"


async def test_groups_are_days_users_and_models(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        await caller.chat()
        by_model = await usage_of(caller, group_by="model")
        by_day = await usage_of(caller)

    assert [row["model"] for row in by_model["data"]] == ["echo"]
    assert by_day["group_by"] == "day"
    assert datetime.fromisoformat(by_day["data"][0]["day"])


async def test_thirty_days_are_reported_where_none_are_named(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        report = (await caller.get(PATH)).json()

    first, last = (datetime.fromisoformat(report[name]) for name in ("from", "to"))
    assert (last - first).days == 29
    assert (report["object"], report["data"]) == ("chatserve.usage", [])


@pytest.mark.parametrize(
    ("params", "param"),
    [
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-02-30"}, "to"),
        ({"to": "0001-01-01"}, "to"),
        ({"from": "2026-01-01", "to": "9999-12-31"}, "from"),
        ({"from": "2026-02-01", "to": "2026-01-31"}, "from"),
        ({"from": "2020-01-01", "to": "2026-01-01"}, "from"),
        ({"group_by": "hour"}, "group_by"),
        ({"tenant": "no/name"}, "tenant"),
    ],
)
async def test_query_that_makes_no_sense_is_refused(
    store_url: str, params: dict[str, str], param: str
) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        reply = await caller.get(PATH, **params)

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
