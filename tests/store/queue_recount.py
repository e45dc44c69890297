"""A recount of the fair queue from the requests in flight.

Looks at raw keys. What is written twice for speed (who waits, how many, whose seats) must say the
same, every counter must stand in one place, and nothing may be left of a model that is idle.
"""

from collections import Counter, defaultdict
from typing import Any

from chatserve.store import keys
from chatserve.store.codec import pairs
from chatserve.store.connection import Store

PER_MODEL = (
    keys.FIRST.key(keys.WAITING),
    keys.FIRST.key(keys.COUNTERS),
    keys.FIRST.key(keys.SEATS),
    keys.FIRST.key(keys.FLOW),
)


async def recount_queue(store: Store) -> set[str]:
    """Check the queues of all models and return the names that wait."""
    call = store.commands.call
    requests = await _requests(store)
    lines: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    seats: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, request in requests.items():
        model, tenant = request["model"], request["tenant"]
        if "owner" in request:
            seats[model][tenant] += 1
        else:
            lines[model, tenant].add(name)
            score = await call("ZSCORE", keys.FIRST.key(keys.line(model, tenant)), name)
            assert float(score) == float(request["score"]), f"{name}: {score} {request}"
    found = await call("KEYS", keys.FIRST.key(keys.LINE + "*"))
    assert set(found) == {keys.FIRST.key(keys.line(*owner)) for owner in lines}
    for owner, names in lines.items():
        assert set(await call("ZRANGE", keys.FIRST.key(keys.line(*owner)), 0, -1)) == names
    for model in await _models(store) | {request["model"] for request in requests.values()}:
        waiting = {tenant: len(names) for (of, tenant), names in lines.items() if of == model}
        await _check_model(store, model, waiting, seats[model])
    waiting_names = set().union(*lines.values())
    timed = {
        name
        for name in waiting_names
        if "deadline_ms" in requests[name] or int(requests[name]["epoch"])
    }
    assert set(await call("ZRANGE", keys.FIRST.key(keys.DEADLINES), 0, -1)) == timed
    return waiting_names


async def counters(store: Store, model: str) -> dict[str, float]:
    """Return every counter that is remembered, by tenant."""
    waiting = await _scores(store, keys.FIRST.key(keys.WAITING + model))
    return {**waiting, **await _scores(store, keys.FIRST.key(keys.COUNTERS + model))}


async def _check_model(
    store: Store, model: str, waiting: dict[str, int], seats: Counter[str]
) -> None:
    call = store.commands.call
    queue = await _scores(store, keys.FIRST.key(keys.WAITING + model))
    others = await _scores(store, keys.FIRST.key(keys.COUNTERS + model))
    flow = pairs(await call("HGETALL", keys.FIRST.key(keys.FLOW + model)))
    taken = pairs(await call("HGETALL", keys.FIRST.key(keys.SEATS + model)))
    assert set(queue) == set(waiting), f"{model}: {queue=} {waiting=}"
    assert not set(queue) & set(others), f"{model}: {queue=} {others=}"
    assert set(seats) <= set(queue) | set(others), f"{model}: {seats=} {queue=} {others=}"
    assert {tenant: int(count) for tenant, count in taken.items()} == dict(seats), model
    assert int(flow.get("depth", 0)) == sum(waiting.values()), f"{model}: {flow=} {waiting=}"
    assert all(float(flow.get("floor", 0)) <= counter for counter in queue.values()), flow
    keys_left = [key for key in PER_MODEL if await call("EXISTS", key + model)]
    if not waiting and not seats:
        assert keys_left == [], f"{model} is idle: {keys_left}"
    for key in keys_left:
        assert await call("TTL", key + model) > 0, f"{key + model} lives for ever"


async def _requests(store: Store) -> dict[str, dict[str, str]]:
    found = await store.commands.call("KEYS", keys.FIRST.key(keys.REQUEST + "*"))
    return {
        key.removeprefix(keys.FIRST.key(keys.REQUEST)): pairs(
            await store.commands.call("HGETALL", key)
        )
        for key in found
    }


async def _models(store: Store) -> set[str]:
    return {
        key.removeprefix(prefix)
        for prefix in PER_MODEL
        for key in await store.commands.call("KEYS", prefix + "*")
    }


async def _scores(store: Store, key: str) -> dict[str, float]:
    flat: list[Any] = await store.commands.call("ZRANGE", key, 0, -1, "WITHSCORES")
    return {member: float(score) for member, score in pairs(flat).items()}
