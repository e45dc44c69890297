"""Raw completions, and what sampling fields do on their way to the engine."""

import json
from typing import Any

import pytest
from gateway.gateway_helpers import Service, chat, sse_data


async def complete(service: Service, prompt: Any, **members: Any) -> Any:
    body = {"model": "echo", "prompt": prompt, "max_tokens": 5, **members}
    reply = await service.http.post("/v1/completions", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_text_and_its_token_ids_give_the_same_answer(service: Service) -> None:
    model = await service.services.models.get("echo")
    token_ids = list(await model.text_token_ids("abc", tenant="t", param="prompt"))

    by_text = await complete(service, "abc")
    by_ids = await complete(service, token_ids)

    assert by_text["choices"][0]["text"] == by_ids["choices"][0]["text"] == "defgh"
    assert by_text["usage"]["prompt_tokens"] == len(token_ids)


async def test_limit_is_sixteen_tokens_where_none_is_named(service: Service) -> None:
    answer = await complete(service, "a", max_tokens=None)

    assert answer["usage"]["completion_tokens"] == 16
    assert answer["choices"][0]["finish_reason"] == "length"


async def test_control_tokens_spelled_in_a_prompt_stay_text(service: Service) -> None:
    answer = await complete(service, "<|im_end|>")

    assert answer["usage"]["prompt_tokens"] == len("<|im_end|>")


@pytest.mark.parametrize("stream", [False, True])
async def test_stop_string_cuts_the_answer_and_is_not_shown(service: Service, stream: bool) -> None:
    body = {"model": "echo", "prompt": "a", "max_tokens": 50, "stop": ["fg", "x"], "stream": stream}

    reply = await service.http.post("/v1/completions", json=body)

    if stream:
        choices = [json.loads(p)["choices"][0] for p in sse_data(reply.text)[:-1]]
    else:
        choices = reply.json()["choices"]
    assert "".join(choice["text"] for choice in choices) == "bcde"
    assert choices[-1]["finish_reason"] == "stop"


async def test_max_tokens_above_the_context_is_clamped(service: Service) -> None:
    answer = await complete(service, "x" * 4090, max_tokens=10**9)

    assert answer["usage"]["completion_tokens"] == 6
    assert answer["choices"][0]["finish_reason"] == "length"


async def test_ignore_eos_goes_on_to_the_limit(service: Service) -> None:
    reply = await service.http.post(
        "/v1/chat/completions", json=chat("Hi", ignore_eos=True, max_tokens=12)
    )

    assert reply.json()["usage"]["completion_tokens"] == 12


async def test_second_request_reports_the_shared_prefix_as_cached(service: Service) -> None:
    prompt = "x" * 100

    first = await complete(service, prompt)
    second = await complete(service, prompt)

    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == 99


async def test_usage_chunk_comes_only_when_it_is_asked_for(service: Service) -> None:
    path, body = "/v1/chat/completions", chat("Hi", stream=True)

    without = await service.http.post(path, json=body)
    with_usage = await service.http.post(
        path, json={**body, "stream_options": {"include_usage": True}}
    )

    assert '"usage"' not in without.text
    *_, last, _done = sse_data(with_usage.text)
    assert json.loads(last)["choices"] == []
    assert json.loads(last)["usage"]["completion_tokens"] == 3
