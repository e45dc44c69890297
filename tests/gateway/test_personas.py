"""Personas: registered prompts by reference and as `model:persona`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from engine.prompt_helpers import PinningEngine, status_of
from gateway.callers import Callers, run_for_callers
from gateway.gateway_helpers import TIMEOUT_S, WorkerSettings, chat
from gateway.prompt_spy import prompt_of, prompt_of_response, rendered, said_body
from openai import AsyncOpenAI

from chatserve.store.embedded import EmbeddedServer
from chatserve.store.named_prompt import NamedPrompt
from chatserve.text.variables import MAX_VALUE_CHARS

pytestmark = pytest.mark.asyncio(loop_scope="module")

PREAMBLE = "You answer for everybody here."
HELP = "You are the help desk of a small library."
LETTER = "Write to {{name}} in {{city}}, who likes {{ name }}."
CHAT = "/v1/chat/completions"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers(store_server: EmbeddedServer) -> AsyncIterator[Callers]:
    """A service with a preamble, and two prompts of the tenant acme."""
    url = store_server.url.replace("db=0", "db=2")
    async with run_for_callers(url, worker=WorkerSettings(engine=PinningEngine())) as callers:
        prompts = callers.service.store.prompts
        await prompts.add(NamedPrompt("", "preamble", PREAMBLE))
        await prompts.add(NamedPrompt("acme", "help", "An older text."))
        await prompts.add(NamedPrompt("acme", "help", HELP))
        await prompts.add(NamedPrompt("acme", "letter", LETTER, defaults={"city": "Rome"}))
        await callers.service.services.prompts.reload()
        yield callers


# ── By reference ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ({"id": "help"}, HELP),
        ({"id": "help", "version": "2"}, HELP),
        ({"id": "help", "version": "1"}, "An older text."),
        (
            {"id": "letter", "variables": {"name": "{{city}}"}},
            "Write to {{city}} in Rome, who likes {{ name }}.",
        ),
        (
            {
                "id": "letter",
                "variables": {"name": {"type": "input_text", "text": "Ada"}, "city": ""},
            },
            "Write to Ada in , who likes {{ name }}.",
        ),
    ],
    ids=["current", "by-number", "older", "default-and-no-second-look", "input-text-and-empty"],
)
async def test_a_prompt_is_named_by_reference_and_its_values_are_plain_text(
    callers: Callers, reference: dict[str, Any], text: str
) -> None:
    prompt, _ = await prompt_of_response(
        callers.service, callers.acme, prompt=reference, instructions="Be brief."
    )

    system = f"{PREAMBLE}\n\n{text}\n\nBe brief."
    assert prompt == rendered(("system", system), ("user", "Hello"))


@pytest.mark.parametrize(
    ("reference", "status", "code", "param"),
    [
        ({"id": "none"}, 404, "prompt_not_found", "prompt.id"),
        ({"id": "preamble"}, 404, "prompt_not_found", "prompt.id"),
        ({"id": "help", "version": "3"}, 404, "prompt_not_found", "prompt.version"),
        ({"id": "help", "version": "newest"}, 404, "prompt_not_found", "prompt.version"),
        ({"id": "letter"}, 400, "missing_required_parameter", "prompt.variables.name"),
        (
            {"id": "help", "variables": {"nme": "x"}},
            400,
            "invalid_value",
            "prompt.variables",
        ),
        (
            {"id": "letter", "variables": {"name": "x" * (MAX_VALUE_CHARS + 1)}},
            400,
            "invalid_value",
            "prompt.variables.name",
        ),
    ],
    ids=["unknown", "preamble", "version", "no-number", "missing", "unknown-variable", "long"],
)
async def test_a_reference_that_leads_nowhere_is_refused_by_name(
    callers: Callers, reference: dict[str, Any], status: int, code: str, param: str
) -> None:
    body = {"model": "echo", "input": "Hi", "prompt": reference}

    refused, error = await callers.refusal("POST", "/v1/responses", callers.acme, body)

    assert (refused, error["code"], error["param"]) == (status, code, param)


async def test_an_unknown_variable_is_named(callers: Callers) -> None:
    reference = {"id": "help", "variables": {"nme": "x"}}
    body = {"model": "echo", "input": "Hi", "prompt": reference}

    _, error = await callers.refusal("POST", "/v1/responses", callers.acme, body)

    assert error["message"] == 'prompt.variables: prompt "help" has no variable "nme"'


# ── As an alias ──────────────────────────────────────────────────────────────────────────────


async def test_an_alias_stands_between_preamble_and_the_clients_system_message(
    callers: Callers,
) -> None:
    asked = said_body(("system", "Be brief."), ("user", "Hello"), model="echo:help")

    prompt = await prompt_of(callers.service, CHAT, asked, callers.acme)

    system = f"{PREAMBLE}\n\n{HELP}\n\nBe brief."
    assert prompt == rendered(("system", system), ("user", "Hello"))


async def test_an_alias_leads_the_turns_of_a_conversation_and_is_not_stored_with_them(
    callers: Callers,
) -> None:
    opened = await callers.post("/v1/conversations", callers.acme)
    asked = {"conversation": opened["id"], "model": "echo:help"}

    await prompt_of_response(callers.service, callers.acme, **asked)
    second, _ = await prompt_of_response(callers.service, callers.acme, **asked)

    stored = await callers.get(f"/v1/conversations/{opened['id']}/items", callers.acme)
    said = [("user", "Hello"), ("assistant", "Hello"), ("user", "Hello")]
    assert second == rendered(("system", f"{PREAMBLE}\n\n{HELP}"), *said)
    assert {item["role"] for item in stored["data"]} == {"user", "assistant"}


async def test_an_alias_and_a_reference_stand_one_after_the_other(callers: Callers) -> None:
    reference = {"id": "letter", "variables": {"name": "Ada"}}

    prompt, _ = await prompt_of_response(
        callers.service, callers.acme, model="echo:help", prompt=reference
    )

    letter = "Write to Ada in Rome, who likes {{ name }}."
    system = f"{PREAMBLE}\n\n{HELP}\n\n{letter}"
    assert prompt == rendered(("system", system), ("user", "Hello"))


async def test_an_alias_finds_what_the_same_text_from_the_client_finds(callers: Callers) -> None:
    current = await callers.service.store.prompts.get("acme", "help")
    assert current is not None
    status = await status_of(callers.service.store, current, "worker-1")

    by_text = said_body(("system", HELP), ("user", "When?"))
    by_alias = said_body(("user", "and why?"), model="echo:help")
    replies = [await callers.post(CHAT, callers.acme, **body) for body in (by_text, by_alias)]

    cached = [reply["usage"]["prompt_tokens_details"]["cached_tokens"] for reply in replies]
    assert cached == [status.num_tokens, status.num_tokens]
    assert status.num_tokens > len(PREAMBLE) + len(HELP)


async def test_an_answer_names_the_model_that_made_it(callers: Callers) -> None:
    reply = await callers.post(CHAT, callers.acme, **chat("Hi", model="echo:help"))

    assert reply["model"] == "echo"


async def test_a_raw_completion_has_no_place_for_a_persona(callers: Callers) -> None:
    body = {"model": "echo:help", "prompt": "abc"}

    status, error = await callers.refusal("POST", "/v1/completions", callers.acme, body)

    assert (status, error["code"], error["param"]) == (400, "unsupported", "model")


async def test_a_persona_that_needs_values_is_no_alias_and_says_which(callers: Callers) -> None:
    body = chat("Hi", model="echo:letter")

    status, error = await callers.refusal("POST", CHAT, callers.acme, body)
    listed = await callers.get("/v1/models", callers.acme)

    assert (status, error["code"], error["param"]) == (
        400,
        "missing_required_parameter",
        "model",
    )
    assert 'no default for its variable "name"' in error["message"]
    assert [model["id"] for model in listed["data"]] == ["echo", "echo:help"]


async def test_the_openai_package_knows_both_ways(callers: Callers) -> None:
    secret = callers.acme["authorization"].removeprefix("Bearer ")
    url = f"{callers.service.url}/v1"
    async with AsyncOpenAI(base_url=url, api_key=secret, max_retries=0) as client:
        models = [model.id async for model in client.models.list()]
        response = await client.responses.create(
            model="echo:help",
            input="Hi",
            prompt={"id": "letter", "version": "1", "variables": {"name": "Ada"}},
        )

    assert models == ["echo", "echo:help"]
    assert response.output_text == "Hi"
    assert response.prompt is not None
    assert (response.prompt.id, response.prompt.version) == ("letter", "1")


# ── The list of models ───────────────────────────────────────────────────────────────────────


async def test_an_alias_is_a_model_object_like_any_other(callers: Callers) -> None:
    listed = (await callers.get("/v1/models", callers.acme))["data"]
    one = await callers.get("/v1/models/echo:help", callers.acme)

    own = {"id": "echo:help", "chatserve:persona": "help"}
    assert listed[1] == one == {**listed[0], **own}


@pytest.mark.parametrize("name", ["echo:none", "echo:", ":help", "other:help", "echo:help:help"])
async def test_what_is_no_alias_is_no_model(callers: Callers, name: str) -> None:
    chatted = await callers.refusal("POST", CHAT, callers.acme, chat("Hi", model=name))
    status, error = await callers.refusal("GET", f"/v1/models/{name}", callers.acme)

    assert (status, error["code"]) == (404, "model_not_found")
    assert error["message"] == f'model "{name}" is not served; served: echo'
    assert chatted == (status, error)


async def test_a_tenant_is_shown_the_models_that_it_may_use(callers: Callers) -> None:
    await allow(callers, "zeta", "other")

    listed = await callers.get("/v1/models", callers.zeta)
    status, error = await callers.refusal("POST", CHAT, callers.zeta, chat("Hi"))
    completion = {"model": "echo", "prompt": "abc"}
    raw = await callers.refusal("POST", "/v1/completions", callers.zeta, completion)

    assert listed["data"] == []
    assert (status, error["code"]) == (404, "model_not_found")
    assert error["message"] == 'model "echo" is not served to this tenant, nor is any other'
    assert raw == (status, error)


async def test_personas_are_aliases_of_the_models_that_their_tenant_may_use(
    callers: Callers,
) -> None:
    await allow(callers, "acme", "other")

    listed = await callers.get("/v1/models", callers.acme)
    status, error = await callers.refusal("GET", "/v1/models/echo:help", callers.acme)

    await allow(callers, "acme", "echo")
    assert listed["data"] == []
    assert (status, error["code"]) == (404, "model_not_found")
    assert len((await callers.get("/v1/models", callers.acme))["data"]) == 2


async def allow(callers: Callers, tenant: str, model: str) -> None:
    """Let a tenant use one model, and return once the gateway knows."""
    await callers.service.store.tenants.update(tenant, models=[model])
    directory = callers.service.services.directory
    async with asyncio.timeout(TIMEOUT_S):
        while (await directory.tenant(tenant)).models != (model,):  # noqa: ASYNC110 - polled
            await asyncio.sleep(0.005)
