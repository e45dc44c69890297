"""The way into the store: checks the server, then hands out what it holds.

Owns the two clients of a process: one for commands that answer at once, one for reads that wait.
Knows which servers will do (7.0 or newer, one that does not evict), whether there is one server or
a cluster, and nothing of what is stored.
"""

import logging
from urllib.parse import urlsplit

from chatserve.errors import StoreError
from chatserve.store import keys
from chatserve.store.api_keys import ApiKeys
from chatserve.store.cache_snapshots import CacheSnapshots
from chatserve.store.connection_leases import ConnectionLeases
from chatserve.store.keys import PARTITIONS, Partitions
from chatserve.store.limits import Limits
from chatserve.store.logins import Logins
from chatserve.store.outage import Outage
from chatserve.store.prompt_news import PromptNews
from chatserve.store.prompts import Prompts
from chatserve.store.queue import RequestQueue
from chatserve.store.queue_load import QueueLoad
from chatserve.store.reading import Reading
from chatserve.store.redis_client import RedisClient
from chatserve.store.response_log import ResponseLog
from chatserve.store.responses import Responses
from chatserve.store.session_store import Sessions
from chatserve.store.tenant_bell import TenantBell
from chatserve.store.tenant_contents import TenantContents
from chatserve.store.tenants import Tenants
from chatserve.store.usage import UsageCounters
from chatserve.store.workers import Workers

logger = logging.getLogger(__name__)

_MIN_VERSION = (7, 0)


class Store:
    """Everything that outlives a process, by subject.

    Owns: the two clients.
    Used from: the event loop that made it.
    """

    def __init__(self, url: str, *, is_cluster: bool = False) -> None:
        self._address = _without_credentials(url)
        self.partitions = Partitions(PARTITIONS) if is_cluster else Partitions()
        outage = Outage()
        self.commands = RedisClient.for_commands(url, outage, is_cluster=is_cluster)
        self.blocking = RedisClient.for_blocking(url, outage, is_cluster=is_cluster)
        self.queue = RequestQueue(self.commands, self.blocking, self.partitions)
        self.load = QueueLoad(self.commands, self.partitions)
        self.log = ResponseLog(self.commands, self.partitions)
        self.responses = Responses(self.commands, self.partitions)
        self.reading = Reading(self.commands, self.partitions)
        self.sessions = Sessions(self.commands, self.partitions)
        self.workers = Workers(self.commands, self.partitions)
        self.cache_snapshots = CacheSnapshots(self.commands)
        self.limits = Limits(self.commands, self.partitions)
        self.usage = UsageCounters(self.commands, self.partitions)
        self.connections = ConnectionLeases(self.commands, self.partitions)
        self.prompts = Prompts(self.commands, self.blocking)
        self.prompt_news = PromptNews(self.commands)
        self.tenants = Tenants(self.commands)
        self.tenant_contents = TenantContents(self.commands, self.partitions)
        self.api_keys = ApiKeys(self.commands)
        self.logins = Logins(self.commands)
        self.tenant_bell = TenantBell(self.commands, self.blocking)

    def __repr__(self) -> str:
        return f"Store({self._address})"

    async def probe(self) -> None:
        """Return when the server takes what is written; raise StoreError when it does not."""
        await self.commands.call("SET", keys.GLOBAL.key(keys.PROBE), 1, "EX", keys.LOG_TTL_S)

    async def check_server(self) -> bool:
        """Refuse a server that is too old and warn about one that may lose what it was given.

        Returns whether it belongs to a cluster.
        """
        info = _parse_info(await self.commands.call("INFO", "everything"))
        version = info["redis_version"]
        if tuple(map(int, version.split(".")[:2])) < _MIN_VERSION:
            raise StoreError(f"{self._address} is a server of version {version}; 7.0 is the least")
        policy = info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction" and info.get("maxmemory") != "0":
            logger.warning(
                "the store at %s evicts keys when its memory is full (maxmemory-policy %s); "
                "sessions and answers may be lost: set it to noeviction",
                self._address,
                policy,
            )
        return info.get("cluster_enabled") == "1"

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
        is_cluster = await store.check_server()
    except BaseException:
        await store.aclose()
        raise
    if not is_cluster:
        return store
    await store.aclose()
    return Store(url, is_cluster=True)


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _parse_info(reply: str) -> dict[str, str]:
    lines = (line.partition(":") for line in reply.splitlines() if not line.startswith("#"))
    return {name: value.strip() for name, _, value in lines if name}
