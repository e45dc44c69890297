"""`GET /v1/chatserve/cache`: what members, strangers and operators see of a running service."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from engine.prompt_helpers import PinningEngine, status_of
from gateway.callers import Callers, Headers, run_for_callers
from gateway.gateway_helpers import TIMEOUT_S, Service, WorkerSettings, chat

from chatserve.store import keys
from chatserve.store.embedded import EmbeddedServer
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.tenants import Tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chatserve/cache"
PREAMBLE = "Be kind to whoever asks you something, and say so when you do not know."
ACME_SAYS = "Swordfish is the password of the vault."
ZETA_SAYS = "Ostriches lay eggs, but how long do they boil?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers(store_server: EmbeddedServer) -> AsyncIterator[Callers]:
    """A service with a preamble, on which a member of each tenant has asked something."""
    url = store_server.url.replace("db=0", "db=5")
    worker = WorkerSettings(engine=PinningEngine())
    async with run_for_callers(url, worker=worker) as callers:
        store = callers.service.store
        await store.prompts.add(NamedPrompt("", "preamble", PREAMBLE))
        await callers.service.services.prompts.reload()
        preamble = await store.prompts.get("", "preamble")
        assert preamble is not None
        await status_of(store, preamble, "worker-1")
        await callers.post("/v1/chat/completions", callers.acme, **chat(ACME_SAYS))
        await callers.post("/v1/chat/completions", callers.zeta, **chat(ZETA_SAYS))
        yield callers


async def seen(callers: Callers, headers: Headers, query: str = "") -> dict[str, Any]:
    """Return the reply with the one worker, once it shows both answers."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            reply: dict[str, Any] = await callers.get(PATH + query, headers)
            if reply["workers"] and reply["workers"][0]["steps"]:
                return reply
            await asyncio.sleep(0.05)


async def seen_running(callers: Callers) -> dict[str, Any]:
    """Return the worker once it shows a request of acme; a snapshot falls between two tokens."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            callers.service.model.allow(1)
            (worker,) = (await seen(callers, callers.acme))["workers"]
            if worker["requests"]:
                return dict(worker)
            await asyncio.sleep(0.05)


def texts_of(reply: dict[str, Any]) -> str:
    return " ".join(node["text"] or "" for node in reply["workers"][0]["nodes"])


async def test_member_sees_the_preamble_and_its_own(callers: Callers) -> None:
    reply = await seen(callers, callers.acme)

    (worker,) = reply["workers"]
    assert (reply["object"], reply["view"]) == ("chatserve.cache", "tenant")
    assert worker["model"] == "echo"
    assert {node["scope"] for node in worker["nodes"]} == {"public", "mine"}
    assert any(node["pinned"] for node in worker["nodes"] if node["scope"] == "public")
    assert "Be kind" in texts_of(reply)
    assert "Swordfish" in texts_of(reply)


async def test_stranger_learns_nothing_of_it(callers: Callers) -> None:
    ours, theirs = await seen(callers, callers.acme), await seen(callers, callers.zeta)

    assert "Swordfish" not in str(theirs)
    assert "Ostriches" in texts_of(theirs)
    assert "acme" not in str(theirs)
    own = {node["id"] for node in ours["workers"][0]["nodes"] if node["scope"] == "mine"}
    assert own
    assert own.isdisjoint(node["id"] for node in theirs["workers"][0]["nodes"])
    assert "worker-1" not in str(theirs)


async def test_operator_sees_tenants_by_name_and_not_what_they_say(callers: Callers) -> None:
    reply = await seen(callers, callers.operator)

    (worker,) = reply["workers"]
    assert (reply["view"], worker["id"]) == ("all", "worker-1")
    assert {node["tenant"] for node in worker["nodes"]} == {None, "acme", "zeta"}
    assert "Be kind" in texts_of(reply)
    assert "Swordfish" not in str(reply)
    assert "Ostriches" not in str(reply)
    assert len(worker["pages"]) == worker["num_pages"]


async def test_operator_narrows_the_view_to_a_tenant(callers: Callers) -> None:
    reply = await seen(callers, callers.operator, "?tenant=zeta")

    assert {node["tenant"] for node in reply["workers"][0]["nodes"]} == {None, "zeta"}


async def test_another_tenant_is_for_operators(callers: Callers) -> None:
    there = await callers.refusal("GET", f"{PATH}?tenant=acme", callers.zeta)
    absent = await callers.refusal("GET", f"{PATH}?tenant=nobody", callers.zeta)

    assert there == absent
    assert (there[0], there[1]["code"]) == (403, "operator_only")
    assert (await seen(callers, callers.zeta, "?tenant=zeta"))["view"] == "tenant"


async def test_query_that_makes_no_sense_is_refused(callers: Callers) -> None:
    by_tenant = await callers.refusal("GET", f"{PATH}?tenant=no/name", callers.operator)
    by_model = await callers.refusal("GET", f"{PATH}?model=none", callers.acme)

    assert (by_tenant[0], by_tenant[1]["param"]) == (400, "tenant")
    assert (by_model[0], by_model[1]["code"]) == (404, "model_not_found")
    assert len((await seen(callers, callers.acme, "?model=echo"))["workers"]) == 1


async def test_without_a_key_there_is_nothing(callers: Callers) -> None:
    status, error = await callers.refusal("GET", PATH, {})

    assert (status, error["type"]) == (401, "authentication_error")


async def test_worker_of_a_model_that_the_tenant_may_not_use_is_not_there(
    callers: Callers,
) -> None:
    store = callers.service.store
    await store.tenants.add(Tenant("small", models=("another",)))
    issued = await callers.post(
        "/v1/chatserve/keys", callers.operator, tenant="small", user="sam", role="member"
    )

    reply = await callers.get(PATH, {"authorization": f"Bearer {issued['secret']}"})

    assert reply["workers"] == []


async def test_running_request_shows_its_pages(callers: Callers) -> None:
    model = callers.service.model
    model.hold()
    answering = asyncio.create_task(
        callers.post("/v1/chat/completions", callers.acme, **chat("What now? " * 20))
    )
    try:
        worker = await seen_running(callers)
    finally:
        model.release()
        await answering

    (request,) = worker["requests"]
    assert request["id"].startswith("chatcmpl-")
    assert request["num_cached_tokens"] > 0
    assert all(worker["pages"][page] not in ".?cp" for page in request["pages"])


async def test_all_who_look_share_one_snapshot(callers: Callers) -> None:
    both = await asyncio.gather(
        *(callers.get(PATH, who) for who in (callers.acme, callers.zeta, callers.operator))
    )

    assert len({reply["workers"][0]["taken_at"] for reply in both}) == 1


async def test_open_service_sees_all_and_reads_its_own(shared_service: Service) -> None:
    await shared_service.http.post("/v1/chat/completions", json=chat("Why is it blue?"))

    first = (await shared_service.http.get(PATH)).json()

    assert first["view"] == "all"
    assert "Why is it blue?" in texts_of(first)
    watched = keys.GLOBAL.key(keys.CACHE_WATCH + "worker-1")
    assert await shared_service.store.commands.call("PTTL", watched) > 0
