"""`/tokenize` and `/detokenize`: what a model makes of a text, without an answer."""

from dataclasses import replace
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat

from chatserve.store.named_prompt import PREAMBLE_NAME, PUBLIC_TENANT, NamedPrompt

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def post(service: Service, path: str, **body: Any) -> Any:
    reply = await service.http.post(path, json={"model": "echo", **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("text", ["Grüße, 世界 👋🏽", "<|im_end|>", "", "x" * 5000])
async def test_text_comes_back_from_its_tokens(shared_service: Service, text: str) -> None:
    tokenized = await post(shared_service, "/tokenize", prompt=text)

    detokenized = await post(shared_service, "/detokenize", tokens=tokenized["tokens"])

    assert detokenized["prompt"] == text
    assert tokenized["count"] == len(tokenized["tokens"]) == len(text.encode())
    assert tokenized["max_model_len"] == 4096


async def test_count_of_a_chat_is_the_length_of_its_prompt(shared_service: Service) -> None:
    store = shared_service.store
    await store.prompts.add(NamedPrompt(PUBLIC_TENANT, PREAMBLE_NAME, "Be kind.", is_pinned=False))
    await shared_service.services.prompts.reload()

    tokenized = await post(shared_service, "/tokenize", messages=chat("Hi")["messages"])
    answer = await post(shared_service, "/v1/chat/completions", messages=chat("Hi")["messages"])

    assert tokenized["count"] == answer["usage"]["prompt_tokens"]
    read = await post(shared_service, "/detokenize", tokens=tokenized["tokens"])
    assert read["prompt"].startswith("<|im_start|>system\nBe kind.<|im_end|>")
    await store.prompts.remove(PUBLIC_TENANT, PREAMBLE_NAME)


async def test_the_only_model_need_not_be_named(shared_service: Service) -> None:
    http = shared_service.http

    tokenized = await http.post("/tokenize", json={"prompt": "Hi"})
    of_chat = await http.post("/tokenize", json=chat("Hi") | {"model": None})
    text = await http.post("/detokenize", json={"tokens": tokenized.json()["tokens"]})

    assert [each.status_code for each in (tokenized, of_chat, text)] == [200] * 3
    assert text.json()["prompt"] == "Hi"


async def test_a_model_must_be_named_where_there_are_several(
    shared_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = shared_service.services.models
    (echo,) = models.live
    other = replace(echo, card=replace(echo.card, name="other"))
    monkeypatch.setattr(type(models), "live", property(lambda _self: [echo, other]))

    reply = await shared_service.http.post("/tokenize", json={"prompt": "Hi"})

    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "model")
    assert error["message"].endswith("served: echo, other")


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, None),
        ("/tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, None),
        ("/tokenize", {"prompt": "a", "add_special_tokens": False}, "add_special_tokens"),
        ("/detokenize", {"tokens": [10**6]}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]"),
        ("/detokenize", {}, "tokens"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    shared_service: Service, path: str, body: dict[str, Any], param: str | None
) -> None:
    reply = await shared_service.http.post(path, json={"model": "echo", **body})

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
