"""A fault of other services under load, as a small scenario with the right behaviour."""

import asyncio

from store.store_helpers import MODEL, check_invariants, make_record, make_request

from chatserve.store.connection import Store, open_store
from chatserve.store.fair_queue import Full


async def test_two_gateways_let_no_more_into_the_queue_than_it_holds(
    store: Store, server_url: str
) -> None:
    """sgl-project/sglang#33858: each frontend counted for itself, and both filled the queue"""
    other = await open_store(server_url)
    gateways = [store, other]

    places = await asyncio.gather(
        *(
            gateways[number % 2].queue.enqueue(
                make_request(f"r{number}"), make_record(f"r{number}"), max_queue=4
            )
            for number in range(20)
        )
    )
    await other.aclose()

    assert sum(isinstance(place, Full) for place in places) == 16
    assert await store.queue.depth(MODEL) == 4
    await check_invariants(store)
