"""A scheduler that tenants share, watched by somebody who knows who computed every slot.

Nothing here asks the code under test whose a page is. The witness follows what each step copies and
writes, and whoever reads a slot must have computed it, or it must hold a token of a registered
prefix that the reader's own prompt begins with.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unit.cache_helpers import hash_model
from unit.tokenizer_helpers import byte_level_definition, make_tokenizer

from chatserve.cache.page_allocator import PageId
from chatserve.cache.pins import PinLimits
from chatserve.cache.prefix_cache import PageCopy, PrefixCache
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.api import GenerationRequest, KeptPrefix, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.fake import FakeRunner
from chatserve.engine.prefix_keeper import PrefixKeeper
from chatserve.engine.request import Request
from chatserve.engine.scheduler import (
    ScheduledRequest,
    Scheduler,
    SchedulerConfig,
    SchedulerOutput,
)

NO_EOS: frozenset[int] = frozenset()


def ask(
    name: str, prompt: Sequence[int], tenant: str, user: str = "", *, max_tokens: int = 1
) -> Request:
    """Return a request of a tenant's user."""
    sampling = SamplingParams(max_tokens=max_tokens, seed=0)
    return Request.create(
        GenerationRequest(RequestId(name), "m", tuple(prompt), sampling, tenant, user)
    )


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Count equal leading tokens, one by one."""
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return count


class Owner(NamedTuple):
    """Who computed a slot."""

    tenant: str
    user: str


class Witness:
    """Remembers who computed every slot, and what every request was given to read.

    Owns: the owners of slots, and each request's pages. Used from: the rig.
    """

    def __init__(self, num_pages: int, page_size: int, cache_scope: CacheScope):
        self.prefixes: list[KeptPrefix] = []
        self.pages: dict[str, set[PageId]] = {}
        self._slots: list[list[Owner | None]] = [[None] * page_size for _ in range(num_pages)]
        self._page_size = page_size
        self._cache_scope = cache_scope

    def see(self, output: SchedulerOutput) -> None:
        """Follow a step's copies, then check what its runs read, and note what they write."""
        for copy in output.page_copies:
            self._copy(copy)
        for run in output.scheduled:
            self.pages.setdefault(run.request.request_id, set()).update(run.page_ids)
            for position in range(run.start):
                self._check_read(run, position)
        for run in output.scheduled:
            for position in range(run.start, run.end):
                page, slot = divmod(position, self._page_size)
                self._slots[run.page_ids[page]][slot] = _owner(run)

    def _copy(self, copy: PageCopy) -> None:
        self._slots[copy.destination] = list(self._slots[copy.source])

    def _check_read(self, run: ScheduledRequest, position: int) -> None:
        page, slot = divmod(position, self._page_size)
        writer, reader = self._slots[run.page_ids[page]][slot], _owner(run)
        assert writer is not None, f"{run.request.request_id} reads what nobody wrote"
        if position >= self._shared_with(writer, run.request):
            own = writer == reader or self._cache_scope is CacheScope.ALL
            same_tenant = writer.tenant == reader.tenant
            assert own or (same_tenant and self._cache_scope is CacheScope.TENANT), (
                f"{reader} reads what {writer} computed, at {position} of {run.request.token_ids}"
            )

    def _shared_with(self, writer: Owner, request: Request) -> int:
        """Return how many leading tokens of a request may come from `writer`, whoever that is."""
        owners = {""} | ({writer.tenant} & {request.tenant})
        known = (each.token_ids for each in self.prefixes if each.tenant in owners)
        return max((common_length(each, request.token_ids) for each in known), default=0)


def _owner(run: ScheduledRequest) -> Owner:
    return Owner(run.request.tenant, run.request.user)


class TenantRig:
    """A scheduler of several tenants on the fake runner, watched and recounted in every step.

    Owns: cache, scheduler, kept prefixes, and the witness.
    """

    def __init__(
        self,
        *,
        page_size: int = 4,
        num_pages: int = 64,
        budget: int = 64,
        max_num_seqs: int = 8,
        cache_scope: CacheScope = CacheScope.TENANT,
    ):
        self.next_token = hash_model()
        self.cache = PrefixCache(
            num_pages, page_size, pin_limits=PinLimits(num_pages // 2, num_pages // 4)
        )
        config = SchedulerConfig(max_num_seqs, budget, num_pages * page_size, NO_EOS)
        self.scheduler = Scheduler(config, self.cache, ScopeMap(cache_scope))
        self.keeper = PrefixKeeper(self.scheduler)
        self.witness = Witness(num_pages, page_size, cache_scope)
        self.outputs: dict[str, list[int]] = {}
        self._runner = FakeRunner(num_pages, page_size, self.next_token)

    def keep(self, *prefixes: KeptPrefix) -> None:
        """Keep these prefixes and no other, computed ahead."""
        self.witness.prefixes += prefixes
        self.keeper.keep_exactly(prefixes)
        self.run()

    def revoke(self, tenant: str) -> None:
        """Forget a tenant as the engine does when its keys are revoked."""
        tokenizer = make_tokenizer(byte_level_definition())
        EngineCore(self.scheduler, self._runner, tokenizer).revoke(tenant)
        self.scheduler.check_invariants()

    def add(self, *requests: Request) -> None:
        for request in requests:
            self.scheduler.add(request)

    def step(self) -> SchedulerOutput:
        output = self.scheduler.schedule()
        self.witness.see(output)
        self._take_in(output, self._runner.execute(output))
        self.scheduler.check_invariants()
        return output

    def _take_in(self, output: SchedulerOutput, sampled: Mapping[RequestId, int | None]) -> None:
        for result in self.scheduler.update(output, sampled):
            if result.token_id is not None:
                self.outputs.setdefault(result.request.request_id, []).append(result.token_id)
            if not result.request.generates:
                self.keeper.finish(result.request)

    def run(self, *requests: Request, limit: int = 1000) -> None:
        """Add requests and step until nothing is left to do."""
        self.add(*requests)
        for _ in range(limit):
            if not self.scheduler.has_work:
                return
            self.step()
        raise AssertionError(f"not done after {limit} steps")

    def pages_of(self, *requests: Request) -> set[PageId]:
        """Return every page that these requests were ever given."""
        return set().union(*(self.witness.pages.get(each.request_id, set()) for each in requests))

    def cached_pages_of(self, tenant: str) -> set[PageId]:
        """Return the pages in the tree that are a tenant's own."""
        nodes = [node for node in self.cache.tree.nodes() if node.scope.tenant == tenant]
        return {page for node in nodes for page in node.pages}
