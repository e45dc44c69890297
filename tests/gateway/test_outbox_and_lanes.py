"""The two small parts of a connection that need no socket."""

import asyncio
import json

import pytest

from chatserve.engine.api import RequestId
from chatserve.gateway.connection_limits import ConnectionLimits
from chatserve.gateway.ending import Ending
from chatserve.gateway.lanes import Lanes, Turn
from chatserve.gateway.outbox import Outbox
from chatserve.protocol.client_events import Create, parse_client_event
from chatserve.protocol.codes import CloseCode

LIMITS = ConnectionLimits(outbox_high_bytes=100, outbox_low_bytes=40, outbox_max_bytes=200)
EVENT = {"n": "x" * 30}  # 38 bytes


def make_turn(name: str, lane: str | None = None) -> Turn:
    event = parse_client_event(
        json.dumps({"type": "response.create", "model": "m", "input": "x", "stream_id": lane})
    )
    assert isinstance(event, Create)
    return Turn(event, RequestId(name))


async def test_events_come_out_in_order() -> None:
    outbox = Outbox(LIMITS)
    for number in range(2):
        await outbox.put({"n": number})

    assert await outbox.get_batch() == [b'{"n":0}', b'{"n":1}']


async def test_batch_stays_within_the_low_mark_and_has_at_least_one_frame() -> None:
    outbox = Outbox(LIMITS)
    for text in ("small", "small", "x" * 50):
        outbox.put_now({"n": text})

    batches = [await outbox.get_batch() for _ in range(2)]

    assert [len(batch) for batch in batches] == [2, 1]


async def test_everything_is_sent_when_the_writer_asks_for_more() -> None:
    outbox = Outbox(LIMITS)
    outbox.put_now(EVENT)
    await outbox.get_batch()
    waiting = asyncio.create_task(outbox.until_sent())
    await asyncio.sleep(0)
    is_sent_too_early = waiting.done()

    writer = asyncio.create_task(outbox.get_batch())
    await waiting
    writer.cancel()

    assert not is_sent_too_early


async def test_getter_waits_for_an_event() -> None:
    outbox = Outbox(LIMITS)
    getting = asyncio.create_task(outbox.get_batch())
    await asyncio.sleep(0)

    await outbox.put({"n": 1})

    assert await getting == [b'{"n":1}']


async def test_producer_waits_above_the_high_mark_until_the_low_one() -> None:
    outbox = Outbox(LIMITS)
    for _ in range(3):
        await outbox.put(EVENT)
    waiting = asyncio.create_task(outbox.put(EVENT))

    await outbox.get_batch()
    await asyncio.sleep(0)
    assert not waiting.done()
    await outbox.get_batch()
    await waiting

    assert waiting.done()


async def test_cancelled_producer_has_added_nothing() -> None:
    outbox = Outbox(LIMITS)
    for _ in range(3):
        await outbox.put(EVENT)
    waiting = asyncio.create_task(outbox.put({"n": "late"}))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert "late" not in str([await outbox.get_batch() for _ in range(3)])


async def test_reply_does_not_wait_and_has_a_limit_of_its_own() -> None:
    outbox = Outbox(LIMITS)
    for _ in range(5):
        outbox.put_now(EVENT)

    with pytest.raises(Ending) as ended:
        outbox.put_now(EVENT)

    assert ended.value.code is CloseCode.TRY_AGAIN_LATER


async def test_bytes_are_counted_and_not_characters() -> None:
    outbox = Outbox(LIMITS)

    outbox.put_now({"n": "漢" * 60})

    with pytest.raises(Ending):
        outbox.put_now(EVENT)


def test_turns_of_a_lane_run_one_after_the_other() -> None:
    lanes = Lanes()
    first, second = make_turn("first", "lane"), make_turn("second", "lane")

    assert lanes.add(first)
    assert not lanes.add(second)
    assert lanes.finish(first) is second
    assert lanes.finish(second) is None
    assert lanes.num_turns == 0


def test_lanes_do_not_wait_for_each_other() -> None:
    lanes = Lanes()

    assert lanes.add(make_turn("a", "one"))
    assert lanes.add(make_turn("b", "two"))
    assert lanes.add(make_turn("c"))
    assert lanes.num_turns == 3


def test_running_turn_is_found_by_lane_and_by_response() -> None:
    lanes = Lanes()
    running, waiting = make_turn("running", "lane"), make_turn("waiting", "lane")
    lanes.add(running)
    lanes.add(waiting)

    assert lanes.running("lane") is running
    assert lanes.running(None) is None
    assert lanes.find("running") is running
    assert lanes.find("waiting") is None


def test_idle_lane_leaves_nothing_behind() -> None:
    lanes = Lanes()

    for number in range(1000):
        turn = make_turn("turn", f"lane-{number}")
        lanes.add(turn)
        lanes.finish(turn)

    assert lanes.num_turns == 0
    assert lanes.running("lane-1") is None
