"""What a client sees of its limits: headers, events, refusals, over every way to ask."""

import asyncio

import pytest
from gateway.gateway_helpers import Event, eventually, kinds_of, text_of
from gateway.lexing_spy import lexed_lengths
from gateway.limited_service import TENANT, Caller, limited_service, secret_of

from chatserve.gateway.quotas import CallerQuotas
from chatserve.store.tenants import NO_QUOTAS, Quotas

AMPLE = Quotas(requests_per_minute=100, tokens_per_minute=10_000)
ONE_REQUEST = Quotas(requests_per_minute=1)


def limit_of(event: Event, name: str) -> Event:
    (found,) = (each for each in event["rate_limits"] if each["name"] == name)
    return dict(found)


async def test_headers_tell_what_is_left_after_the_reservation(store_url: str) -> None:
    async with limited_service(store_url, AMPLE) as caller:
        reply = await caller.chat(max_tokens=50)

    headers = reply.headers
    assert (headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]) == (
        "100",
        "99",
    )
    prompt_tokens = reply.json()["usage"]["prompt_tokens"]
    assert headers["x-ratelimit-limit-tokens"] == "10000"
    assert headers["x-ratelimit-remaining-tokens"] == str(10_000 - prompt_tokens - 50)
    assert headers["x-ratelimit-reset-requests"] == "0.600s"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "stream": True}),
        ("/v1/completions", {"prompt": "hi"}),
        ("/v1/responses", {"input": "hi"}),
        ("/v1/responses", {"input": "hi", "stream": True}),
    ],
)
async def test_every_generating_route_has_headers_and_refuses_with_a_time_to_wait(
    store_url: str, path: str, body: Event
) -> None:
    async with limited_service(store_url, ONE_REQUEST) as caller:
        post = caller.service.http.post
        first = await post(path, json={"model": "echo", **body}, headers=caller.headers)
        second = await post(path, json={"model": "echo", **body}, headers=caller.headers)

    assert first.status_code == 200
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    assert second.status_code == 429
    assert 1 <= int(second.headers["retry-after"]) <= 60
    assert second.headers["x-ratelimit-remaining-requests"] == "0"
    error = second.json()["error"]
    family = "too_many_requests" if path == "/v1/responses" else "rate_limit_error"
    assert (error["type"], error["code"]) == (family, "rate_limit_exceeded")
    assert "1 request per minute" in error["message"]


