"""A scheduler that tenants share, observed as people do: a snapshot whenever a test wants one.

Node names are made under one secret, so that two runs can be compared.
"""

from collections.abc import Sequence

from unit.cache_helpers import hash_model
from unit.scope_helpers import NO_EOS, ask

from chatserve.cache.page_map import page_map
from chatserve.cache.pins import PinLimits
from chatserve.cache.prefix_cache import HeldPages, PrefixCache
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.cache.tree_state import NodeNames
from chatserve.cache_snapshot import CacheSnapshot, NodeState, RunningRequest
from chatserve.engine.api import FinishReason, KeptPrefix
from chatserve.engine.fake import FakeRunner
from chatserve.engine.observation import Observation
from chatserve.engine.prefix_keeper import PrefixKeeper
from chatserve.engine.scheduler import Scheduler, SchedulerConfig

SECRET = b"the same in every run"
PREAMBLE = tuple(range(900, 915))
"""Three whole pages of four tokens, and a tail of three."""


class ObservedRig:
    """Scheduler, kept prefixes and observation on the fake runner; a step takes half a second.

    Owns: all of them, and the time.
    """

    def __init__(
        self,
        *,
        page_size: int = 4,
        num_pages: int = 256,
        max_num_seqs: int = 64,
        cache_scope: CacheScope = CacheScope.TENANT,
    ):
        self.cache = PrefixCache(
            num_pages, page_size, pin_limits=PinLimits(num_pages // 2, num_pages // 4)
        )
        config = SchedulerConfig(max_num_seqs, 10_000, num_pages * page_size // 2, NO_EOS)
        self.scheduler = Scheduler(config, self.cache, ScopeMap(cache_scope))
        self.keeper = PrefixKeeper(self.scheduler)
        self.now_s = 0.0
        self.observation = Observation(self.scheduler, 1000.0, NodeNames(SECRET))
        self._runner = FakeRunner(num_pages, page_size, hash_model())

    def keep(self, *prefixes: KeptPrefix) -> None:
        """Keep these prefixes and no other, computed ahead."""
        self.keeper.keep_exactly(prefixes)
        self.run()

    def ask(
        self, name: str, prompt: Sequence[int], tenant: str, user: str = "", max_tokens: int = 1
    ) -> None:
        self.scheduler.add(ask(name, prompt, tenant, user, max_tokens=max_tokens))

    def step(self) -> None:
        self.now_s += 0.5
        self.cache.expire(self.now_s)
        output = self.scheduler.schedule()
        results = self.scheduler.update(output, self._runner.execute(output))
        self.observation.record_step(output, self.now_s)
        for result in results:
            if not result.request.generates:
                self.keeper.finish(result.request)
            elif result.finish_reason is not None:
                self.scheduler.finish(result.request, FinishReason.LENGTH)
        self.scheduler.check_invariants()

    def run(self, limit: int = 200) -> None:
        """Step until nothing is left to do."""
        while self.scheduler.has_work:
            limit -= 1
            assert limit, "not done"
            self.step()

    def snapshot(self) -> CacheSnapshot:
        return self.observation.snapshot(self.now_s)

    @property
    def holders(self) -> list[HeldPages]:
        return [each.held for each in self.scheduler.running if each.held is not None]

    @property
    def pages(self) -> str:
        return page_map(self.cache, self.holders)

    def node_saying(self, *token_ids: int) -> NodeState:
        """Return the one node that begins with these tokens."""
        size = len(token_ids)
        (node,) = [
            each for each in self.snapshot().nodes if each.first_token_ids[:size] == [*token_ids]
        ]
        return node

    def running(self, name: str) -> RunningRequest:
        (request,) = [each for each in self.snapshot().requests if each.request_id == name]
        return request
