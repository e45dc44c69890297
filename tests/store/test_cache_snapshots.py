"""What workers show of their caches, and the marks of those who look."""

from dataclasses import replace

from chatserve.cache_snapshot import (
    CacheSnapshot,
    HiddenNodes,
    NodeState,
    RunningRequest,
    StepCounts,
    StepInterval,
)
from chatserve.store import keys
from chatserve.store.connection import Store

TTL_MS = 60_000
NODE = NodeState(
    7, None, "acme", "ann", 5, [0, 2], 3, 1.5, ["acme"], [["acme", "ann"]], [1, 2], [9]
)
REQUEST = RunningRequest("resp_1", "acme", "ann", 7, True, 9, 4, 4, 0, [0, 3], 3)
SNAPSHOT = CacheSnapshot(
    taken_at=1767225600.125,
    page_size=4,
    by_user=True,
    pages="2.pu",
    nodes=[NODE, replace(NODE, node_id=2**48 - 1, parent_id=7, user=None, pages=[1])],
    hidden=[HiddenNodes("zeta", None, 12)],
    requests=[REQUEST, replace(REQUEST, node_id=None, copied_page=None)],
    intervals=[StepInterval(1767225599.5, [StepCounts("acme", "ann", 1, 2, 3, 4)])],
)


async def test_snapshot_is_read_as_it_was_published(store: Store) -> None:
    await store.cache_snapshots.publish("w1", SNAPSHOT, TTL_MS)

    assert await store.cache_snapshots.read(["w0", "w1"]) == {"w1": SNAPSHOT}
    assert await store.cache_snapshots.read([]) == {}


async def test_publishing_replaces_what_was_shown_before(store: Store) -> None:
    later = replace(SNAPSHOT, pages="....", nodes=[], requests=[])
    await store.cache_snapshots.publish("w1", SNAPSHOT, TTL_MS)

    await store.cache_snapshots.publish("w1", later, TTL_MS)

    assert await store.cache_snapshots.read(["w1"]) == {"w1": later}


async def test_snapshot_runs_out_by_itself(store: Store) -> None:
    await store.cache_snapshots.publish("w1", SNAPSHOT, TTL_MS)

    key = keys.GLOBAL.key(keys.CACHE_SNAPSHOT + "w1")
    assert 0 < await store.commands.call("PTTL", key) <= TTL_MS


async def test_only_workers_that_were_marked_are_watched(store: Store) -> None:
    await store.cache_snapshots.watch(["w1", "w2"], TTL_MS)

    watched = [await store.cache_snapshots.is_watched(each) for each in ("w0", "w1", "w2")]

    assert watched == [False, True, True]


async def test_mark_is_renewed_and_runs_out(store: Store) -> None:
    key = keys.GLOBAL.key(keys.CACHE_WATCH + "w1")
    await store.cache_snapshots.watch(["w1"], 5_000)
    await store.cache_snapshots.watch(["w1"], TTL_MS)
    await store.cache_snapshots.watch([], TTL_MS)

    assert 5_000 < await store.commands.call("PTTL", key) <= TTL_MS
    await store.commands.call("PEXPIRE", key, 0)
    assert not await store.cache_snapshots.is_watched("w1")
