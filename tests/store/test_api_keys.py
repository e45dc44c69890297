"""Keys: what is stored of a secret, and which secret holds when."""

import asyncio
import hmac
import time
from dataclasses import replace
from typing import Any

import pytest

from chatserve.errors import Conflict, InvalidRequest, NotFound
from chatserve.identity import Identity, Role
from chatserve.store import api_keys, keys
from chatserve.store.api_keys import ApiKey, Grant, IssuedKey, KeyChange, parse_secret, place_of
from chatserve.store.codec import pairs
from chatserve.store.connection import Store
from chatserve.store.tenant_bell import AccessNews
from chatserve.store.tenants import Quotas, Tenant

KEY = ApiKey("", "acme", "bob@example.org", label="Bob's „laptop“", quotas=Quotas(connections=2))


async def issue(store: Store, key: ApiKey = KEY) -> IssuedKey:
    if await store.tenants.get(key.tenant) is None:
        await store.tenants.add(Tenant(key.tenant))
    return await store.api_keys.add(key)


def grant_of(secret: str) -> Grant:
    grant = parse_secret(secret)
    assert grant is not None
    return grant


async def record_of(store: Store, key_id: str) -> dict[str, str]:
    name = keys.GLOBAL.key(keys.API_KEY + key_id)
    return pairs(await store.commands.call("HGETALL", name))


async def set_field(store: Store, key_id: str, field: str, value: float) -> None:
    await store.commands.call("HSET", keys.GLOBAL.key(keys.API_KEY + key_id), field, value)


async def test_a_secret_leads_to_its_key_and_identity(store: Store) -> None:
    issued = await issue(store, replace(KEY, role=Role.OPERATOR))

    valid = await store.api_keys.check(grant_of(issued.secret))

    assert valid is not None
    assert valid.key == issued.key
    assert valid.valid_until is None
    assert valid.key.identity == Identity(
        "acme", "bob@example.org", Role.OPERATOR, issued.key.key_id
    )
    assert replace(issued.key, key_id="", created_at=0) == replace(KEY, role=Role.OPERATOR)


async def test_the_store_never_holds_a_secret(store: Store) -> None:
    issued = await issue(store)
    random_part = issued.secret.rpartition("_")[2]

    record = await record_of(store, issued.key.key_id)

    assert len(record["digest"]) == 64
    assert random_part not in str(record)
    assert random_part not in repr(issued)
    assert record["digest"] not in repr(grant_of(issued.secret))


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "csk_",
        "csk_0123456789abcdef_",
        "sk-" + "a" * 40,
        "csk_0123456789abcdef_" + "a" * 44,
        "csk_0123456789ABCDEF_" + "a" * 43,
        "csk_0123456789abcdef_" + "a" * 42 + "\n",
    ],
)
def test_a_text_of_another_form_is_no_secret(secret: str) -> None:
    assert parse_secret(secret) is None


