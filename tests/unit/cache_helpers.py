"""Builders and oracles for the tests of cache and scheduler. No torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chatserve.cache.page_allocator import PageId
from chatserve.cache.pins import PinLimits, PrefixName, Shortfall
from chatserve.cache.prefix_cache import HeldPages, PrefixCache
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import PUBLIC, SHARED_BY_ALL, ScopePath, Span
from chatserve.cache.scope_map import ScopeMap
from chatserve.engine.api import (
    DEFAULT_TENANT,
    FinishReason,
    GenerationRequest,
    KeptPrefix,
    PrefixReport,
    RequestId,
    SamplingParams,
)
from chatserve.engine.fake import FakeRunner, NextToken
from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.prefix_keeper import PrefixKeeper
from chatserve.engine.request import Request
from chatserve.engine.saved_prefixes import SavedPrefixes
from chatserve.engine.scheduler import Scheduler, SchedulerConfig, SchedulerOutput

EOS = 2


def make_request(
    name: str,
    prompt: Sequence[int],
    max_tokens: int = 8,
    *,
    tenant: str = DEFAULT_TENANT,
    user: str = "",
    **sampling: object,
) -> Request:
    params = SamplingParams(max_tokens=max_tokens, seed=0, **sampling)  # type: ignore[arg-type]
    generation = GenerationRequest(RequestId(name), "m", tuple(prompt), params, tenant, user)
    return Request.create(generation)


def make_tree(page_size: int, *paths: str) -> RadixTree:
    """Return a tree with the given paths, letters for tokens; pages are numbered as they come."""
    tree = RadixTree(page_size)
    next_page = 0
    for path in paths:
        count = -(-len(path) // page_size)
        pages = [PageId(next_page + index) for index in range(count)]
        next_page += count
        full = len(path) // page_size
        tokens = letters(path)
        node = tree.insert(tree.root, tokens[: full * page_size], pages[:full], Span(PUBLIC)).node
        if len(path) % page_size:
            tree.insert(node, tokens[full * page_size :], pages[full:], Span(PUBLIC))
    return tree


def letters(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def hash_model(vocabulary: int = 3, *, eos_every: int = 0) -> Callable[[Sequence[int]], int]:
    """Return a model whose next token depends on every token before it."""

    def next_token(history: Sequence[int]) -> int:
        value = 17
        for token_id in history:
            value = (value * 31 + token_id + 7) % 1_000_003
        if eos_every and value % eos_every == 0:
            return EOS
        return 3 + value % vocabulary

    return next_token


def generate_alone(prompt: Sequence[int], max_tokens: int, next_token: NextToken) -> list[int]:
    """The oracle: what a model gives with no engine around it."""
    history = list(prompt)
    for _ in range(max_tokens):
        token_id = next_token(history)
        assert token_id is not None
        history.append(token_id)
        if history[-1] == EOS:
            break
    return history[len(prompt) :]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a rig may keep ready: how many pages may be pinned, in what scopes, saved where."""

    limits: PinLimits = field(default_factory=lambda: PinLimits(0, 0))
    scope_map: ScopeMap = field(default_factory=ScopeMap)
    folder: Path | None = None


