"""The prefix cache against an oracle that compares every path of the tree token by token.

A Hypothesis state machine with a vocabulary of two, so that prefixes collide all the time. What the
cache finds must be the longest prefix there is, in pages that hold exactly those tokens.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chatserve.cache.prefix_cache import HeldPages, PageCopy, PrefixCache

TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=24)


class Holder:
    def __init__(self, held: HeldPages, token_ids: list[int], num_computed: int):
        self.held, self.token_ids, self.num_computed = held, token_ids, num_computed


class PrefixCacheMachine(RuleBasedStateMachine):
    """Admits, computes, commits, retires and evicts; the pages' contents are tracked beside it."""

    @initialize(page_size=st.sampled_from([1, 2, 4, 16]), num_pages=st.integers(3, 20))
    def start(self, page_size: int, num_pages: int) -> None:
        self.cache = PrefixCache(num_pages, page_size)
        self.contents: list[list[int | None]] = [[None] * page_size for _ in range(num_pages)]
        self.holders: list[Holder] = []
        self.copies: list[PageCopy] = []

    @rule(token_ids=TOKENS)
    def admit(self, token_ids: list[int]) -> None:
        match = self.cache.match_prefix(token_ids)
        num_matched = match.num_tokens(self.cache.page_size)
        assert num_matched == self.longest_known_prefix(token_ids[:-1])
        admission = self.cache.try_admit(match, len(token_ids))
        if admission is None:
            return
        if admission.copy is not None:
            source = self.contents[admission.copy.source]
            self.contents[admission.copy.destination] = list(source)
            self.copies.append(admission.copy)
        holder = Holder(admission.held, token_ids, admission.num_cached_tokens)
        self.holders.append(holder)
        assert self.read(holder) == token_ids[: holder.num_computed], "a hit gave other tokens"

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), count=st.integers(1, 8))
    def compute(self, data: st.DataObject, count: int) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        end = min(len(holder.token_ids), holder.num_computed + count)
        self.cache.assert_writable(holder.held, holder.num_computed, end)
        for position in range(holder.num_computed, end):
            page = self.contents[holder.held.page_ids[position // self.cache.page_size]]
            page[position % self.cache.page_size] = holder.token_ids[position]
        holder.num_computed = end
        self.cache.commit(holder.held, holder.token_ids, end)

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), more=TOKENS)
    def grow(self, data: st.DataObject, more: list[int]) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        if self.cache.try_grow(holder.held, len(holder.token_ids) + len(more)):
            holder.token_ids = holder.token_ids + more

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.holders.remove(holder)
        self.cache.retire(holder.held, holder.token_ids, holder.num_computed)

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        holder = data.draw(st.sampled_from(self.holders))
        self.holders.remove(holder)
        self.cache.release(holder.held)
        self.cache.release(holder.held)

    @rule()
    def finish_copies(self) -> None:
        self.cache.release_copies(self.copies)
        self.copies = []

    @invariant()
    def pages_hold_what_their_holders_computed(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.cache.check_invariants([holder.held for holder in self.holders], self.copies)
        for holder in self.holders:
            assert self.read(holder) == holder.token_ids[: holder.num_computed]

    def longest_known_prefix(self, token_ids: list[int]) -> int:
        """The oracle: compare with every path of the tree, token by token."""
        return max((common_length(path, token_ids) for path in self.paths()), default=0)

    def paths(self) -> list[list[int]]:
        stack = [(child, list(child.key)) for child in self.cache.tree.root.children]
        paths = []
        while stack:
            node, path = stack.pop()
            paths.append(path)
            stack += [(child, path + child.key) for child in node.children]
        return paths

    def read(self, holder: Holder) -> list[int | None]:
        tokens = [token for page in holder.held.page_ids for token in self.contents[page]]
        return tokens[: holder.num_computed]


def common_length(a: list[int], b: list[int]) -> int:
    pairs = zip(a, b, strict=False)
    return next((index for index, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))


TestPrefixCacheAgainstOracle = PrefixCacheMachine.TestCase
TestPrefixCacheAgainstOracle.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None
)
