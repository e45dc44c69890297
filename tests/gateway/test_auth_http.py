"""Who may do what over HTTP: every way to show a credential, and everything without one."""

import asyncio
import time
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat, run_service
from gateway.secured_helpers import Secured, bearer
from starlette.routing import Route, WebSocketRoute
from websockets.typing import Subprotocol

from chatserve.gateway.app import create_app
from chatserve.gateway.auth import PUBLIC_PATHS
from chatserve.store import keys
from chatserve.store.tenants import Tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/v1/chat/completions"


async def test_a_key_opens_the_api(secured: Secured) -> None:
    reply = await secured.service.http.post(CHAT, json=chat("Hi"), headers=bearer(secured.member))

    assert reply.status_code == 200


async def test_without_a_credential_the_reply_says_how_to_get_one(secured: Secured) -> None:
    reply = await secured.service.http.post(CHAT, json=chat("Hi"))

    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (401, "unauthenticated")
    assert reply.headers["www-authenticate"] == "Bearer"
    assert "chatserve key add" in error["message"]


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer csk_0123456789abcdef_" + "a" * 43,
        "Bearer nonsense",
        "Bearer",
        "",
        "Basic Ym9iOnNlY3JldA==",
        "Bearer \u00e9",
    ],
    ids=ascii,
)
async def test_a_credential_that_is_no_good_is_refused(
    secured: Secured, authorization: str
) -> None:
    headers = {b"authorization": authorization.encode("latin-1")}

    reply = await secured.service.http.get("/v1/models", headers=headers)

    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
    assert reply.headers["www-authenticate"] == "Bearer"


async def test_a_wrong_key_is_not_made_good_by_a_cookie(secured: Secured) -> None:
    cookie = await secured.cookie(secured.member)

    reply = await secured.service.http.get(
        "/v1/models", headers={"authorization": "Bearer nonsense", **cookie}
    )

    assert reply.status_code == 401


async def test_every_endpoint_but_the_public_ones_needs_a_key(secured: Secured) -> None:
    routes = [
        route for route in create_app(secured.service.services).routes if isinstance(route, Route)
    ]
    open_paths = set()
    for route in routes:
        for method in (route.methods or set()) - {"HEAD"}:
            path = route.path.replace("{", "").replace("}", "").replace(":path", "")
            reply = await secured.service.http.request(method, path)
            if reply.status_code != 401:
                open_paths.add(route.path)

    assert len(routes) > 15
    assert open_paths <= PUBLIC_PATHS


async def test_every_socket_needs_a_key(secured: Secured) -> None:
    app = create_app(secured.service.services)

    paths = [route.path for route in app.routes if isinstance(route, WebSocketRoute)]

    assert paths == ["/v1/responses"]


@pytest.mark.parametrize("path", ["/health", "/ready", "/version", "/", "/favicon.svg", "/nothing"])
async def test_the_page_and_the_state_of_the_service_are_public(
    secured: Secured, path: str
) -> None:
    reply = await secured.service.http.get(path)

    assert reply.status_code != 401


@pytest.mark.parametrize("path", ["//v1/models", "/v1", "/v1/", "/v1/nothing", "/metrics/"])
async def test_no_spelling_of_a_path_leads_around_the_key(secured: Secured, path: str) -> None:
    reply = await secured.service.http.get(f"{secured.service.url}{path}")

    assert reply.status_code in (401, 404)
    assert "data" not in reply.json()


@pytest.mark.parametrize("path", ["/metrics", "/v1/chatserve/tenants", "/v1/chatserve/keys"])
async def test_what_is_about_all_tenants_is_for_operators(secured: Secured, path: str) -> None:
    http = secured.service.http

    member = await http.get(path, headers=bearer(secured.member))
    operator = await http.get(path, headers=bearer(secured.operator))

    assert (member.status_code, member.json()["error"]["code"]) == (403, "operator_only")
    assert operator.status_code == 200


async def test_a_cookie_opens_what_changes_nothing_without_an_origin(secured: Secured) -> None:
    cookie = await secured.cookie(secured.member)

    reply = await secured.service.http.get("/v1/models", headers=cookie)

    assert reply.status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("site", "status"),
    [
        ("cross-site", 403),
        ("same-site", 403),
        ("Cross-Site", 403),
        ("same-origin", 200),
        ("none", 200),
    ],
)
async def test_a_cookie_counts_for_nothing_where_another_site_asks(
    secured: Secured, method: str, site: str, status: int
) -> None:
    """An image or a script of a foreign page is a GET without an Origin."""
    http, cookie = secured.service.http, await secured.cookie(secured.member)

    reply = await http.request(method, "/v1/models", headers={**cookie, "sec-fetch-site": site})
    with_origin = await http.request(
        method, "/v1/models", headers={**cookie, **secured.origin, "sec-fetch-site": site}
    )

    assert reply.status_code == status
    assert with_origin.status_code == 200


async def test_a_cookie_changes_something_only_with_an_own_origin(secured: Secured) -> None:
    cookie = await secured.cookie(secured.member)
    http = secured.service.http

    own = await http.post(CHAT, json=chat("Hi"), headers={**cookie, **secured.origin})
    none = await http.post(CHAT, json=chat("Hi"), headers=cookie)
    evil = await http.post(
        CHAT, json=chat("Hi"), headers={**cookie, "origin": "https://evil.example"}
    )

    assert own.status_code == 200
    assert (none.status_code, none.json()["error"]["code"]) == (403, "origin_required")
    assert (evil.status_code, evil.json()["error"]["code"]) == (403, "origin_not_allowed")


