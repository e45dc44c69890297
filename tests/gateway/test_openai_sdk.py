"""The official client against this service: both surfaces, its own types, its own parsing."""

from typing import Any

import pytest
from gateway.gateway_helpers import Service
from openai import APIStatusError, AsyncOpenAI
from openai.types.responses.responses_server_event import ResponsesServerEvent
from pydantic import TypeAdapter

official_event: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)


def client(service: Service) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{service.url}/v1", api_key="unused", max_retries=0)


async def test_chat_completion_streams(service: Service) -> None:
    async with client(service) as openai:
        stream = await openai.chat.completions.create(
            model="echo",
            messages=[{"role": "user", "content": "Grüße, 世界"}],
            stream=True,
            stream_options={"include_usage": True},
        )

        chunks = [chunk async for chunk in stream]

    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Grüße, 世界"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 0


async def test_chat_completion_is_whole_without_stream(service: Service) -> None:
    async with client(service) as openai:
        answer = await openai.chat.completions.create(
            model="echo", messages=[{"role": "user", "content": "Hello"}], max_tokens=2
        )

    assert answer.choices[0].message.content == "He"
    assert answer.choices[0].finish_reason == "length"


async def test_chat_completion_has_the_choices_that_were_asked_for(service: Service) -> None:
    async with client(service) as openai:
        answer = await openai.chat.completions.create(
            model="echo", messages=[{"role": "user", "content": "Hello"}], n=3
        )

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [choice.message.content for choice in answer.choices] == ["Hello"] * 3
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3 * (len("Hello") + 1)


async def test_chat_completion_streams_its_choices_among_each_other(service: Service) -> None:
    async with (
        client(service) as openai,
        openai.chat.completions.stream(
            model="echo",
            messages=[{"role": "user", "content": "Hello"}],
            n=3,
            stream_options={"include_usage": True},
        ) as stream,
    ):
        answer = await stream.get_final_completion()

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [choice.message.content for choice in answer.choices] == ["Hello"] * 3
    assert [choice.finish_reason for choice in answer.choices] == ["stop"] * 3
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3 * (len("Hello") + 1)


async def test_completion_has_the_choices_that_were_asked_for(service: Service) -> None:
    async with client(service) as openai:
        answer = await openai.completions.create(model="echo", prompt="abc", max_tokens=5, n=2)
        stream = await openai.completions.create(
            model="echo", prompt="abc", max_tokens=5, n=2, stream=True
        )
        streamed = ["", ""]
        async for chunk in stream:
            streamed[chunk.choices[0].index] += chunk.choices[0].text

    assert [choice.text for choice in answer.choices] == streamed == ["defgh", "defgh"]


async def test_completion_streams(service: Service) -> None:
    async with client(service) as openai:
        stream = await openai.completions.create(
            model="echo", prompt="abc", max_tokens=5, stream=True
        )

        chunks = [chunk async for chunk in stream]

    assert "".join(chunk.choices[0].text for chunk in chunks) == "defgh"


async def test_responses_stream_over_its_websocket_and_validate(service: Service) -> None:
    events: list[Any] = []
    async with client(service) as openai, openai.responses.connect() as connection:
        await connection.response.create(model="echo", input="Hello", max_output_tokens=64)
        async for event in connection:
            events.append(event)
            if event.type == "response.completed":
                break

    opened, *answer = events
    assert opened.type == "chatserve:connection.opened"
    for event in answer:
        official_event.validate_python(event.to_dict())
    assert "".join(e.delta for e in answer if e.type == "response.output_text.delta") == "Hello"
    assert answer[-1].response.output_text == "Hello"
    assert answer[-1].response.usage.input_tokens_details.cached_tokens == 0


async def test_responses_continue_over_its_websocket_in_lanes(service: Service) -> None:
    async with client(service) as openai, openai.responses.connect() as connection:
        await connection.recv()
        await connection.response.create(model="echo", input="Hello", stream_id="a")
        while (event := await connection.recv()).type != "response.completed":
            pass
        await connection.response.create(
            model="echo", input="Again", stream_id="b", previous_response_id=event.response.id
        )
        while (event := await connection.recv()).type != "response.completed":
            pass

    assert event.stream_id == "b"
    assert event.response.output_text == "Again"


async def test_error_over_its_websocket_is_its_own_error_event(service: Service) -> None:
    async with client(service) as openai, openai.responses.connect() as connection:
        await connection.recv()
        await connection.response.create(model="other", input="Hello")

        error = await connection.recv()

    assert official_event.validate_python(error.to_dict()).error.code == "model_not_found"


async def test_error_over_http_has_code_and_param(service: Service) -> None:
    async with client(service) as openai:
        with pytest.raises(APIStatusError) as caught:
            await openai.chat.completions.create(
                model="echo", messages=[{"role": "user", "content": "Hi"}], n=9
            )

    assert (caught.value.status_code, caught.value.code, caught.value.param) == (
        400,
        "invalid_value",
        "n",
    )


async def test_models_are_listed(service: Service) -> None:
    async with client(service) as openai:
        models = await openai.models.list()
        model = await openai.models.retrieve("echo")

    assert [entry.id for entry in models.data] == ["echo"]
    assert model.id == "echo"


async def test_conversations_are_its_conversations(service: Service) -> None:
    async with client(service) as openai:
        conversation = await openai.conversations.create(
            items=[{"type": "message", "role": "system", "content": "Be brief."}],
            metadata={"a": "b"},
        )
        items = await openai.conversations.items.list(conversation.id)
        deleted = await openai.conversations.delete(conversation.id)

    assert conversation.metadata == {"a": "b"}
    assert [item.to_dict()["role"] for item in items.data] == ["system"]
    assert deleted.deleted
