"""One trace through the real prefix cache, with one order of eviction.

Owns the loop that stands in for the scheduler, and what it scores: one request at a time, prefill
in chunks, decode page by page. No model, no clock.
"""

from dataclasses import dataclass

from benchmarks.eviction.traces import TracedRequest
from chatserve.cache.eviction_queue import EvictionQueue
from chatserve.cache.prefix_cache import PrefixCache

PAGE_SIZE = 16
CHUNK_TOKENS = 512
# Attending to so many tokens costs a small model (135M) as much as all else that a token costs it.
EVEN_DEPTH = 4_096


@dataclass(frozen=True, slots=True)
class Score:
    """What a trace found: the share of prompt tokens, and of the work to compute them."""

    hit_rate: float
    saved_work: float


def least_recently_used() -> EvictionQueue:
    """Return an order of eviction in which every node stays equally long after its last use."""
    return EvictionQueue(stay=lambda _node, _chance: 1.0)


def simulate(trace: list[TracedRequest], num_pages: int, eviction: EvictionQueue) -> Score:
    """Run `trace` through an empty cache of `num_pages` pages."""
    cache = PrefixCache(num_pages, PAGE_SIZE, eviction=eviction)
    cached = [_run(cache, request) for request in trace]
    prompts = [len(request.prompt) for request in trace]
    return Score(sum(cached) / sum(prompts), sum(map(_work, cached)) / sum(map(_work, prompts)))


def _run(cache: PrefixCache, request: TracedRequest) -> int:
    """Run one request to its end; return how many tokens of its prompt were cached."""
    num_prompt = len(request.prompt)
    token_ids = (request.prompt + request.answer)[:-1]  # the last token of an answer has no KV
    admission = cache.try_admit(cache.match_prefix(request.prompt), num_prompt)
    assert admission is not None, (
        f"{num_prompt} tokens do not fit {cache.allocator.num_pages} pages"
    )
    held = admission.held
    for start in range(admission.num_cached_tokens, num_prompt, CHUNK_TOKENS):
        cache.commit(held, token_ids, min(start + CHUNK_TOKENS, num_prompt))
    for start in range(num_prompt, len(token_ids), PAGE_SIZE):
        end = min(start + PAGE_SIZE, len(token_ids))
        assert cache.try_grow(held, end), f"no page for token {end}"
        cache.commit(held, token_ids, end)
    cache.retire(held, token_ids, len(token_ids))
    return admission.num_cached_tokens


def _work(num_tokens: int) -> float:
    """Return what computing the first `num_tokens` tokens of a prompt costs, in tokens."""
    return num_tokens + num_tokens**2 / (2 * EVEN_DEPTH)
