"""Ends requests that have waited too long and that no worker is left to end: longer than their
timeout allows, or for a worker to go on with them after theirs was lost.

Workers do so as well. But the last of them may have gone, or hang with requests in hand, and their
clients wait all the same: a lease that ran out puts its request back into the queue, and there it
is ended.
"""

import asyncio
import logging

from chatserve.errors import StoreError
from chatserve.store.queue import RequestQueue
from chatserve.wording import counted

logger = logging.getLogger(__name__)

PERIOD_S = 1.0


async def end_overdue_requests(queue: RequestQueue) -> None:
    """Look again and again, until cancelled; several gateways may do so at once."""
    while True:
        await asyncio.sleep(PERIOD_S)
        try:
            await queue.reap()
            ended = await queue.end_overdue()
        except StoreError as error:
            logger.log(error.log_level, "overdue requests cannot be looked for: %s", error)
            continue
        if ended:
            logger.warning("%s waited longer than allowed", counted(len(ended), "request"))
