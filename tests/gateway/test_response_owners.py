"""A response is its owner's, on every route and in every event."""

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from gateway.gateway_helpers import Service, chat, response_ids, run_service
from gateway.responses_helpers import PATH, body

from chatserve.identity import Owner
from chatserve.store.api_keys import ApiKey
from chatserve.store.connection import open_store
from chatserve.store.tenants import Tenant

USERS = [("org", "ann"), ("org", "bob"), ("elsewhere", "ann")]
ROUTES = [
    ("GET", ""),
    ("GET", "?stream=true"),
    ("GET", "/input_items"),
    ("POST", "/cancel"),
    ("DELETE", ""),
]

Headers = dict[str, str]


@pytest_asyncio.fixture
async def headers(store_url: str) -> list[Headers]:
    """Give each user a key, and return what they send."""
    store = await open_store(store_url)
    for tenant in ("org", "elsewhere"):
        await store.tenants.add(Tenant(tenant))
    issued = [await store.api_keys.add(ApiKey("", tenant, user)) for tenant, user in USERS]
    await store.aclose()
    return [{"Authorization": f"Bearer {each.secret}"} for each in issued]


@pytest_asyncio.fixture
async def service(store_url: str, headers: list[Headers]) -> AsyncIterator[Service]:
    async with run_service(store_url) as service:
        yield service


async def test_every_route_is_as_if_the_response_did_not_exist(
    service: Service, headers: list[Headers]
) -> None:
    ann, *others = headers
    created = await service.http.post(PATH, json=body("Hello"), headers=ann)
    response_id = created.json()["id"]

    for other, (method, path) in itertools.product(others, ROUTES):
        theirs = await service.http.request(method, f"{PATH}/{response_id}{path}", headers=other)
        nobodys = await service.http.request(method, f"{PATH}/resp_none{path}", headers=other)
        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.text.replace(response_id, "resp_none") == nobodys.text
    own = await service.http.get(f"{PATH}/{response_id}", headers=ann)
    assert own.json() == created.json()


@pytest.mark.parametrize("other", [1, 2])
async def test_every_event_is_as_if_the_response_did_not_exist(
    service: Service, headers: list[Headers], other: int
) -> None:
    service.model.hold()
    created = await service.http.post(PATH, json=body("Hello", background=True), headers=headers[0])
    response_id = created.json()["id"]
    async with service.socket(additional_headers=headers[other]) as socket:
        await socket.send("chatserve:response.resume", response_id=response_id)
        await socket.send("response.cancel", response_id=response_id)
        await socket.create("Again", previous_response_id=response_id)

        errors = [await socket.receive() for _ in range(3)]

    codes = [error["error"]["code"] for error in errors]
    assert sorted(codes) == ["previous_response_not_found", *2 * ["response_not_found"]]
    service.model.release()
    async with service.socket(additional_headers=headers[0]) as socket:
        await socket.send("chatserve:response.resume", response_id=response_id)
        assert (await socket.receive_answer())[-1]["type"] == "response.completed"


async def test_one_event_id_of_several_users_is_several_creates(
    service: Service, headers: list[Headers]
) -> None:
    replies = [
        await service.http.post(
            PATH, json=body("Hello"), headers={**who, "Idempotency-Key": "same"}
        )
        for who in headers
    ]

    assert len({reply.json()["id"] for reply in replies}) == len(headers)


async def test_requests_carry_whose_they_are(service: Service, headers: list[Headers]) -> None:
    for path, request in [
        (PATH, body("Hello")),
        ("/v1/chat/completions", chat("Hello")),
        ("/v1/completions", {"model": "echo", "prompt": "abc", "max_tokens": 2}),
    ]:
        await service.http.post(path, json=request, headers=headers[1])

    owners = {
        await service.store.responses.owner(response_id)
        for response_id in await response_ids(service.store)
    }

    assert owners == {Owner("org", "bob")}
