"""The operator's endpoints for tenants and keys."""

import asyncio
import time
from typing import Any

import pytest
from gateway.gateway_helpers import Event
from gateway.secured_helpers import Secured, bearer

pytestmark = pytest.mark.asyncio(loop_scope="module")

TENANTS = "/v1/chatserve/tenants"
KEYS = "/v1/chatserve/keys"


async def ask(secured: Secured, method: str, path: str, **options: Any) -> tuple[int, Event]:
    """Return status and body of a reply to the operator."""
    reply = await secured.service.http.request(
        method, path, headers=bearer(secured.operator), **options
    )
    return reply.status_code, reply.json()


async def test_a_tenant_is_added_shown_changed_and_removed(secured: Secured) -> None:
    body = {"name": "new", "quotas": {"connections": 3}, "models": ["echo"]}

    added = await ask(secured, "POST", TENANTS, json=body)
    shown = await ask(secured, "GET", f"{TENANTS}/new")
    changed = await ask(secured, "POST", f"{TENANTS}/new", json={"quotas": {}})
    removed = await ask(secured, "DELETE", f"{TENANTS}/new")
    gone = await ask(secured, "GET", f"{TENANTS}/new")

    assert added == shown
    assert added[0] == 200
    assert {name: added[1][name] for name in body} == body
    assert (changed[1]["quotas"], changed[1]["models"]) == ({}, ["echo"])
    assert (removed[1]["deleted"], removed[1]["keys"]) == (True, 0)
    assert (gone[0], gone[1]["error"]["code"]) == (404, "tenant_not_found")


async def test_tenants_are_listed_in_pages(secured: Secured) -> None:
    _, first = await ask(secured, "GET", TENANTS, params={"limit": 1})
    _, rest = await ask(secured, "GET", TENANTS, params={"after": first["data"][0]["name"]})

    assert first["has_more"]
    assert not rest["has_more"]
    assert [tenant["name"] for tenant in (*first["data"], *rest["data"])] == ["acme", "zeta"]


async def test_a_key_is_added_shown_rotated_and_revoked(secured: Secured) -> None:
    body = {"tenant": "acme", "user": "eve", "label": "laptop", "quotas": {"connections": 1}}

    status, added = await ask(secured, "POST", KEYS, json=body)
    path = f"{KEYS}/{added['id']}"
    _, shown = await ask(secured, "GET", path)
    _, rotated = await ask(secured, "POST", f"{path}/rotate", json={"grace_s": 5.5})
    _, again = await ask(secured, "POST", f"{path}/rotate")
    _, revoked = await ask(secured, "DELETE", path)
    gone, error = await ask(secured, "DELETE", path)

    assert status == 200
    assert added == {**shown, "secret": added["secret"]}
    assert (added["role"], added["expires_at"], added["quotas"]) == (
        "member",
        None,
        {"connections": 1},
    )
    assert len({added["secret"], rotated["secret"], again["secret"]}) == 3
    assert revoked["deleted"]
    assert (gone, error["error"]["code"]) == (404, "key_not_found")


async def test_a_new_key_works_at_once(secured: Secured) -> None:
    _, added = await ask(secured, "POST", KEYS, json={"tenant": "acme", "user": "eve"})

    reply = await secured.service.http.get(
        "/v1/chatserve/me", headers={"authorization": f"Bearer {added['secret']}"}
    )

    assert (reply.status_code, reply.json()["user"]) == (200, "eve")


async def test_a_key_is_changed_at_once(secured: Secured) -> None:
    _, added = await ask(secured, "POST", KEYS, json={"tenant": "acme", "user": "eve"})
    path, caller = f"{KEYS}/{added['id']}", {"authorization": f"Bearer {added['secret']}"}
    before = await secured.service.http.get("/v1/chatserve/tenants", headers=caller)

    change = {"role": "operator", "label": "laptop", "quotas": {"connections": 1}}
    status, changed = await ask(secured, "POST", path, json=change)
    await ask(secured, "POST", path, json={"expires_at": changed["created_at"] + 10**6})
    _, shown = await ask(secured, "POST", path, json={"expires_at": "never"})
    after = await secured.service.http.get("/v1/chatserve/tenants", headers=caller)

    assert status == 200
    assert {name: changed[name] for name in change} == change
    assert shown == changed
    assert (before.status_code, after.status_code) == (403, 200)


async def test_the_holder_of_an_expired_key_is_told_so(secured: Secured) -> None:
    """It used to be called no valid key, as if it had been mistyped."""
    issued = await secured.issue(expires_at=int(time.time()) + 1)
    http = secured.service.http
    await asyncio.sleep(1.1)

    refused = await http.get("/v1/models", headers=bearer(issued))
    login = await http.post("/v1/chatserve/login", json={"key": issued.secret})
    wrong = await http.get("/v1/models", headers={"authorization": f"Bearer {issued.secret[:-1]}!"})

    assert [(each.status_code, each.json()["error"]["code"]) for each in (refused, login)] == [
        (401, "key_expired"),
        (401, "key_expired"),
    ]
    assert "expired" in refused.json()["error"]["message"]
    assert wrong.json()["error"]["code"] == "invalid_api_key"
    assert (await ask(secured, "POST", f"{KEYS}/{issued.key.key_id}/rotate"))[0] == 409


