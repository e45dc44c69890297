"""Changes whose replies are lost: each is sent once more, and says what it said the first time."""

import pytest
from store.store_helpers import (
    LEASE_MS,
    MODEL,
    OWNER,
    append,
    ending,
    enqueue,
    make_record,
    make_request,
    messages_of,
)

from chatserve.engine.api import RequestId
from chatserve.store.api_keys import ApiKey, parse_secret
from chatserve.store.codec import Command
from chatserve.store.connection import Store
from chatserve.store.fair_queue import Place
from chatserve.store.queue import CancelOutcome
from chatserve.store.scripts import Script
from chatserve.store.sessions import Message, SessionChange
from chatserve.store.tenants import Tenant

A = RequestId("a")


@pytest.fixture
def repeating(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that gets every script twice, as when the first reply is lost."""
    once = store.commands.run_many

    async def twice(script: Script, calls: list[Command]) -> list[object]:
        await once(script, calls)
        return await once(script, calls)

    monkeypatch.setattr(store.commands, "run_many", twice)
    return store


def message(name: str) -> Message:
    return Message(name, "user", "text", 1_700_000_000)


async def test_request_is_queued_once_and_cancelled_once(repeating: Store) -> None:
    place = await repeating.queue.enqueue(make_request("a"), make_record("a"), max_queue=10)
    depth = await repeating.queue.depth(MODEL)
    outcome = await repeating.queue.cancel(A)

    assert (place, depth) == (Place(0, None), 1)
    assert outcome is CancelOutcome.ALREADY_FINISHED
    assert len(await repeating.log.read(A)) == 3


async def test_events_are_appended_once(repeating: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await enqueue(repeating, "a")
    with monkeypatch.context() as direct:  # a claim that is repeated takes the next request
        direct.undo()
        await repeating.queue.claim("w", MODEL, 1, LEASE_MS)

    await append(repeating, ending("a", 1, 2))

    assert [entry.sequence_number for entry in await repeating.log.read(A)] == [0, 1, 2]


async def test_tenant_and_key_are_added_and_rotated_once(repeating: Store) -> None:
    tenant = await repeating.tenants.add(Tenant("acme"))
    issued = await repeating.api_keys.add(ApiKey("", "acme", "ann"))
    rotated = await repeating.api_keys.rotate(issued.key.key_id, grace_s=1000)

    assert tenant.name == "acme"
    assert rotated is not None
    for secret in (issued.secret, rotated.secret):
        grant = parse_secret(secret)
        assert grant is not None
        assert await repeating.api_keys.check(grant) is not None


async def test_conversation_is_made_changed_and_appended_to_once(repeating: Store) -> None:
    session = await repeating.sessions.create(OWNER, "s", messages=[message("m1")])
    changed = await repeating.sessions.update(
        "s", SessionChange(title="new", version=session.version)
    )
    await repeating.sessions.append("s", [message("m2")])

    assert changed is not None
    assert (changed.title, changed.version) == ("new", session.version + 1)
    messages = await messages_of(repeating, "s")
    assert [each.message_id for each in messages] == ["m1", "m2"]
