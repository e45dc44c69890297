"""Which worker a request is sent to, and that comparing all at once finds what one by one does."""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from chatserve.gateway.routed_prompt import RoutedPrompt
from chatserve.gateway.routing import RoutingTable, WorkerLoad
from chatserve.gateway.sent_prefixes import SETTLE_S
from chatserve.prefix_digest import (
    HeldPrefixes,
    PageHashes,
    PrefixDigest,
    continue_hashes,
    tenant_salt,
)

PAGE = 4
TENANTS = ("acme", "brown")


@dataclass
class KnownWorker:
    """What a worker has said of itself: its load and the prompts in its cache, by tenant."""

    load: WorkerLoad = field(default_factory=WorkerLoad)
    held: dict[str, list[list[int]]] = field(default_factory=dict)
    stride: int = 1

    def digest(self) -> PrefixDigest:
        hashes = {
            tenant: b"".join(self._named(prompt) for prompt in prompts)
            for tenant, prompts in self.held.items()
        }
        return PrefixDigest.of(HeldPrefixes(PAGE, self.stride, hashes))

    def _named(self, prompt: list[int]) -> bytes:
        whole = prompt[: len(prompt) // PAGE * PAGE]
        hashes = continue_hashes(b"", whole, PAGE)
        pages = [hashes[at : at + 8] for at in range(0, len(hashes), 8)]
        return b"".join(pages[self.stride - 1 :: self.stride])

    def cost(self, prompt: list[int], tenant: str) -> int:
        """The formula of the module's docstring, by the digest alone, in eighths of a token."""
        digest, hashes = self.digest(), PageHashes(prompt[:-1], PAGE)
        num_held, is_public = 0, True
        for page in range(self.stride - 1, hashes.num_pages, self.stride):
            is_public = is_public and digest.holds(hashes[page] ^ tenant_salt(""))
            if not is_public and not digest.holds(hashes[page] ^ tenant_salt(tenant)):
                break
            num_held = (page + 1) * PAGE
        missing, num_pages = len(prompt) - num_held, -(-(len(prompt) - num_held) // PAGE)
        room = 1 << self.load.free_pages.bit_length() >> 1  # known as a power of two
        times = 1 if room >= num_pages else 2
        return missing * times * 8 + len(prompt) * self.load.level(0)


def make_table(workers: Mapping[str, KnownWorker]) -> RoutingTable:
    table = RoutingTable()
    for worker_id, worker in workers.items():
        table.put_load(worker_id, worker.load)
        table.put_digest(worker_id, worker.digest())
    return table


def prompt_of(*pages: int, tail: int = 1) -> list[int]:
    """Return a prompt of pages of one repeated token, and the beginning of another page."""
    return [token for page in pages for token in [page] * PAGE] + [99] * tail


def choose(
    table: RoutingTable, prompt: list[int], tenant: str = "acme", now_s: float = 0.0
) -> str | None:
    route = table.choose(RoutedPrompt(prompt, tenant), now_s)
    return route.worker_id if route else None


pages = st.lists(st.integers(0, 2), min_size=0, max_size=6)
loads = st.builds(
    WorkerLoad, st.integers(0, 9), st.integers(0, 2), st.integers(1, 8), st.integers(0, 9)
)
held = st.dictionaries(
    st.sampled_from(("", *TENANTS)), st.lists(pages.map(lambda each: prompt_of(*each)), max_size=3)
)
fleets = st.lists(
    st.builds(KnownWorker, loads, held, st.sampled_from((1, 1, 2))), min_size=2, max_size=6
)


@settings(max_examples=200)
@given(fleets, pages.filter(bool), st.sampled_from(TENANTS))
def test_no_worker_costs_less_than_the_one_that_is_chosen(
    fleet: list[KnownWorker], wanted: list[int], tenant: str
) -> None:
    workers = {f"w{index}": worker for index, worker in enumerate(fleet)}
    prompt = prompt_of(*wanted)

    chosen = choose(make_table(workers), prompt, tenant)

    costs = {worker_id: worker.cost(prompt, tenant) for worker_id, worker in workers.items()}
    assert chosen is not None
    assert costs[chosen] == min(costs.values())


@settings(max_examples=50)
@given(fleets, fleets, pages.filter(bool))
def test_a_table_that_has_changed_chooses_like_a_new_one(
    before: list[KnownWorker], after: list[KnownWorker], wanted: list[int]
) -> None:
    table = make_table({f"w{index}": worker for index, worker in enumerate(before)})
    workers = {f"w{index}": worker for index, worker in enumerate(after)}
    for worker_id, worker in workers.items():
        table.put_load(worker_id, worker.load)
        table.put_digest(worker_id, worker.digest())
    for worker_id in table.worker_ids - set(workers):
        table.remove(worker_id)

    chosen = choose(table, prompt_of(*wanted))

    assert chosen == choose(make_table(workers), prompt_of(*wanted))


@settings(max_examples=50)
@given(fleets, pages.filter(bool), st.lists(pages, max_size=3))
def test_what_another_tenant_holds_does_not_change_the_route(
    fleet: list[KnownWorker], wanted: list[int], secret: list[list[int]]
) -> None:
    for worker in fleet:
        worker.held.pop("brown", None)
    workers = {f"w{index}": worker for index, worker in enumerate(fleet)}
    without = choose(make_table(workers), prompt_of(*wanted))
    fleet[0].held["brown"] = [prompt_of(*each) for each in secret]

    assert choose(make_table(workers), prompt_of(*wanted)) == without


def test_full_hit_is_worth_as_much_as_a_full_batch_and_no_more() -> None:
    holder = {"acme": [prompt_of(1, 2, 3, 4)]}
    busy = KnownWorker(WorkerLoad(running=7, seats=8), holder)
    full = KnownWorker(WorkerLoad(running=8, waiting=1, seats=8), holder)

    assert (
        choose(make_table({"busy": busy, "idle": KnownWorker()}), prompt_of(1, 2, 3, 4)) == "busy"
    )
    assert (
        choose(make_table({"full": full, "idle": KnownWorker()}), prompt_of(1, 2, 3, 4)) == "idle"
    )


def test_new_tenant_goes_to_one_worker_whichever_gateway_asks() -> None:
    rng = random.Random(0)
    workers = {f"w{index}": KnownWorker() for index in range(6)}
    gateways = [make_table(workers) for _ in range(3)]
    prompts = [prompt_of(1, 1, 1, 1, rng.randrange(50)) for _ in range(12)]

    chosen = {
        choose(rng.choice(gateways), prompt, now_s=100.0 * i) for i, prompt in enumerate(prompts)
    }

    assert len(chosen) == 1


def test_tenants_are_spread_and_keep_their_worker_when_another_one_comes() -> None:
    workers = {f"w{index}": KnownWorker() for index in range(8)}
    tenants = [f"tenant-{number}" for number in range(400)]
    table = make_table(workers)
    before = {
        each: choose(table, prompt_of(1, 2, 3, 4), each, 10.0 * i) for i, each in enumerate(tenants)
    }
    grown = make_table({**workers, "w8": KnownWorker()})

    after = {
        each: choose(grown, prompt_of(1, 2, 3, 4), each, 10.0 * i) for i, each in enumerate(tenants)
    }

    assert min(Counter(before.values()).values()) >= 30
    moved = [each for each in tenants if after[each] != before[each]]
    assert {after[each] for each in moved} == {"w8"}
    assert 20 <= len(moved) <= 80


def test_burst_stays_with_its_worker_until_that_one_is_full_and_spills_over() -> None:
    """Neither heartbeat nor digest show a request that was sent a moment ago."""
    workers = {f"w{index}": KnownWorker(WorkerLoad(seats=4)) for index in range(3)}
    table = make_table(workers)

    sent = [choose(table, prompt_of(1, 2, 3, 4, 5), now_s=0.1) for _ in range(9)]

    assert len(set(sent[:4])) == 1
    assert max(Counter(sent).values()) <= 5
    assert len(set(sent)) > 1


def test_what_was_sent_counts_until_the_worker_must_show_it() -> None:
    table = make_table({f"w{index}": KnownWorker(WorkerLoad(seats=1)) for index in range(2)})
    first = choose(table, prompt_of(1), now_s=1.0)
    at_once = choose(table, prompt_of(2, 3), "brown", now_s=1.1)
    later = choose(table, prompt_of(1), now_s=1.0 + 3 * SETTLE_S)

    assert at_once != first
    assert later == first


def test_what_was_sent_counts_as_held_until_the_digest_must_show_it() -> None:
    """Renewed with each request, it would stand for ever against a digest that denies it."""
    workers = {"a": KnownWorker(WorkerLoad(seats=8)), "b": KnownWorker(WorkerLoad(seats=8))}
    table = make_table(workers)
    prompt = RoutedPrompt(prompt_of(1, 2, 3, 4), "acme")
    first = table.choose(prompt, 0.0)
    assert first is not None
    [other] = set(workers) - {first.worker_id}
    table.put_load(first.worker_id, WorkerLoad(running=4, seats=8))
    soon = table.choose(prompt, SETTLE_S)
    table.put_load(first.worker_id, WorkerLoad(running=16, seats=8))
    elsewhere = table.choose(prompt, 1.5 * SETTLE_S)
    table.put_load(first.worker_id, WorkerLoad(running=1, seats=8))
    later = table.choose(prompt, 2.6 * SETTLE_S)

    assert soon is not None
    assert elsewhere is not None
    assert later is not None
    assert soon.worker_id == first.worker_id
    assert elsewhere.worker_id == later.worker_id == other


def test_what_has_ended_is_no_load_any_more() -> None:
    table = make_table({f"w{index}": KnownWorker(WorkerLoad(seats=1)) for index in range(2)})
    prompt = RoutedPrompt(prompt_of(1), "acme")
    route = table.choose(prompt, 1.0)
    assert route is not None
    table.finish(route)
    table.finish(route)

    again = table.choose(prompt, 1.1)
    meanwhile = table.choose(RoutedPrompt(prompt_of(2), "acme"), 1.2)

    assert again is not None
    assert meanwhile is not None
    assert route.worker_id == again.worker_id != meanwhile.worker_id


def test_worker_that_takes_over_a_slot_inherits_nothing() -> None:
    holder = KnownWorker(held={"acme": [prompt_of(1, 2)]})
    table = make_table({"a": holder, "b": KnownWorker(WorkerLoad(running=1, seats=8))})
    table.remove("a")
    table.put_load("c", WorkerLoad(running=4, seats=8))

    assert choose(table, prompt_of(1, 2)) == "b"


def test_nothing_is_chosen_where_it_makes_no_difference() -> None:
    alone = make_table({"w": KnownWorker()})
    two = make_table({"v": KnownWorker(), "w": KnownWorker()})

    assert choose(alone, prompt_of(1, 2)) is None
    assert choose(two, [1] * PAGE) is None
    assert choose(RoutingTable(), prompt_of(1)) is None
