"""Chat completions over a real socket, plain and streamed."""

import json

from gateway.gateway_helpers import Service, chat, sse_data


async def test_plain_answer_has_text_reason_and_usage(service: Service) -> None:
    reply = await service.http.post("/v1/chat/completions", json=chat("Hello"))

    assert reply.status_code == 200
    answer = reply.json()
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == len("Hello") + 1
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}


async def test_streamed_text_equals_the_plain_one(service: Service) -> None:
    body = chat("Grüße, 世界 👋🏽", stream=True)

    reply = await service.http.post("/v1/chat/completions", json=body)

    *payloads, last = sse_data(reply.text)
    chunks = [json.loads(payload) for payload in payloads]
    assert last == "[DONE]"
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks) == (
        "Grüße, 世界 👋🏽"
    )
