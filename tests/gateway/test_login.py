"""Logging in and out, tickets, and who one is."""

import asyncio

import pytest
from gateway.gateway_helpers import Service
from gateway.secured_helpers import Secured, bearer, run_secured_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOGIN = "/v1/chatserve/login"
UNKNOWN = "csk_0123456789abcdef_" + "a" * 43


async def test_a_login_gives_a_cookie_that_scripts_and_other_sites_cannot_use(
    secured: Secured,
) -> None:
    reply = await secured.service.http.post(LOGIN, json={"key": secured.member.secret})
    secured.service.http.cookies.clear()

    token, *attributes = reply.headers["set-cookie"].split("; ")
    assert token.startswith("chatserve-login=csl_")
    assert {each.lower() for each in attributes} == {
        "httponly",
        "samesite=strict",
        "path=/",
        "max-age=604800",
    }
    assert reply.json() == {
        "object": "chatserve.identity",
        "tenant": "acme",
        "user": "bob",
        "role": "member",
        "key_id": secured.member.key.key_id,
    }


async def test_the_cookie_of_a_page_over_https_never_travels_in_the_clear(store_url: str) -> None:
    headers = {"host": "chat.example", "origin": "https://chat.example"}
    async with run_secured_service(store_url, allowed_hosts=("chat.example",)) as secured:
        reply = await secured.service.http.post(
            LOGIN, json={"key": secured.member.secret}, headers=headers
        )

    assert "; Secure" in reply.headers["set-cookie"]


async def test_after_a_logout_the_cookie_opens_nothing(secured: Secured) -> None:
    cookie = await secured.cookie(secured.member)
    http = secured.service.http

    reply = await http.post("/v1/chatserve/logout", headers={**cookie, **secured.origin})
    after = await http.get("/v1/chatserve/me", headers=cookie)
    again = await http.post("/v1/chatserve/logout")

    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert after.status_code == 401
    assert again.status_code == 200


async def test_a_logout_by_cookie_needs_an_origin_as_all_changes_do(secured: Secured) -> None:
    cookie = await secured.cookie(secured.member)
    http = secured.service.http

    refused = await http.post("/v1/chatserve/logout", headers=cookie)
    after = await http.get("/v1/chatserve/me", headers=cookie)

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_required")
    assert after.status_code == 200


async def test_a_login_ends_with_its_key(secured: Secured) -> None:
    issued = await secured.issue()
    cookie = await secured.cookie(issued)
    await secured.service.store.api_keys.revoke(issued.key.key_id)

    async with asyncio.timeout(2):
        status = 200
        while status == 200:
            reply = await secured.service.http.get("/v1/chatserve/me", headers=cookie)
            status = reply.status_code

    assert status == 401


async def test_a_login_from_a_foreign_page_is_refused(secured: Secured) -> None:
    reply = await secured.service.http.post(
        LOGIN, json={"key": secured.member.secret}, headers={"origin": "https://evil.example"}
    )

    assert reply.status_code == 403
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("body", [{}, {"key": 1}, {"key": "x" * 5000}, []], ids=str)
async def test_a_body_that_is_no_login_is_refused_without_repeating_it(
    store_url: str, body: object
) -> None:
    async with run_secured_service(store_url) as secured:
        reply = await secured.service.http.post(LOGIN, json=body)

    assert reply.status_code in (400, 413)
    assert "xxx" not in reply.text


async def test_of_ten_wrong_logins_at_once_five_are_looked_at(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        replies = await asyncio.gather(
            *(secured.service.http.post(LOGIN, json={"key": UNKNOWN}) for _ in range(10))
        )
        right = await secured.service.http.post(LOGIN, json={"key": secured.member.secret})
        by_key = await secured.service.http.get("/v1/models", headers=bearer(secured.member))

    assert sorted(reply.status_code for reply in replies) == [401] * 5 + [429] * 5
    assert right.status_code == 429
    assert int(right.headers["retry-after"]) in range(1, 31)
    assert by_key.status_code == 200


async def test_logins_that_succeed_are_not_counted(store_url: str) -> None:
    async with run_secured_service(store_url) as secured:
        replies = [
            await secured.service.http.post(LOGIN, json={"key": secured.member.secret})
            for _ in range(10)
        ]

    assert {reply.status_code for reply in replies} == {200}


async def test_everybody_can_ask_who_they_are(secured: Secured) -> None:
    reply = await secured.service.http.get("/v1/chatserve/me", headers=bearer(secured.operator))

    assert (reply.json()["user"], reply.json()["role"]) == ("root", "operator")
    assert reply.headers["content-type"] == "application/json"


async def test_where_no_key_is_needed_there_are_no_tickets(shared_service: Service) -> None:
    reply = await shared_service.http.post("/v1/chatserve/ticket")

    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "no_keys")
