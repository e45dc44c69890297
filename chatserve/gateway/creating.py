"""From a create to an answer that can be read: started, or come back to.

Owns the rule that a create whose id its client chose is done once. The same one again, over
whichever gateway and transport, leads to the same answer; another one under that id is refused.
Knows no transport.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chatserve.gateway.generation import Answer, duplicate_event_id
from chatserve.gateway.history import find_response
from chatserve.gateway.responses import Order, draft_response
from chatserve.gateway.services import Services


@asynccontextmanager
async def answer_to(services: Services, order: Order) -> AsyncIterator[Answer]:
    """Start the answer of a create, or resume the one that it has already.

    Raises:
        ClientError: The create cannot be served as it is.
        StoreError: The store does not answer.
    """
    if order.is_repeatable:
        own = (order.response_id,)  # its id says whose it is
        earlier = await find_response(services.store, order.response_id, order.identity, own)
        if earlier is not None:
            if earlier.fingerprint != order.request.fingerprint:
                raise duplicate_event_id()
            async with services.generations.resume(earlier) as answer:
                yield answer
            return
    draft = await draft_response(services, order)
    async with services.generations.start(draft) as answer:
        if services.titles is not None:
            services.titles.watch(draft)
        yield answer
