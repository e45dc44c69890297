"""Bad input over HTTP: a clear error in OpenAI's shape, and nothing stored."""

from typing import Any

import pytest
from gateway.gateway_helpers import Service, WorkerSettings, chat, response_ids, run_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"{", 400, "invalid_json", None),
        (b"[]", 400, "invalid_type", None),
        (b'{"model": "echo", "messages": [], "temperature": NaN}', 400, "invalid_json", None),
        (b'{"model": "echo", "messages": []}', 400, "invalid_value", "messages"),
        (b'{"model": "echo"}', 400, "missing_required_parameter", "messages"),
        (
            b'{"model": "echo", "messages": [{"role": "robot", "content": "x"}]}',
            400,
            "invalid_value",
            "messages[0].role",
        ),
        (
            b'{"model": "other", "messages": [{"role": "user", "content": "x"}]}',
            404,
            "model_not_found",
            "model",
        ),
    ],
)
async def test_bad_body_is_refused_and_changes_nothing(
    shared_service: Service, body: bytes, status: int, code: str, param: str | None
) -> None:
    before = await response_ids(shared_service.store)

    reply = await shared_service.http.post(PATH, content=body)

    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"]
    assert await response_ids(shared_service.store) == before


async def test_model_that_is_not_served_is_told_which_are(shared_service: Service) -> None:
    reply = await shared_service.http.post(PATH, json={**chat("x"), "model": "other"})

    assert "echo" in reply.json()["error"]["message"]


@pytest.mark.parametrize("num_characters", [4095, 5000])
async def test_prompt_over_the_context_is_refused_with_the_sizes(
    shared_service: Service, num_characters: int
) -> None:
    body = {"model": "echo", "prompt": "x" * (num_characters + 1)}

    reply = await shared_service.http.post("/v1/completions", json=body)

    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "context_length_exceeded")
    assert str(num_characters + 1) in error["message"]
    assert "4096" in error["message"]


async def test_longest_prompt_leaves_room_for_one_token(shared_service: Service) -> None:
    body = {"model": "echo", "prompt": "x" * 4095, "max_tokens": 100}

    reply = await shared_service.http.post("/v1/completions", json=body)

    answer = reply.json()
    assert answer["choices"][0]["text"] == "y"
    assert answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("prompt", [[-1], [259], [2**31], [1.5], [True], []])
async def test_ids_that_are_no_tokens_are_refused(shared_service: Service, prompt: Any) -> None:
    before = await response_ids(shared_service.store)

    reply = await shared_service.http.post(
        "/v1/completions", json={"model": "echo", "prompt": prompt}
    )

    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "prompt")
    assert await response_ids(shared_service.store) == before


@pytest.mark.parametrize("in_pieces", [False, True])
async def test_body_over_the_limit_is_refused(store_url: str, in_pieces: bool) -> None:
    async def pieces() -> Any:
        for _ in range(10):
            yield b" " * 1000

    async with run_service(store_url, max_message_bytes=2000) as service:
        reply = await service.http.post(PATH, content=pieces() if in_pieces else b" " * 10_000)

    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", PATH, 405, "method_not_allowed"),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/other", 404, "model_not_found"),
    ],
)
async def test_wrong_path_or_method_has_an_error_body(
    shared_service: Service, method: str, path: str, status: int, code: str
) -> None:
    reply = await shared_service.http.request(method, path)

    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


async def test_ignored_names_stand_in_a_header(shared_service: Service) -> None:
    plain = await shared_service.http.post(PATH, json=chat("x", colour="red", **{"a b": 1}))
    streamed = await shared_service.http.post(PATH, json=chat("x", colour="red", stream=True))
    without = await shared_service.http.post(PATH, json=chat("x"))

    assert plain.headers["x-chatserve-ignored"] == "colour, a%20b"
    assert streamed.headers["x-chatserve-ignored"] == "colour"
    assert "x-chatserve-ignored" not in without.headers


async def test_full_queue_is_refused_with_a_time_to_retry(store_url: str) -> None:
    worker = WorkerSettings(max_claims=1)
    async with (
        run_service(store_url, worker=worker, max_queue=1) as service,
        service.socket() as socket,
    ):
        service.model.hold()
        await socket.create("running", stream_id="a")
        await socket.receive_until("response.queued")
        await service.wait_until_held()
        await socket.create("waiting", stream_id="b")
        await socket.receive_until("response.queued")

        reply = await service.http.post(PATH, json=chat("refused"))
        depth = await service.store.queue.depth("echo")
        ready = await service.http.get("/ready")
        health = await service.http.get("/health")

    assert (reply.status_code, reply.json()["error"]["code"]) == (429, "queue_full")
    seconds = reply.headers["retry-after"]
    assert 1 <= int(seconds) <= 120
    assert (
        f"{depth} requests for model echo wait already; try again in {seconds} s"
        in (reply.json()["error"]["message"])
    )
    assert (ready.status_code, health.status_code) == (503, 200)
    assert "queue" in ready.json()["reason"]
