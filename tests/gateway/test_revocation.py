"""What becomes of sockets, answers and stored things when a key or a tenant goes."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from gateway.gateway_helpers import Service, chat, outcome_of, response_ids
from gateway.secured_helpers import Secured, bearer, run_secured_service

from chatserve.engine.api import FinishReason, RequestId
from chatserve.gateway.ids import new_id
from chatserve.identity import Owner
from chatserve.store.api_keys import ApiKey, IssuedKey
from chatserve.store.tenant_removal import Removed, remove_tenant
from chatserve.store.tenants import Tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def conversation_of(secured: Secured, issued: IssuedKey) -> str:
    reply = await secured.service.http.post("/v1/conversations", json={}, headers=bearer(issued))
    conversation_id: str = reply.json()["id"]
    return conversation_id


async def test_the_sockets_of_a_revoked_key_are_closed_and_others_stay(secured: Secured) -> None:
    issued = await secured.issue()
    async with (
        secured.service.socket(additional_headers=bearer(secured.member)) as other,
        secured.service.socket(additional_headers=bearer(issued)) as socket,
    ):
        await secured.service.store.api_keys.revoke(issued.key.key_id)
        close = await socket.receive_close()
        await other.create("Hi")
        events = await other.receive_answer()

    assert (close.code, close.reason) == (1008, "this access has ended: show a valid key")
    assert events[-1]["type"] == "response.completed"


async def test_a_socket_of_a_login_is_closed_with_its_key(secured: Secured) -> None:
    issued = await secured.issue()
    cookie = await secured.cookie(issued)
    async with secured.service.socket(additional_headers={**cookie, **secured.origin}) as socket:
        await secured.service.store.api_keys.revoke(issued.key.key_id)

        close = await socket.receive_close()

    assert close.code == 1008


async def test_a_logout_closes_the_sockets_of_its_login_and_no_others(secured: Secured) -> None:
    http = secured.service.http
    left, stays = await secured.cookie(secured.member), await secured.cookie(secured.member)
    issued = await http.post("/v1/chatserve/ticket", headers={**left, **secured.origin})
    ticket = issued.json()["ticket"]
    async with (
        secured.service.socket(additional_headers={**left, **secured.origin}) as socket,
        secured.service.socket(additional_headers={**stays, **secured.origin}) as other,
    ):
        await http.post("/v1/chatserve/logout", headers={**left, **secured.origin})

        close = await socket.receive_close()
        await other.create("Hi")
        events = await other.receive_answer()
    status, _ = await secured.refused(subprotocols=[f"chatserve-ticket.{ticket}"])

    assert close.code == 1008
    assert events[-1]["type"] == "response.completed"
    assert status == 401


async def test_a_body_that_arrives_after_its_tenant_has_gone_stores_nothing(
    secured: Secured,
) -> None:
    """It was authenticated by its head, and stored what nothing erased any more."""
    store = secured.service.store
    await store.tenants.add(Tenant("slow"))
    issued = await store.api_keys.add(ApiKey("", "slow", "ann"))
    has_gone = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"title": '
        await has_gone.wait()
        yield b'"late"}'

    sending = asyncio.create_task(
        secured.service.http.post("/v1/conversations", content=body(), headers=bearer(issued))
    )
    await asyncio.wait({sending}, timeout=0.2)  # its head has arrived
    await remove_tenant(store, "slow")
    has_gone.set()
    reply = await sending

    assert reply.status_code == 401
    assert await store.sessions.list(Owner("slow", "ann"), 10) == []


async def test_a_second_removal_takes_what_was_stored_after_the_first(secured: Secured) -> None:
    store, late = secured.service.store, Owner("gone", "ann")
    await store.tenants.add(Tenant("gone"))
    await remove_tenant(store, "gone")
    await store.sessions.create(late, new_id("conv_", "gone"))

    removed = await remove_tenant(store, "gone")

    assert removed is None
    assert await store.sessions.list(late, 10) == []


async def test_a_rotation_closes_the_sockets_of_the_old_secret(secured: Secured) -> None:
    issued = await secured.issue()
    async with secured.service.socket(additional_headers=bearer(issued)) as socket:
        rotated = await secured.service.store.api_keys.rotate(issued.key.key_id)

        close = await socket.receive_close()

    assert rotated is not None
    assert close.code == 1008


async def test_the_sockets_of_a_key_are_closed_when_it_expires(secured: Secured) -> None:
    issued = await secured.issue(expires_at=int(time.time()) + 4)
    async with secured.service.socket(additional_headers=bearer(issued)) as socket:
        close = await socket.receive_close()

    assert close.code == 1008


async def test_a_running_answer_of_a_revoked_key_ends_although_its_session_would_keep_it(
    secured: Secured,
) -> None:
    issued = await secured.issue()
    conversation_id = await conversation_of(secured, issued)
    service = secured.service
    async with service.socket(additional_headers=bearer(issued)) as socket:
        service.model.hold()
        await socket.create("Hi", conversation=conversation_id)
        events = await socket.receive_until("response.in_progress")
        await service.wait_until_held()
        await service.store.api_keys.revoke(issued.key.key_id)
        outcome = await outcome_of(service.store, events[0]["response"]["id"])
    service.model.release()

    assert outcome.finish_reason is FinishReason.ABORT
    await service.wait_until_idle()


async def test_a_stream_over_http_of_a_revoked_key_ends(secured: Secured) -> None:
    issued = await secured.issue()
    service = secured.service
    service.model.hold()
    posting = service.spawn(
        service.http.post(
            "/v1/chat/completions", json=chat("Hi", stream=True), headers=bearer(issued)
        )
    )
    await service.wait_until_held()

    await service.store.api_keys.revoke(issued.key.key_id)

    async with asyncio.timeout(10):
        reply = await posting
    service.model.release()
    assert reply.status_code == 200
    await service.wait_until_idle()


async def fill(secured: Secured, issued: IssuedKey) -> tuple[str, str]:
    """Let a user have a session with an answer, and a response in none; return their ids."""
    conversation_id = await conversation_of(secured, issued)
    async with secured.service.socket(additional_headers=bearer(issued)) as socket:
        await socket.create("Hi", conversation=conversation_id)
        await socket.receive_answer()
        await socket.create("Hi")
        response_id: str = (await socket.receive_answer())[-1]["response"]["id"]
    return conversation_id, response_id


async def test_removing_a_tenant_erases_all_that_it_had(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        conversation_id, response_id = await fill(secured, secured.member)
        store = secured.service.store
        async with secured.service.socket(additional_headers=bearer(secured.member)) as socket:
            removed = await remove_tenant(store, "acme")
            close = await socket.receive_close()
        kept = [key for key in await store.commands.call("KEYS", "*") if "acme" in key]

        assert removed == Removed(num_keys=2, num_prompts=0, num_sessions=1, num_responses=1)
        assert close.code == 1008
        assert await store.sessions.get(conversation_id) is None
        assert await store.responses.get(RequestId(response_id)) is None
        assert await store.sessions.list(Owner("acme", "bob"), 10) == []
        assert [tenant.name for tenant in await store.tenants.list(10)] == ["zeta"]
        assert not [key for key in kept if "usage" not in key], kept
        assert await remove_tenant(store, "acme") is None


async def test_the_workers_drop_what_is_cached_of_a_removed_tenant(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        await fill(secured, secured.member)
        cached = secured.service.engine.stats().pages_cached

        await remove_tenant(secured.service.store, "acme")

        await until_nothing_is_cached(secured.service)
        assert cached > 0


async def test_removing_a_tenant_cancels_what_is_in_flight(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        service = secured.service
        conversation_id = await conversation_of(secured, secured.member)
        async with service.socket(additional_headers=bearer(secured.member)) as socket:
            service.model.hold()
            await socket.create("Hi", conversation=conversation_id)
            await socket.receive_until("response.in_progress")
            await service.wait_until_held()

            await remove_tenant(service.store, "acme")
            close = await socket.receive_close()

        service.model.release()
        await service.wait_until_idle()
        assert close.code == 1008


async def test_a_tenant_that_comes_back_finds_nothing_of_the_one_before(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        conversation_id, response_id = await fill(secured, secured.stranger)
        http, store = secured.service.http, secured.service.store
        await remove_tenant(store, "zeta")
        await store.tenants.add(Tenant("zeta"))
        headers = bearer(await store.api_keys.add(ApiKey("", "zeta", "bob")))

        response = await http.get(f"/v1/responses/{response_id}", headers=headers)
        conversation = await http.get(f"/v1/conversations/{conversation_id}", headers=headers)
        listed = await http.get("/v1/chatserve/conversations", headers=headers)

    assert (response.status_code, conversation.status_code) == (404, 404)
    assert listed.json()["data"] == []


async def test_what_was_never_to_be_kept_is_erased_with_its_tenant(store_url: str) -> None:
    """Only what lived for more than an hour was; the rest stayed readable until it ran out."""
    async with run_secured_service(store_url) as secured:
        http, store, headers = secured.service.http, secured.service.store, bearer(secured.stranger)
        unstored = {"model": "echo", "input": "secret", "store": False}
        await http.post("/v1/responses", json=unstored, headers=headers)
        await http.post("/v1/chat/completions", json=chat("secret"), headers=headers)
        before = await response_ids(store)

        removed = await remove_tenant(store, "zeta")

        assert len(before) == 2
        assert removed is not None
        assert removed.num_responses == 2
        assert await response_ids(store) == set()
        assert await store.commands.call("KEYS", "*:log:*") == []


async def test_a_create_of_a_tenant_that_comes_back_is_not_answered_by_the_one_before(
    store_url: str,
) -> None:
    """Its first answer was replayed, to whoever had the same user, key and body."""
    async with run_secured_service(store_url) as secured:
        http, store = secured.service.http, secured.service.store

        async def create(issued: IssuedKey) -> str:
            headers = {**bearer(issued), "idempotency-key": "once"}
            body = {"model": "echo", "input": "Hi"}
            reply = await http.post("/v1/responses", json=body, headers=headers)
            response_id: str = reply.json()["id"]
            return response_id

        first = await create(secured.stranger)
        again = await create(secured.stranger)
        await store.tenants.close("zeta")
        await store.tenants.forget("zeta")  # and what it had is still there
        await store.tenants.add(Tenant("zeta"))
        another = await create(await store.api_keys.add(ApiKey("", "zeta", "bob")))

    assert first == again
    assert another != first


async def until_nothing_is_cached(service: Service) -> None:
    async with asyncio.timeout(10):
        while service.engine.stats().pages_cached:  # noqa: ASYNC110 - the engine has no event
            await asyncio.sleep(0.005)
