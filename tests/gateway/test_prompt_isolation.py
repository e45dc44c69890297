"""A tenant's prompts are not there for another, by whatever route it asks."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from engine.prompt_helpers import PinningEngine, status_of
from gateway.callers import Callers, run_for_callers
from gateway.gateway_helpers import WorkerSettings, chat
from gateway.prompt_spy import said_body

from chatserve.store.embedded import EmbeddedServer
from chatserve.store.named_prompt import NamedPrompt

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = "/v1/chatserve/prompts"
SECRET = "The password of the vault is swordfish."
NAME, ABSENT = "vault", "doubt"
"""Names of one length, so that refusals must be equal but for the name."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers(store_server: EmbeddedServer) -> AsyncIterator[Callers]:
    """A service on which acme has a prompt in two versions, and zeta has none."""
    url = store_server.url.replace("db=0", "db=4")
    async with run_for_callers(url, worker=WorkerSettings(engine=PinningEngine())) as callers:
        prompts = callers.service.store.prompts
        await prompts.add(NamedPrompt("acme", NAME, "Older."))
        await prompts.add(NamedPrompt("acme", NAME, SECRET))
        await prompts.add(NamedPrompt("", "preamble", "Be kind."))
        await callers.service.services.prompts.reload()
        yield callers


def by_name(name: str) -> list[tuple[str, str, Any]]:
    """Return every way to ask for a prompt by its name."""
    return [
        ("GET", f"{ALL}/{name}", None),
        ("GET", f"{ALL}/{name}?tenant=acme", None),
        ("GET", f"{ALL}/{name}?version=1", None),
        ("GET", f"{ALL}/{name}?public=true", None),
        ("GET", f"{ALL}/{name}/versions", None),
        ("GET", f"{ALL}/{name}/versions?tenant=acme", None),
        ("POST", f"{ALL}/{name}", {"is_pinned": False}),
        ("POST", f"{ALL}/{name}?tenant=acme", {"is_pinned": False}),
        ("POST", f"{ALL}/{name}/activate?tenant=acme", {"version": 1}),
        ("DELETE", f"{ALL}/{name}?tenant=acme", None),
        ("GET", f"/v1/models/echo:{name}", None),
        ("POST", "/v1/chat/completions", chat("Hi", model=f"echo:{name}")),
        ("POST", "/v1/completions", {"model": f"echo:{name}", "prompt": "a"}),
        ("POST", "/v1/responses", {"model": f"echo:{name}", "input": "Hi"}),
        ("POST", "/v1/responses", {"model": "echo", "input": "Hi", "prompt": {"id": name}}),
        (
            "POST",
            "/v1/responses",
            {"model": "echo", "input": "Hi", "prompt": {"id": name, "version": "1"}},
        ),
    ]


@pytest.mark.parametrize(
    ("there", "absent"), list(zip(by_name(NAME), by_name(ABSENT), strict=True)), ids=str
)
async def test_anothers_prompt_is_answered_like_one_that_does_not_exist(
    callers: Callers, there: tuple[str, str, Any], absent: tuple[str, str, Any]
) -> None:
    refused = await callers.refusal(*there[:2], callers.zeta, there[2])
    missing = await callers.refusal(*absent[:2], callers.zeta, absent[2])

    assert str(refused) == str(missing).replace(ABSENT, NAME)
    assert SECRET not in str(refused)


async def test_the_socket_knows_no_prompt_of_another_tenant(callers: Callers) -> None:
    async with callers.service.socket(additional_headers=callers.zeta) as socket:
        await socket.create("Hi", model=f"echo:{NAME}")
        by_alias = await socket.receive()
        await socket.create("Hi", prompt={"id": NAME})
        by_reference = await socket.receive()

    assert (by_alias["status"], by_alias["error"]["code"]) == (404, "model_not_found")
    assert (by_reference["status"], by_reference["error"]["code"]) == (404, "prompt_not_found")


@pytest.mark.parametrize("query", ["", "?tenant=acme", "?tenant=zeta", "?public=true", "?tenant="])
async def test_lists_show_a_member_their_own_tenant_only(callers: Callers, query: str) -> None:
    listed = await callers.get(f"{ALL}{query}", callers.zeta)

    assert listed["data"] == []


async def test_the_list_of_models_has_no_aliases_of_another_tenant(callers: Callers) -> None:
    theirs = await callers.get("/v1/models", callers.zeta)
    ours = await callers.get("/v1/models", callers.acme)

    assert [model["id"] for model in theirs["data"]] == ["echo"]
    assert [model["id"] for model in ours["data"]] == ["echo", f"echo:{NAME}"]


async def test_sending_anothers_text_finds_nothing_of_it_in_the_cache(callers: Callers) -> None:
    store = callers.service.store
    prompt = await store.prompts.get("acme", NAME)
    preamble = await store.prompts.get("", "preamble")
    assert prompt is not None
    assert preamble is not None
    own = await status_of(store, prompt, "worker-1")
    public = await status_of(store, preamble, "worker-1")
    body = said_body(("system", SECRET), ("user", "When?"))

    replies = [
        await callers.post("/v1/chat/completions", headers, **body)
        for headers in (callers.zeta, callers.acme)
    ]

    cached = [reply["usage"]["prompt_tokens_details"]["cached_tokens"] for reply in replies]
    assert cached == [public.num_tokens, own.num_tokens]
    assert own.num_tokens > public.num_tokens + len(SECRET)
