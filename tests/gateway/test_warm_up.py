"""`generate: false`: the prompt is computed, and nothing is said."""

from typing import Any

from gateway.gateway_helpers import Event, Service, kinds_of, text_of
from gateway.responses_helpers import PATH, body, check_official, create, follow, stream

SYSTEM = "You are a helpful assistant of the harbour office. " * 4


async def warm_up(service: Service, **members: Any) -> list[Event]:
    async with service.socket() as socket:
        await socket.send("response.create", model="echo", generate=False, **members)
        return await socket.receive_answer()


async def test_warm_up_completes_without_output(service: Service) -> None:
    events = await warm_up(service, instructions=SYSTEM)

    check_official(events)
    assert kinds_of(events) == [
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.completed",
    ]
    response = events[-1]["response"]
    assert (response["output"], response["usage"]["output_tokens"]) == ([], 0)
    assert response["usage"]["input_tokens"] > len(SYSTEM)


async def test_prompt_that_was_warmed_up_is_found_in_the_cache(service: Service) -> None:
    await warm_up(service, instructions=SYSTEM)

    response = await create(service, "Hello", instructions=SYSTEM)

    assert response["usage"]["input_tokens_details"]["cached_tokens"] > len(SYSTEM) * 0.9


async def test_answer_builds_on_a_warm_up(service: Service) -> None:
    events = await warm_up(service, input=[{"role": "system", "content": SYSTEM}])

    response = await create(service, "Hello", previous_response_id=events[-1]["response"]["id"])

    assert response["output"][0]["content"][0]["text"] == "Hello"
    items = (await service.http.get(f"{PATH}/{response['id']}/input_items?order=asc")).json()
    assert [item["role"] for item in items["data"]] == ["system", "user"]


async def test_warm_up_reads_a_conversation_and_adds_nothing_to_it(service: Service) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()["id"]
    await create(service, "Hello", conversation=conversation)

    events = await warm_up(service, conversation=conversation)
    items = (await service.http.get(f"/v1/conversations/{conversation}/items")).json()

    assert events[-1]["response"]["usage"]["input_tokens"] > len("HelloHello")
    assert [item["role"] for item in items["data"]] == ["assistant", "user"]


async def test_warm_up_over_http_is_an_object_or_a_stream(service: Service) -> None:
    request = {"model": "echo", "instructions": SYSTEM, "generate": False}

    whole = (await service.http.post(PATH, json=request)).json()
    streamed = await stream(service, "", generate=False, instructions=SYSTEM)

    assert (whole["status"], whole["output"]) == ("completed", [])
    assert text_of(streamed) == ""
    assert await follow(service, streamed[0]["response"]["id"]) == streamed


async def test_warm_up_frees_what_it_held(service: Service) -> None:
    await warm_up(service, instructions=SYSTEM)

    await service.wait_until_idle()


async def test_answer_without_input_is_refused(service: Service) -> None:
    request = body("")
    del request["input"]

    reply = await service.http.post(PATH, json=request)

    error = reply.json()["error"]
    assert (error["code"], error["param"]) == ("missing_required_parameter", "input")