@pytest.mark.parametrize("cookie", ["chatserve-login=", "chatserve-login=csl_" + "a" * 43])
async def test_a_cookie_that_stands_for_no_login_is_refused(secured: Secured, cookie: str) -> None:
    reply = await secured.service.http.get("/v1/models", headers={"cookie": cookie})

    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")


async def test_a_key_in_the_query_string_opens_nothing(secured: Secured) -> None:
    secret = secured.member.secret

    replies = [
        await secured.service.http.get("/v1/models", params={name: secret})
        for name in ("key", "api_key", "token", "ticket", "access_token")
    ]

    assert {reply.status_code for reply in replies} == {401}


async def test_an_expired_key_opens_nothing(secured: Secured) -> None:
    issued = await secured.issue(expires_at=int(time.time()) + 1000)
    record = keys.GLOBAL.key(keys.API_KEY + issued.key.key_id)
    await secured.service.store.commands.call("HSET", record, "expires_at", int(time.time()))

    reply = await secured.service.http.get("/v1/models", headers=bearer(issued))

    assert reply.status_code == 401


async def status_after_change(secured: Secured, headers: dict[str, str]) -> int:
    """Return what a key opens once the gateway has heard of a change, for two seconds at most."""
    status = 200
    async with asyncio.timeout(2):
        while status == 200:
            status = (await secured.service.http.get("/v1/models", headers=headers)).status_code
    return status


async def test_a_revoked_key_opens_nothing_at_once(secured: Secured) -> None:
    issued = await secured.issue()
    before = await secured.service.http.get("/v1/models", headers=bearer(issued))

    await secured.service.store.api_keys.revoke(issued.key.key_id)

    assert before.status_code == 200
    assert await status_after_change(secured, bearer(issued)) == 401


async def test_a_rotated_key_opens_with_its_new_secret_only(secured: Secured) -> None:
    issued = await secured.issue()
    cookie = await secured.cookie(issued)

    rotated = await secured.service.store.api_keys.rotate(issued.key.key_id)

    assert rotated is not None
    assert await status_after_change(secured, bearer(issued)) == 401
    assert await status_after_change(secured, cookie) == 401
    reply = await secured.service.http.get("/v1/models", headers=bearer(rotated))
    assert reply.status_code == 200


async def test_a_rotation_with_grace_leaves_both_secrets(secured: Secured) -> None:
    issued = await secured.issue()

    rotated = await secured.service.store.api_keys.rotate(issued.key.key_id, grace_s=1000)

    assert rotated is not None
    replies = [
        await secured.service.http.get("/v1/models", headers=bearer(each))
        for each in (issued, rotated)
    ]
    assert [reply.status_code for reply in replies] == [200, 200]


async def test_a_preflight_needs_no_key(store_url: str) -> None:
    async with run_service(
        store_url, allowed_origins=("https://app.example",), host="0.0.0.0"
    ) as service:
        reply = await service.http.options(
            CHAT,
            headers={
                "origin": "https://app.example",
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization",
            },
        )

    assert reply.status_code == 200


async def test_without_tenants_everybody_is_let_in_on_loopback_whatever_they_show(
    shared_service: Service,
) -> None:
    plain = await shared_service.http.get("/v1/models")
    keyed = await shared_service.http.get(
        "/v1/models", headers={"authorization": "Bearer anything"}
    )
    me = await shared_service.http.get("/v1/chatserve/me")

    assert (plain.status_code, keyed.status_code) == (200, 200)
    assert (me.json()["tenant"], me.json()["role"]) == ("default", "operator")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "chat.example"])
async def test_on_any_other_address_a_key_is_needed_from_the_start(
    store_url: str, host: str
) -> None:
    async with run_service(store_url, host=host) as service:
        reply = await service.http.get("/v1/models")

    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "unauthenticated")


async def test_the_first_tenant_closes_an_open_service(store_url: str) -> None:
    async with run_service(store_url) as service:
        async with service.socket() as socket:
            before = await service.http.get("/v1/models")
            await service.store.tenants.add(Tenant("acme"))
            close = await socket.receive_close()
        after = await service.http.get("/v1/models")

    assert before.status_code == 200
    assert close.code == 1008
    assert after.status_code == 401


async def test_keys_are_never_logged(secured: Secured, caplog: Any) -> None:
    caplog.set_level("DEBUG", logger="chatserve")
    caplog.set_level("DEBUG", logger="uvicorn")
    issued = await secured.issue()
    http, headers = secured.service.http, bearer(issued)
    protocols = [Subprotocol(f"openai-insecure-api-key.{issued.secret}"), Subprotocol("realtime")]
    cookie = await secured.cookie(issued)

    await http.post(CHAT, json=chat("Hi"), headers=headers)
    await http.get("/v1/models", params={"key": issued.secret})
    await http.post("/v1/chatserve/login", json={"key": issued.secret + "x"})
    async with secured.service.socket(subprotocols=protocols):
        await http.get("/v1/models", headers=cookie)
    async with secured.service.socket(additional_headers=headers) as socket:
        await secured.service.store.api_keys.revoke(issued.key.key_id)
        await socket.receive_close()

    # The client of these requests runs here too, and writes the addresses that it asks.
    servers = [entry for entry in caplog.records if not entry.name.startswith("httpx")]
    written = "\n".join(entry.getMessage() for entry in servers)
    assert issued.secret.rpartition("_")[2] not in written
    assert cookie["cookie"].partition("csl_")[2] not in written