class SchedulerRig:
    """Scheduler and keeper on the fake runner, checked after every step.

    No context is longer than what the pool holds beside all pins. `now_s` is the time that expiry
    goes by. Who makes allocations fail has to say how many steps may be empty for it.
    """

    def __init__(
        self,
        *,
        num_pages: int = 64,
        page_size: int = 4,
        max_num_seqs: int = 8,
        max_num_batched_tokens: int = 32,
        prefix_cache: bool = True,
        next_token: NextToken | None = None,
        keeping: Keeping | None = None,
    ):
        keeping = keeping or Keeping()
        self.next_token = next_token or hash_model()
        self.now_s = 0.0
        self.cache = PrefixCache(
            num_pages, page_size, enabled=prefix_cache, pin_limits=keeping.limits
        )
        max_model_len = (num_pages - keeping.limits.total_pages) * page_size
        config = SchedulerConfig(
            max_num_seqs, max_num_batched_tokens, max_model_len, frozenset({EOS})
        )
        self.scheduler = Scheduler(config, self.cache, keeping.scope_map)
        self.runner = FakeRunner(num_pages, page_size, self.next_token)
        self.keeper = PrefixKeeper(self.scheduler, self._open(keeping.folder))
        self.outputs: dict[str, list[int]] = {}
        self.ends: dict[str, FinishReason] = {}
        self.reports: dict[PrefixName, PrefixReport] = {}
        self.num_news = 0
        self.num_empty_steps = self.max_empty_steps = 0

    def _open(self, folder: Path | None) -> SavedPrefixes | None:
        if folder is None:
            return None
        layout = self.runner.pool_layout("weights")
        files = PrefixFiles(folder, layout, max_bytes=1 << 30)
        return SavedPrefixes(files, self.runner, layout)

    def add(self, *requests: Request) -> None:
        for request in requests:
            self.scheduler.add(request)

    def keep(self, *prefixes: KeptPrefix) -> list[PrefixReport]:
        """Keep these prefixes and no other; the latest news of each is in `reports`."""
        reports = self.keeper.keep_exactly(prefixes)
        kept = {PrefixName(prefix.tenant, prefix.name) for prefix in prefixes}
        self.reports = {name: each for name, each in self.reports.items() if name in kept}
        self._note(*reports)
        self.scheduler.check_invariants()
        return reports

    def revoke(self, tenant: str) -> None:
        """End and forget whatever a tenant has, as the engine does."""
        self.scheduler.abort([each.request_id for each in self.scheduler.requests_of(tenant)])
        self.keeper.forget_tenant(tenant)
        self.reports = {name: each for name, each in self.reports.items() if name.tenant != tenant}
        self.scheduler.check_invariants()

    def step(self) -> SchedulerOutput:
        had_work = self.scheduler.has_work
        self.cache.expire(self.now_s)
        output = self.scheduler.schedule()
        self.num_empty_steps += had_work and not output.scheduled
        assert self.num_empty_steps <= self.max_empty_steps, "work waits and the step is empty"
        for result in self.scheduler.update(output, self.runner.execute(output)):
            request_id = result.request.request_id
            news = self.keeper.finish(result.request)
            if news is not None:
                self._note(news)
                continue
            if result.token_id is not None:
                self.outputs.setdefault(request_id, []).append(result.token_id)
            if result.finish_reason is not None:
                self.ends[request_id] = result.finish_reason
        self.scheduler.check_invariants()
        return output

    def run(self, limit: int = 2000) -> dict[str, list[int]]:
        for _ in range(limit):
            if not self.scheduler.has_work:
                return self.outputs
            self.step()
        raise AssertionError(f"not done after {limit} steps")

    def _note(self, *reports: PrefixReport) -> None:
        self.num_news += len(reports)
        for each in reports:
            self.reports[PrefixName(each.prefix.tenant, each.prefix.name)] = each


UNKNOWN_TOKEN = 999


def hold(cache: PrefixCache, token_ids: list[int], scopes: ScopePath = SHARED_BY_ALL) -> HeldPages:
    """Compute some tokens and keep their pages, as a request does that goes on running."""
    admission = cache.try_admit(cache.match_prefix(token_ids, scopes), len(token_ids), scopes)
    assert admission is not None, "there are no pages for it"
    cache.commit(admission.held, token_ids, len(token_ids))
    return admission.held


def serve(
    cache: PrefixCache, token_ids: list[int], scopes: ScopePath = SHARED_BY_ALL
) -> list[PageId]:
    """Compute some tokens and end; return the pages that they were in."""
    held = hold(cache, token_ids, scopes)
    page_ids = list(held.page_ids)
    cache.retire(held, token_ids, len(token_ids))
    return page_ids


def pin(
    cache: PrefixCache,
    name: PrefixName,
    token_ids: list[int],
    scopes: ScopePath = SHARED_BY_ALL,
) -> Shortfall | None:
    """Compute a prefix and pin it."""
    return cache.pin(name, hold(cache, token_ids, scopes), token_ids)


def num_found(cache: PrefixCache, token_ids: list[int], scopes: ScopePath = SHARED_BY_ALL) -> int:
    """Return how many of some tokens are found by a prompt that goes on behind them."""
    match = cache.match_prefix([*token_ids, UNKNOWN_TOKEN], scopes)
    return match.num_tokens(cache.page_size)


def held_pages(*requests: Request) -> list[HeldPages]:
    return [request.held for request in requests if request.held is not None]
