"""Every physical page as one character, for people to look at.

Owns nothing. The characters are those of `chatserve.cache_snapshot`.
"""

from collections import Counter
from collections.abc import Iterable

from chatserve.cache.page_allocator import PageId
from chatserve.cache.prefix_cache import HeldPages, PrefixCache
from chatserve.cache_snapshot import FREE, page_state


def page_map(cache: PrefixCache, holders: Iterable[HeldPages]) -> str:
    """Return the state of each page, in the order of their numbers."""
    states = [FREE] * cache.allocator.num_pages
    pinned = cache.pins.tenants_by_node()
    holding: Counter[PageId] = Counter()
    for held in holders:
        holding.update(held.page_ids)
    for page, num_holders in holding.items():
        states[page] = page_state(num_holders, is_pinned=False)
    for node in cache.tree.nodes():
        state = page_state(0, is_pinned=node in pinned)
        for page in node.pages:
            if not holding[page]:
                states[page] = state
    return "".join(states)
