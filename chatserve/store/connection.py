"""The way into the store: checks the server, then hands out what it holds.

Owns the two clients of a process: one for commands that answer at once, one for reads that wait.
Knows which servers will do (6.2 or newer, one that does not evict) and nothing of what is stored.
"""

import logging
from urllib.parse import urlsplit

from chatserve.errors import StoreError
from chatserve.store.prompt_news import PromptNews
from chatserve.store.prompts import Prompts
from chatserve.store.queue import RequestQueue
from chatserve.store.redis_client import RedisClient
from chatserve.store.response_log import ResponseLog
from chatserve.store.responses import Responses
from chatserve.store.sessions import Sessions
from chatserve.store.workers import Workers

logger = logging.getLogger(__name__)

_MIN_VERSION = (6, 2)


class Store:
    """Everything that outlives a process, by subject.

    Owns: the two clients.
    Used from: the event loop that made it.
    """

    def __init__(self, url: str) -> None:
        self._address = _without_credentials(url)
        self.commands = RedisClient.for_commands(url)
        self.blocking = RedisClient.for_blocking(url)
        self.queue = RequestQueue(self.commands, self.blocking)
        self.log = ResponseLog(self.commands)
        self.responses = Responses(self.commands)
        self.sessions = Sessions(self.commands)
        self.workers = Workers(self.commands)
        self.prompts = Prompts(self.commands, self.blocking)
        self.prompt_news = PromptNews(self.commands)

    def __repr__(self) -> str:
        return f"Store({self._address})"

    async def ping(self) -> None:
        """Return when the server answers; raise StoreError when it does not."""
        await self.commands.call("PING")

    async def check_server(self) -> None:
        """Refuse a server that is too old and warn about one that may lose what it was given."""
        info = _parse_info(await self.commands.call("INFO", "all"))
        version = info["redis_version"]
        if tuple(map(int, version.split(".")[:2])) < _MIN_VERSION:
            raise StoreError(f"{self._address} is a server of version {version}; 6.2 is the least")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction" and info.get("maxmemory") != "0":
            logger.warning(
                "the store at %s evicts keys when its memory is full (maxmemory-policy %s); "
                "sessions and answers may be lost: set it to noeviction",
                self._address,
                policy,
            )

    async def aclose(self) -> None:
        await self.commands.aclose()
        await self.blocking.aclose()


async def open_store(url: str) -> Store:
    """Connect to redis://, rediss:// or unix:// and return the store behind it.

    Raises:
        StoreError: The URL makes no sense, nobody answers there, or the server is too old.
    """
    try:
        store = Store(url)
    except ValueError as error:
        raise StoreError(f"the store's URL {_without_credentials(url)} cannot be used") from error
    try:
        await store.check_server()
    except BaseException:
        await store.aclose()
        raise
    return store


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _parse_info(reply: str) -> dict[str, str]:
    lines = (line.partition(":") for line in reply.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, _, value in lines if name}
