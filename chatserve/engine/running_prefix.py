"""What a waiting request shares with running ones and the tree does not know yet.

Owns nothing. Two cases: pages that a running prefill is about to compute, which are worth waiting
for, and the page that a running request is writing, of which a copy can be taken.
"""

from collections.abc import Iterable

from chatserve.cache.children import common_length
from chatserve.cache.radix_match import Match
from chatserve.cache.scope import ScopePath
from chatserve.engine.request import Request


def will_be_found(request: Request) -> bool:
    """Tell whether what a running request computes will be open to others.

    It will not be if the prefix that it builds on was removed meanwhile.
    """
    assert request.held is not None
    return not request.held.node.is_detached


def shared_whole_pages(leader: Request, request: Request, scopes: ScopePath, page_size: int) -> int:
    """Return how many leading pages of both prompts are equal and open to both."""
    assert leader.held is not None
    shared_end = leader.held.scopes.shared_end(scopes)
    limit = min(leader.num_tokens, request.num_tokens - 1, shared_end) // page_size
    ours, theirs = request.token_ids, leader.token_ids
    if ours[: limit * page_size] == theirs[: limit * page_size]:
        return limit
    shared = 0
    while _page(ours, shared, page_size) == _page(theirs, shared, page_size):
        shared += 1
    return shared


def _page(token_ids: list[int], index: int, page_size: int) -> list[int]:
    return token_ids[index * page_size : (index + 1) * page_size]


def borrow_tail(
    running: Iterable[Request], request: Request, match: Match, scopes: ScopePath, page_size: int
) -> Match:
    """Return `match` with the page of a running request that goes on like `request`, if longer.

    The page is the one behind all full pages of its request, which nobody else can see. What is
    computed of it is never written again, so it can be copied while its owner goes on writing. It
    is open to `request` as far as both prompts have the same scopes.
    """
    start = len(match.pages) * page_size
    for other in running:
        held = other.held
        assert held is not None
        if held.node is not match.node or not match.ends_at_node:
            continue
        end = min(other.num_computed_tokens, request.num_tokens - 1, held.scopes.shared_end(scopes))
        common = common_length(other.token_ids[start:end], request.token_ids[start:end])
        if common > match.partial_tokens:
            match = match.with_partial(held.page_ids[held.num_tree_pages], common)
    return match
