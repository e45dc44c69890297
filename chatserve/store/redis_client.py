"""Commands and scripts over one redis-py client, with our errors and types.

Owns everything that is awkward about redis-py: its default timeouts, its reshaped replies, its
loosely typed methods. Above this module a command is a tuple of values, and a reply is what the
server sent as text, integers, lists and None. Knows no key and no script by name.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import ClusterDownError, NoScriptError, RedisError, ResponseError
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import TimeoutError as ServerTimeout

from chatserve.errors import StoreAway, StoreError, StoreFault
from chatserve.store.codec import Command, Value
from chatserve.store.outage import Outage
from chatserve.store.scripts import Script

_COMMAND_TIMEOUT_S = 5.0
_MAX_CONNECTIONS = 16
_RETRY_BASE_S = 0.02

_AWAY = (ConnectionLost, ServerTimeout, ClusterDownError, OSError)
"""What means that nobody answers, the deadline of a command included."""


class RedisClient:
    """One connection pool and the three ways to use it: a command, a pipeline, a script.

    A lost connection is tried again a few times by `for_commands` clients, so whatever is sent
    through one must bear being executed twice. Every failure is a StoreError. A caller that is
    cancelled while it waits closes its connection, so that no later command reads that reply. That
    nobody answers is told by the `outage`, which the clients of one store share.

    Owns: its connections, at most `_MAX_CONNECTIONS`; callers beyond that wait their turn.
    Used from: the event loop that made it.
    """

    def __init__(
        self, url: str, retry: Retry, outage: Outage | None = None, *, is_cluster: bool = False
    ) -> None:
        self._redis = _cluster(url, retry) if is_cluster else _server(url, retry)
        self._outage = outage or Outage()
        self._is_cluster = is_cluster
        self._retries = retry.get_retries()
        # Not redis-py's blocking pool: its condition can lose the wake-up of a cancelled waiter.
        self._turns = asyncio.Semaphore(_MAX_CONNECTIONS)

    @classmethod
    def for_commands(
        cls, url: str, outage: Outage | None = None, *, is_cluster: bool = False
    ) -> Self:
        """Make a client for commands that answer at once."""
        retry = Retry(ExponentialBackoff(cap=0.5, base=_RETRY_BASE_S), 4)
        return cls(url, retry, outage, is_cluster=is_cluster)

    @classmethod
    def for_blocking(
        cls, url: str, outage: Outage | None = None, *, is_cluster: bool = False
    ) -> Self:
        """Make a client for commands that wait on the server; a failure is not tried again."""
        return cls(url, Retry(NoBackoff(), 0), outage, is_cluster=is_cluster)

    async def call(self, *command: Value, timeout_s: float = _COMMAND_TIMEOUT_S) -> Any:
        """Run one command and return its reply, within `timeout_s`."""
        async with self._turn(timeout_s):
            return await self._redis.execute_command(*command)

    async def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands in one round trip; others' commands may come between them."""
        replies = await self._pipeline(commands)
        return [_raised(reply) for reply in replies]

    async def run(self, script: Script, root: str, *arguments: Value) -> Any:
        """Run one script on the partition with this root, and return its reply."""
        return (await self.run_many(script, [(root, *arguments)]))[0]

    async def run_many(self, script: Script, calls: Sequence[Command]) -> list[Any]:
        """Run one script once per root and arguments, in order and in one round trip."""
        commands = [("EVALSHA", script.sha, 1, *call) for call in calls]
        replies = await self._pipeline(commands)
        # A server that was restarted has forgotten its scripts and ran none of the calls.
        unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            await self.call("SCRIPT LOAD", script.source)
            for i, reply in zip(
                unknown, await self._pipeline([commands[i] for i in unknown]), strict=True
            ):
                replies[i] = reply
        return [_raised(reply) for reply in replies]

    async def aclose(self) -> None:
        await self._redis.aclose()

    async def _pipeline(self, commands: Sequence[Command]) -> list[Any]:
        if not commands:
            return []
        async with self._turn(_COMMAND_TIMEOUT_S):
            replies = await self._send(commands)
            # A single server's connection is tried again below; to a cluster, each node is its own.
            for attempt in range(self._retries if self._is_cluster else 0):
                lost = [i for i, reply in enumerate(replies) if isinstance(reply, ConnectionLost)]
                if not lost:
                    break
                await asyncio.sleep(_RETRY_BASE_S * 2**attempt)
                again = await self._send([commands[i] for i in lost])
                for i, reply in zip(lost, again, strict=True):
                    replies[i] = reply
            for reply in replies:
                if isinstance(reply, ConnectionLost):
                    raise reply
            return replies

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        async with self._redis.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
            return replies

    @asynccontextmanager
    async def _turn(self, timeout_s: float) -> AsyncIterator[None]:
        """Wait for a connection to be free, then bound what is done with it."""
        async with self._turns:
            try:
                async with asyncio.timeout(timeout_s):
                    yield
            except _AWAY as error:
                self._outage.note_failure(error)
                raise StoreAway(f"the store failed: {error or type(error).__name__}") from error
            except (RedisError, OSError) as error:
                raise _failure(error) from error
            else:
                self._outage.note_answer()


# What redis-py itself asks a cluster for, and needs reshaped.
_CLUSTER_COMMANDS = ("CLUSTER", "COMMAND")

_SETTINGS: dict[str, Any] = {
    "protocol": 2,
    "decode_responses": True,
    "health_check_interval": 30,
    "socket_connect_timeout": 3.0,
    # redis-py bounds a write by wait_for, which swallows cancellations on Python 3.11, and cuts
    # blocking reads short; `_turn` bounds the whole command instead.
    "socket_timeout": None,
}


def _server(url: str, retry: Retry) -> Redis:
    settings = {**_SETTINGS, "retry": retry}
    pool = ConnectionPool.from_url(url, max_connections=_MAX_CONNECTIONS, **settings)
    pool.connection_kwargs.update(settings)  # against options in the URL
    redis = Redis.from_pool(pool)
    # Replies then arrive as the server sent them, in every version of redis-py.
    redis.response_callbacks.clear()
    return redis


def _cluster(url: str, retry: Retry) -> RedisCluster:
    cluster = RedisCluster.from_url(
        url, max_connections=_MAX_CONNECTIONS, **{**_SETTINGS, "retry": retry}
    )
    callbacks = cluster.response_callbacks
    for command in [name for name in callbacks if name.split()[0] not in _CLUSTER_COMMANDS]:
        del callbacks[command]
    return cluster


# Refusals for want of a disk or of replicas, which redis-py has no class for.
_STATES = ("MISCONF", "NOREPLICAS")


def _raised(reply: Any) -> Any:
    if isinstance(reply, RedisError):
        raise _failure(reply) from reply
    return reply


def _failure(error: RedisError | OSError) -> StoreError:
    """Return what a failure means; most states of a server have a class of their own."""
    if type(error) is ResponseError and not str(error).startswith(_STATES):
        return StoreFault(f"the store refused a command: {error}")
    return StoreError(f"the store failed: {error or type(error).__name__}")