async def test_keys_are_listed_by_tenant_without_their_secrets(secured: Secured) -> None:
    _, first = await ask(secured, "GET", KEYS, params={"tenant": "acme", "limit": 1})
    last_id = first["data"][0]["id"]
    _, rest = await ask(secured, "GET", KEYS, params={"tenant": "acme", "after": last_id})
    _, theirs = await ask(secured, "GET", KEYS, params={"tenant": "zeta"})
    unknown = [
        (await ask(secured, "GET", KEYS, params={name: "unknown"}))[0]
        for name in ("after", "tenant")
    ]

    ids = [key["id"] for key in (*first["data"], *rest["data"])]
    assert {secured.member.key.key_id, secured.operator.key.key_id} <= set(ids)
    assert len(set(ids)) == len(ids)
    assert [key["id"] for key in theirs["data"]] == [secured.stranger.key.key_id]
    assert not any("secret" in key or "digest" in key for key in rest["data"])
    assert unknown == [404, 404]


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        (TENANTS, {"name": "a/b"}, 400, "name"),
        (TENANTS, {}, 400, "name"),
        (TENANTS, {"name": "x", "quotas": {"connections": -1}}, 400, "quotas.connections"),
        (TENANTS, {"name": "x", "quotas": {"connections": "many"}}, 400, "quotas.connections"),
        (TENANTS, {"name": "acme"}, 409, "name"),
        (f"{TENANTS}/unknown", {"models": []}, 404, None),
        (KEYS, {"tenant": "acme"}, 400, "user"),
        (KEYS, {"tenant": "acme", "user": "eve", "role": "root"}, 400, "role"),
        (KEYS, {"tenant": "acme", "user": "eve", "expires_at": 1}, 400, "expires_at"),
        (KEYS, {"tenant": "unknown", "user": "eve"}, 404, None),
        (f"{KEYS}/unknown", {"label": "x"}, 404, None),
        (f"{KEYS}/unknown/rotate", {}, 404, None),
        (f"{KEYS}/unknown/rotate", {"grace_s": -1}, 400, "grace_s"),
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(
    secured: Secured, path: str, body: Event, status: int, param: str | None
) -> None:
    refused, reply = await ask(secured, "POST", path, json=body)

    assert (refused, reply["error"]["param"]) == (status, param)


@pytest.mark.parametrize(
    ("path", "body", "param", "meant"),
    [
        (TENANTS, {"names": "x"}, "names", "name"),
        (TENANTS, {"name": "typo", "model": ["echo"]}, "model", "models"),
        (
            f"{TENANTS}/acme",
            {"quotas": {"requests_per_min": 60}},
            "quotas.requests_per_min",
            "requests_per_minute",
        ),
        (f"{TENANTS}/acme", {"quota": {"connections": 1}}, "quota", "quotas"),
        (KEYS, {"tenant": "acme", "user": "eve", "expires": 1}, "expires", "expires_at"),
        (
            KEYS,
            {"tenant": "acme", "user": "eve", "quotas": {"connection": 1}},
            "quotas.connection",
            "connections",
        ),
        (f"{KEYS}/unknown", {"expires": 5}, "expires", "expires_at"),
        (f"{KEYS}/unknown/rotate", {"grace": 5}, "grace", "grace_s"),
    ],
    ids=str,
)
async def test_a_name_that_nobody_knows_is_refused_and_changes_nothing(
    secured: Secured, path: str, body: Event, param: str, meant: str
) -> None:
    """A misspelt quota used to take all quotas of the tenant away."""
    await ask(secured, "POST", f"{TENANTS}/acme", json={"quotas": {"connections": 99}})
    before = [await ask(secured, "GET", every) for every in (TENANTS, KEYS)]

    status, reply = await ask(secured, "POST", path, json=body)

    error = reply["error"]
    assert (status, error["code"], error["param"]) == (400, "unknown_parameter", param)
    assert f"did you mean {meant}?" in error["message"]
    assert [await ask(secured, "GET", every) for every in (TENANTS, KEYS)] == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{TENANTS}?limits=1"),
        ("POST", f"{TENANTS}?name=x"),
        ("DELETE", f"{TENANTS}/acme?dry_run=true"),
        ("GET", f"{KEYS}?tenants=acme"),
        ("DELETE", f"{KEYS}/unknown?tenant=acme"),
        ("GET", "/v1/chatserve/usage?tenants=acme"),
    ],
)
async def test_a_parameter_that_nobody_knows_is_refused(
    secured: Secured, method: str, path: str
) -> None:
    status, reply = await ask(secured, method, path)
    tenant = await ask(secured, "GET", f"{TENANTS}/acme")

    assert (status, reply["error"]["code"]) == (400, "unknown_parameter")
    assert not tenant[1]["is_being_removed"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", TENANTS),
        ("POST", f"{TENANTS}/acme"),
        ("DELETE", f"{TENANTS}/acme"),
        ("GET", f"{TENANTS}/acme"),
        ("POST", KEYS),
        ("GET", f"{KEYS}/unknown"),
        ("POST", f"{KEYS}/unknown"),
        ("DELETE", f"{KEYS}/unknown"),
        ("POST", f"{KEYS}/unknown/rotate"),
    ],
)
async def test_members_administer_nothing(secured: Secured, method: str, path: str) -> None:
    reply = await secured.service.http.request(
        method, path, json={"name": "mine"}, headers=bearer(secured.member)
    )

    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "operator_only")
