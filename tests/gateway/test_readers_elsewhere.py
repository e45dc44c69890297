"""An answer that somebody reads through another gateway is not abandoned."""

from gateway.gateway_helpers import Event, Service, first_response_id, outcome_of, run_service
from gateway.responses_helpers import PATH, body

from chatserve.engine.api import FinishReason, RequestId


async def is_running(service: Service, response_id: str) -> bool:
    record = await service.store.responses.get(RequestId(response_id))
    return record is not None and record.outcome is None


async def test_reader_elsewhere_keeps_an_answer_through_its_grace(store_url: str) -> None:
    async with (
        run_service(store_url, disconnect_grace_s=0.0) as one,
        run_service(store_url, disconnect_grace_s=0.0) as two,
        two.socket() as staying,
    ):
        one.model.hold()
        two.model.hold()
        async with one.socket() as leaving:
            await leaving.create("Hello")
            head = await leaving.receive_until("response.queued")
            await staying.send("chatserve:response.resume", response_id=head[0]["response"]["id"])
            await staying.receive_until("response.queued")
        await one.wait_until_unread()
        one.model.release()
        two.model.release()

        events: list[Event] = await staying.receive_answer()

    assert events[-1]["type"] == "response.completed"


async def test_last_reader_ends_it_through_whichever_gateway_it_leaves(store_url: str) -> None:
    async with (
        run_service(store_url, disconnect_grace_s=0.0) as one,
        run_service(store_url, disconnect_grace_s=0.0) as two,
    ):
        one.model.hold()
        two.model.hold()
        async with two.socket() as staying:
            async with one.http.stream("POST", PATH, json=body("Hello", stream=True)) as reply:
                lines = reply.aiter_lines()  # kept, since httpx closes a stream with its iterator
                await anext(lines)
                response_id = await first_response_id(one.store)
                await staying.send("chatserve:response.resume", response_id=response_id)
                await staying.receive_until("response.queued")
            await one.wait_until_unread()
            assert await is_running(one, response_id)

        outcome = await outcome_of(one.store, response_id)

    assert outcome.finish_reason is FinishReason.ABORT


async def test_gateway_that_stops_ends_what_could_only_be_read_there(store_url: str) -> None:
    """Its HTTP requests used to be computed to their end for nobody."""
    async with run_service(store_url) as staying:
        staying.model.hold()
        async with run_service(store_url) as stopping:
            stopping.model.hold()
            asking = stopping.spawn(stopping.http.post(PATH, json=body("Hello")))
            response_id = await first_response_id(stopping.store)
            stopping.services.generations.stop_abandoning()
            await stopping.services.generations.aclose()
            outcome = await outcome_of(staying.store, response_id)
            asking.cancel()

    assert outcome.finish_reason is FinishReason.ABORT