async def test_a_wrong_secret_and_an_unknown_id_cost_the_same_comparisons(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = await issue(store)
    compared: list[tuple[str, str]] = []
    compare_digest = hmac.compare_digest

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return compare_digest(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    right = grant_of(issued.secret)
    wrong = Grant(right.key_id, "f" * 64)
    unknown = Grant("0" * 16, right.digest)

    found = [await store.api_keys.check(grant) for grant in (right, wrong, unknown)]

    assert [each is not None for each in found] == [True, False, False]
    assert len(compared) == 6
    assert all(len(one) == len(other) == 64 for one, other in compared)


async def test_an_unknown_id_with_the_digest_of_nothing_is_no_key(store: Store) -> None:
    assert await store.api_keys.check(Grant("0" * 16, "0" * 64)) is None


async def test_an_expired_key_holds_no_more(store: Store) -> None:
    issued = await issue(store, replace(KEY, expires_at=int(time.time()) + 1000))
    grant = grant_of(issued.secret)
    valid = await store.api_keys.check(grant)

    await set_field(store, issued.key.key_id, "expires_at", int(time.time()))

    assert valid is not None
    assert valid.valid_until == issued.key.expires_at
    assert await store.api_keys.check(grant) is None


async def test_an_expired_key_is_told_from_an_unknown_one_by_its_secret_alone(
    store: Store,
) -> None:
    issued = await issue(store)
    grant = grant_of(issued.secret)
    before = await store.api_keys.has_expired(grant)

    await set_field(store, issued.key.key_id, "expires_at", int(time.time()))

    assert not before
    assert await store.api_keys.has_expired(grant)
    assert not await store.api_keys.has_expired(Grant(grant.key_id, "f" * 64))
    with pytest.raises(Conflict):
        await store.api_keys.rotate(issued.key.key_id)


async def test_a_change_leaves_the_rest_of_a_key_and_its_secret(store: Store) -> None:
    issued = await issue(store, replace(KEY, expires_at=int(time.time()) + 1000))
    cursor, _ = await store.tenant_bell.history()

    changed = await store.api_keys.update(
        issued.key.key_id, KeyChange(quotas=Quotas(tokens_per_minute=5), expires_at="never")
    )

    assert changed == replace(issued.key, quotas=Quotas(tokens_per_minute=5), expires_at=None)
    valid = await store.api_keys.check(grant_of(issued.secret))
    assert valid is not None
    assert valid.key == changed
    _, news = await store.tenant_bell.wait(cursor, 1)
    assert news == [AccessNews("acme", issued.key.key_id, is_revoked=False)]


async def test_an_expired_key_may_be_let_last_longer(store: Store) -> None:
    issued = await issue(store)
    await set_field(store, issued.key.key_id, "expires_at", int(time.time()))
    later = int(time.time()) + 1000

    labelled = await store.api_keys.update(issued.key.key_id, KeyChange(label="old"))
    await store.api_keys.update(issued.key.key_id, KeyChange(expires_at=later))

    assert labelled is not None
    assert labelled.is_expired
    assert await store.api_keys.check(grant_of(issued.secret)) is not None


@pytest.mark.parametrize(
    "change",
    [
        KeyChange(label="a\nb"),
        KeyChange(expires_at=1),
        KeyChange(quotas=Quotas(connections=-1)),
        KeyChange(quotas=Quotas(pinned_pages=1)),
    ],
    ids=str,
)
async def test_a_change_that_is_not_allowed_changes_nothing(
    store: Store, change: KeyChange
) -> None:
    issued = await issue(store)

    with pytest.raises(InvalidRequest):
        await store.api_keys.update(issued.key.key_id, change)

    assert await store.api_keys.get(issued.key.key_id) == issued.key
    assert await store.api_keys.update("0" * 16, KeyChange(label="x")) is None


async def test_after_a_rotation_only_the_new_secret_holds(store: Store) -> None:
    issued = await issue(store)

    rotated = await store.api_keys.rotate(issued.key.key_id)

    assert rotated is not None
    assert rotated.key == issued.key
    assert rotated.secret != issued.secret
    assert await store.api_keys.check(grant_of(issued.secret)) is None
    assert await store.api_keys.check(grant_of(rotated.secret)) is not None
    assert await store.api_keys.rotate("0" * 16) is None


async def test_an_old_secret_holds_for_its_grace_and_not_after_another_rotation(
    store: Store,
) -> None:
    first = await issue(store)
    second = await store.api_keys.rotate(first.key.key_id, grace_s=1000)
    assert second is not None

    old = await store.api_keys.check(grant_of(first.secret))
    new = await store.api_keys.check(grant_of(second.secret))
    await store.api_keys.rotate(first.key.key_id, grace_s=1000)

    assert old is not None
    assert old.valid_until is not None
    assert 900 < old.valid_until - time.time() <= 1000
    assert new is not None
    assert new.valid_until is None
    assert await store.api_keys.check(grant_of(first.secret)) is None
    assert await store.api_keys.check(grant_of(second.secret)) is not None


async def test_an_old_secret_holds_no_longer_than_its_grace(store: Store) -> None:
    first = await issue(store)
    await store.api_keys.rotate(first.key.key_id, grace_s=1000)

    await set_field(store, first.key.key_id, "old_until", time.time() - 1)

    assert await store.api_keys.check(grant_of(first.secret)) is None


async def test_rotating_at_once_leaves_secrets_that_were_given_out(store: Store) -> None:
    issued = await issue(store)

    rotated = await asyncio.gather(
        *(store.api_keys.rotate(issued.key.key_id, grace_s=1000) for _ in range(8))
    )

    secrets = [each.secret for each in rotated if each is not None]
    holds = [await store.api_keys.check(grant_of(secret)) is not None for secret in secrets]
    assert sum(holds) == 2


async def test_a_revoked_key_is_gone_and_told_of(store: Store) -> None:
    issued = await issue(store)
    cursor, _ = await store.tenant_bell.history()

    assert await store.api_keys.revoke(issued.key.key_id)

    assert not await store.api_keys.revoke(issued.key.key_id)
    assert await store.api_keys.check(grant_of(issued.secret)) is None
    assert await store.api_keys.get(issued.key.key_id) is None
    assert await store.api_keys.list(10) == []
    _, news = await store.tenant_bell.wait(cursor, 5_000)
    assert news == [AccessNews("acme", issued.key.key_id, is_revoked=True)]


async def test_keys_are_listed_by_tenant_in_pages_without_those_of_others(store: Store) -> None:
    for tenant in ("acme", "acme-2", "acm"):
        for _ in range(3):
            await issue(store, replace(KEY, tenant=tenant))

    ours = await store.api_keys.list(10, tenant="acme")
    first = await store.api_keys.list(2, tenant="acme")
    rest = await store.api_keys.list(10, tenant="acme", after=place_of(first[-1]))
    everybody = await store.api_keys.list(100)

    assert {key.tenant for key in ours} == {"acme"}
    assert [*first, *rest] == ours
    assert len(ours) == 3
    assert len(everybody) == 9


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tenant": "a/b"}, "tenant"),
        ({"user": ""}, "user"),
        ({"user": "a b"}, "user"),
        ({"label": "x" * 201}, "label"),
        ({"label": "a\x1b[2J"}, "label"),
        ({"expires_at": 1}, "expires_at"),
        ({"expires_at": 10**12}, "expires_at"),
        ({"quotas": Quotas(connections=-1)}, "quotas.connections"),
        ({"quotas": Quotas(pinned_pages=1)}, "quotas.pinned_pages"),
    ],
    ids=str,
)
async def test_what_is_not_allowed_is_refused(
    store: Store, fields: dict[str, Any], param: str
) -> None:
    await store.tenants.add(Tenant("acme"))

    with pytest.raises(InvalidRequest) as refusal:
        await store.api_keys.add(replace(KEY, **fields))

    assert refusal.value.param == param
    assert await store.api_keys.list(10) == []


async def test_a_tenant_that_is_not_there_or_closed_gets_no_keys(store: Store) -> None:
    await store.tenants.add(Tenant("acme"))
    await store.tenants.close("acme")

    for tenant in ("acme", "other"):
        with pytest.raises(NotFound, match="no tenant"):
            await store.api_keys.add(replace(KEY, tenant=tenant))


async def test_a_tenant_has_a_bounded_number_of_keys(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "MAX_KEYS_OF_TENANT", 1)
    await issue(store)

    with pytest.raises(Conflict, match="1 keys") as refusal:
        await issue(store)

    assert refusal.value.code == "too_many_keys"

    await issue(store, replace(KEY, tenant="acme-2"))


async def test_a_grace_out_of_range_is_refused(store: Store) -> None:
    issued = await issue(store)

    with pytest.raises(InvalidRequest, match="grace"):
        await store.api_keys.rotate(issued.key.key_id, grace_s=-1)

    assert await store.api_keys.check(grant_of(issued.secret)) is not None