async def test_refusal_on_a_socket_is_an_error_on_its_lane(store_url: str) -> None:
    async with limited_service(store_url, ONE_REQUEST) as caller, caller.socket() as socket:
        await socket.create("one")
        first = await socket.receive_answer()
        await socket.receive_until("rate_limits.updated")
        await socket.create("two", stream_id="lane")
        (error,) = await socket.receive_answer()

    assert text_of(first) == "one"
    assert (error["status"], error["stream_id"]) == (429, "lane")
    assert error["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(error["error"]["headers"]["retry-after"]) <= 60


async def test_socket_is_told_the_reservation_and_what_came_back_of_it(store_url: str) -> None:
    async with limited_service(store_url, AMPLE) as caller, caller.socket() as socket:
        await socket.create("hello", max_output_tokens=500, stream_id="lane")
        events = await socket.receive_answer()
        (last,) = await socket.receive_until("rate_limits.updated")

    before, after = (limit_of(event, "tokens") for event in (events[0], last))
    usage = events[-1]["response"]["usage"]
    assert kinds_of(events).count("rate_limits.updated") == 1
    assert "sequence_number" not in events[0]
    assert (events[0]["stream_id"], last["stream_id"]) == ("lane", "lane")
    assert before["limit"] == 10_000
    assert before["remaining"] == 10_000 - usage["input_tokens"] - 500
    # A little runs down while the answer is made.
    assert 0 <= after["remaining"] - (10_000 - usage["total_tokens"]) < 2_000
    assert before["reset_seconds"] > after["reset_seconds"] > 0
    assert limit_of(last, "requests")["remaining"] == 99


async def test_replay_of_an_answer_tells_no_limits(store_url: str) -> None:
    async with limited_service(store_url, AMPLE) as caller, caller.socket() as socket:
        await socket.create("hello")
        events = await socket.receive_answer()
        await socket.receive_until("rate_limits.updated")
        await socket.send("chatserve:response.resume", response_id=events[-1]["response"]["id"])
        replay = await socket.receive_answer()

    assert kinds_of(replay) == kinds_of(events)[1:]


async def test_without_limits_there_are_no_headers_and_no_events(store_url: str) -> None:
    async with limited_service(store_url, NO_QUOTAS) as caller:
        reply = await caller.chat()
        async with caller.socket() as socket:
            await socket.create("hello")
            events = await socket.receive_answer()

    assert not [name for name in reply.headers if name.startswith("x-ratelimit")]
    assert "rate_limits.updated" not in kinds_of(events)


async def test_tightest_of_the_tenants_and_the_keys_limit_is_told_and_holds(store_url: str) -> None:
    of_key = Quotas(requests_per_minute=2)
    async with limited_service(store_url, AMPLE, of_key=of_key) as caller:
        bob = Caller(caller.service, await secret_of(caller.service.store, "bob"))
        replies = [await caller.chat(max_tokens=5) for _ in range(3)]
        other = await bob.chat(max_tokens=5)

    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert replies[0].headers["x-ratelimit-limit-requests"] == "2"
    assert "this key is limited to 2" in replies[2].json()["error"]["message"]
    assert other.headers["x-ratelimit-limit-requests"] == "100"


async def test_fifty_at_once_do_not_pass_a_limit_meant_for_one(store_url: str) -> None:
    async with limited_service(store_url, ONE_REQUEST) as caller:
        replies = await asyncio.gather(*(caller.chat(max_tokens=2) for _ in range(50)))

    assert sorted(reply.status_code for reply in replies) == [200] + [429] * 49


async def test_five_at_once_do_not_pass_a_hundred_tokens_a_minute(store_url: str) -> None:
    async with limited_service(store_url, Quotas(tokens_per_minute=100)) as caller:
        caller.service.model.hold()  # or what the first gives back might let in others
        asking = [caller.service.spawn(caller.chat(max_tokens=60)) for _ in range(5)]
        await eventually(lambda: sum(task.done() for task in asking) == 4)
        caller.service.model.release()
        replies = await asyncio.gather(*asking)

    assert sorted(reply.status_code for reply in replies) == [200, 429, 429, 429, 429]


async def test_parallel_responses_are_bounded_until_one_ends(store_url: str) -> None:
    async with limited_service(store_url, Quotas(parallel_responses=1)) as caller:
        caller.service.model.hold()
        running = caller.service.spawn(caller.chat())
        await caller.service.wait_until_held()
        refused = await caller.chat()
        caller.service.model.release()
        answered = await running
        again = await caller.chat()

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert "1 response at a time" in refused.json()["error"]["message"]
    assert (answered.status_code, again.status_code) == (200, 200)


async def test_choices_count_one_by_one_and_are_refused_together(store_url: str) -> None:
    async with limited_service(store_url, Quotas(requests_per_minute=3)) as caller:
        two = await caller.chat(n=2, max_tokens=2)
        two_more = await caller.chat(n=2, max_tokens=2)
        one = await caller.chat(max_tokens=2)
        four = await caller.chat(n=4, max_tokens=2)

    assert (two.status_code, two.headers["x-ratelimit-remaining-requests"]) == (200, "1")
    assert two_more.status_code == 429
    assert one.status_code == 200
    assert (four.status_code, four.json()["error"]["code"]) == (400, "request_over_limit")


async def test_request_above_a_whole_limit_is_a_bad_request(store_url: str) -> None:
    async with limited_service(store_url, Quotas(tokens_per_minute=100)) as caller:
        reply = await caller.chat(max_tokens=200)

    error = reply.json()["error"]
    assert reply.status_code == 400
    assert "retry-after" not in reply.headers
    assert (error["code"], error["type"]) == ("request_over_limit", "invalid_request_error")
    assert (
        "this tenant is limited to 100 tokens per minute: it can never be served"
        in error["message"]
    )


async def test_client_that_names_no_limit_leaves_room_for_others(store_url: str) -> None:
    async with limited_service(store_url, Quotas(tokens_per_minute=400)) as caller:
        reply = await caller.chat()

    left = int(reply.headers["x-ratelimit-remaining-tokens"])
    assert left == 400 - 100 - reply.json()["usage"]["prompt_tokens"]


def test_default_length_fits_a_limit_that_the_prompt_nearly_fills() -> None:
    caller = CallerQuotas("t", "k", Quotas(tokens_per_minute=400), Quotas(tokens_per_minute=80))

    assert caller.default_max_tokens(10) == 20
    assert caller.default_max_tokens(75) == 5
    assert caller.default_max_tokens(80) == 1
    assert CallerQuotas("t", "k").default_max_tokens(10) is None


async def test_changed_quotas_hold_for_whoever_asks_again(store_url: str) -> None:
    async with limited_service(store_url, ONE_REQUEST) as caller:
        await caller.chat(max_tokens=2)
        await caller.service.store.tenants.update(TENANT, quotas=AMPLE)

        async with asyncio.timeout(10):
            while (await caller.chat(max_tokens=2)).status_code == 429:
                pass


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "hi"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        ("/v1/completions", {"prompt": "hi"}),
        ("/tokenize", {"prompt": "hi"}),
        ("/detokenize", {"tokens": [65]}),
    ],
)
async def test_request_over_the_limit_is_refused_before_any_work_for_it(
    store_url: str, monkeypatch: pytest.MonkeyPatch, path: str, body: Event
) -> None:
    async with limited_service(store_url, ONE_REQUEST) as caller:
        post = caller.service.http.post
        first = await post(
            "/tokenize", json={"model": "echo", "prompt": "hi"}, headers=caller.headers
        )
        lengths = lexed_lengths(monkeypatch)
        second = await post(path, json={"model": "echo", **body}, headers=caller.headers)

    assert first.status_code == 200
    assert (second.status_code, second.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert 1 <= int(second.headers["retry-after"]) <= 60
    assert lengths == []


async def test_turn_over_the_limit_reads_no_conversation(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with limited_service(store_url, ONE_REQUEST) as caller:
        await caller.chat()
        monkeypatch.setattr(caller.service.services.store.sessions, "outline", None)
        async with caller.socket() as socket:
            await socket.create("hi", conversation="conv_any")
            (error,) = await socket.receive_answer()

    assert error["status"] == 429
