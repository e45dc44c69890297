"""The readers of running answers in a gateway process: one for each partition of the store.

Owns which reader a log belongs to. On a server that is no cluster there is one partition, and so
one blocking read for all answers; no read could span the partitions of a cluster.
"""

from collections.abc import AsyncGenerator

from chatserve.engine.api import RequestId
from chatserve.store.connection import Store
from chatserve.store.log_reader import LogReader
from chatserve.store.response_log import LogEntry


class LogReaders:
    """Everything that a gateway needs to follow answers.

    Owns: the readers, between `start` and `aclose`.
    Used from: the event loop.
    """

    def __init__(self, store: Store) -> None:
        self._partitions = store.partitions
        self._readers = {
            partition: LogReader(store, partition) for partition in store.partitions.all
        }

    @property
    def num_logs(self) -> int:
        """How many logs are followed live."""
        return sum(reader.num_logs for reader in self._readers.values())

    def start(self) -> None:
        for reader in self._readers.values():
            reader.start()

    async def aclose(self) -> None:
        for reader in self._readers.values():
            await reader.aclose()

    def dismiss(self, error: Exception) -> None:
        """End all following with an error, for good."""
        for reader in self._readers.values():
            reader.dismiss(error)

    def follow(self, request_id: RequestId, after: int = -1) -> AsyncGenerator[LogEntry, None]:
        """Yield the entries of a log as `LogReader.follow` does."""
        reader = self._readers[self._partitions.of_id(request_id)]
        return reader.follow(request_id, after)
