"""Builders and oracles for the tests of cache and scheduler. No torch."""

from collections.abc import Callable, Sequence

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import HeldPages, PrefixCache
from chatserve.cache.radix_tree import RadixTree
from chatserve.cache.scope import PUBLIC, Span
from chatserve.engine.api import FinishReason, GenerationRequest, RequestId, SamplingParams
from chatserve.engine.fake import FakeRunner, NextToken
from chatserve.engine.request import Request
from chatserve.engine.scheduler import Scheduler, SchedulerConfig, SchedulerOutput

EOS = 2


def make_request(
    name: str, prompt: Sequence[int], max_tokens: int = 8, **sampling: object
) -> Request:
    params = SamplingParams(max_tokens=max_tokens, seed=0, **sampling)  # type: ignore[arg-type]
    return Request.create(GenerationRequest(RequestId(name), "m", tuple(prompt), params))


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


class SchedulerRig:
    """A scheduler on the fake runner, checked after every step."""

    def __init__(
        self,
        *,
        num_pages: int = 64,
        page_size: int = 4,
        max_num_seqs: int = 8,
        max_num_batched_tokens: int = 32,
        prefix_cache: bool = True,
        next_token: NextToken | None = None,
    ):
        self.next_token = next_token or hash_model()
        self.cache = PrefixCache(num_pages, page_size, enabled=prefix_cache)
        config = SchedulerConfig(
            max_num_seqs, max_num_batched_tokens, num_pages * page_size, frozenset({EOS})
        )
        self.scheduler = Scheduler(config, self.cache)
        self.runner = FakeRunner(num_pages, page_size, self.next_token)
        self.outputs: dict[str, list[int]] = {}
        self.ends: dict[str, FinishReason] = {}

    def add(self, *requests: Request) -> None:
        for request in requests:
            self.scheduler.add(request)

    def step(self) -> SchedulerOutput:
        had_work = self.scheduler.has_work
        output = self.scheduler.schedule()
        assert bool(output.scheduled) == had_work, "work waits and the step is empty"
        for result in self.scheduler.update(output, self.runner.execute(output)):
            request_id = result.request.request_id
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


def held_pages(*requests: Request) -> list[HeldPages]:
    return [request.held for request in requests if request.held is not None]
