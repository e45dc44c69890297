"""A schedule of two tenants that can be run again with other words, and what each sees of it.

Nothing is sampled: answers are part of the schedule, so that no length depends on a token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unit.scope_helpers import NO_EOS, Witness, ask

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.cache.scope import NO_RETENTION, Retention
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.api import KeptPrefix, RequestId
from chatserve.engine.request import Request
from chatserve.engine.scheduler import (
    ScheduledRequest,
    Scheduler,
    SchedulerConfig,
    SchedulerOutput,
)

PREAMBLE = tuple(range(900, 907))
WORDS = (0, 1, 2)
"""What both tenants say, so that one says what the other does as often as possible."""

OTHER_WORDS = (50, 51, 52)
_MAX_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to come: whose, when, what it says and will answer, and when it gives up."""

    tenant: str
    step: int
    num_public: int
    private: tuple[int, ...]
    answer: tuple[int, ...]
    abort_step: int | None = None

    def arrive(self, name: RequestId) -> Request:
        prompt = PREAMBLE[: self.num_public] + self.private
        return ask(name, prompt, self.tenant, max_tokens=len(self.answer))

    def with_words(self, words: Mapping[int, int]) -> "Visit":
        """Return the same visit with other private tokens."""
        return replace(
            self,
            private=tuple(words[each] for each in self.private),
            answer=tuple(words[each] for each in self.answer),
        )


@dataclass(frozen=True, slots=True)
class Place:
    """The engine that is visited. Conversations expire after `ttl_steps` without use."""

    page_size: int
    num_pages: int
    max_num_seqs: int = 4
    budget: int = 16
    ttl_steps: float = float("inf")
    cache_scope: CacheScope = CacheScope.TENANT

    @property
    def num_slots(self) -> int:
        return self.num_pages * self.page_size


@dataclass(frozen=True, slots=True)
class Entry:
    """What one step does for one request; a copy is its source and how many tokens of it."""

    name: RequestId
    start: int
    token_ids: list[int]
    samples: bool
    page_ids: list[PageId]
    copies: list[tuple[PageId, int]]

    @classmethod
    def of(cls, run: ScheduledRequest, output: SchedulerOutput) -> "Entry":
        copies = [each for each in output.page_copies if each.destination in run.page_ids]
        return cls(
            run.request.request_id,
            run.start,
            run.token_ids,
            run.samples,
            run.page_ids,
            [(each.source, each.num_tokens) for each in copies],
        )


@dataclass(frozen=True, slots=True)
class View:
    """What a tenant sees of one step: all that is decided for its own requests."""

    entries: list[Entry]
    admitted: list[tuple[RequestId, int | None]]
    preempted: list[RequestId]

    @classmethod
    def of(cls, tenant: str, output: SchedulerOutput) -> "View":
        own = [run for run in output.scheduled if run.request.tenant == tenant]
        admitted = [each for each in output.admitted if each.tenant == tenant]
        return cls(
            [Entry.of(run, output) for run in own],
            [(each.request_id, each.num_cached_tokens) for each in admitted],
            [each.request_id for each in output.preempted if each.tenant == tenant],
        )


class Run:
    """One run of a schedule, to its end, recounted and watched in every step.

    Owns: the scheduler, and all that it decided.
    """

    def __init__(self, place: Place, visits: Sequence[Visit]):
        self.cache = PrefixCache(place.num_pages, place.page_size)
        self.outputs: list[SchedulerOutput] = []
        self.num_evictions = 0
        self._witness = Witness(place.num_pages, place.page_size, place.cache_scope)
        self._witness.prefixes.append(KeptPrefix("", "preamble", PREAMBLE))
        self._visits = {
            RequestId(f"{each.tenant}{index}"): each for index, each in enumerate(visits)
        }
        scope_map = ScopeMap(place.cache_scope, Retention(ttl_s=place.ttl_steps))
        scope_map.register("", PREAMBLE, NO_RETENTION)
        self.scheduler = Scheduler(
            SchedulerConfig(place.max_num_seqs, place.budget, place.num_slots, NO_EOS),
            self.cache,
            scope_map,
        )
        for step in range(_MAX_STEPS):
            if step > max(each.step for each in visits) and not self.scheduler.has_work:
                return
            self._receive(step)
            self._step(step)
        raise AssertionError(f"not done after {_MAX_STEPS} steps")

    def views_of(self, tenant: str) -> list[View]:
        return [View.of(tenant, output) for output in self.outputs]

    def _receive(self, step: int) -> None:
        for name, visit in self._visits.items():
            if visit.step == step:
                self.scheduler.add(visit.arrive(name))
        self.scheduler.abort(
            name for name, visit in self._visits.items() if visit.abort_step == step
        )

    def _step(self, step: int) -> None:
        self.cache.expire(float(step))
        cached = self.cache.tree.evictable_pages + self.cache.tree.protected_pages
        output = self.scheduler.schedule()
        left = self.cache.tree.evictable_pages + self.cache.tree.protected_pages
        self.num_evictions += max(0, cached - left)
        self.outputs.append(output)
        self._witness.see(output)
        computed = [run.request for run in output.scheduled]
        self.scheduler.update(output, {each.request_id: self._answer(each) for each in computed})
        self.scheduler.check_invariants()

    def _answer(self, request: Request) -> int:
        return self._visits[request.request_id].answer[request.num_output_tokens]
