"""Belady's optimum on a trace: the most that an order of eviction could find if it knew the future.

Owns the trace as a sequence of page uses, and the simulation of MIN on it. Runs no prefix cache.

A page is its tokens and all before them. Each request uses the pages of its prompt and needs all
its pages at once, the answer's too. MIN evicts the page whose next use is furthest (Belady 1966;
with several pages a request the same exchange argument holds). Whoever uses a page uses all before
it, so what is used furthest ahead ends a path, and a tree loses nothing by evicting leaves only.

What it bounds: no policy, for trees or not, finds more whole pages. Tokens are found in parts of
pages too, by copy, and which parts are there depends on the policy. `most_cached_tokens` therefore
adds the most that a request could find in the page where its match ends, whatever was evicted. So
it is a bound from above, at most `page_size - 1` tokens a request too high.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

from benchmarks.eviction.traces import TracedRequest
from chatserve.cache.children import common_length


@dataclass(frozen=True, slots=True)
class PageUses:
    """One request in whole pages: those its prompt can find, and those it leaves when it ends.

    `num_held` is how many it needs at its end, `part_tokens` the most that it could find in a page
    that is not wholly its own.
    """

    found: list[int]
    left: list[int]
    num_held: int
    part_tokens: int


@dataclass(slots=True)
class PageNames:
    """Numbers for pages, in the order of their first use: a page's number is above its parent's.

    Owns: the pages seen so far, by parent and first token. Used from: `page_uses`.
    """

    page_size: int
    num_whole: int = 0
    _numbers: dict[tuple[int, int], dict[tuple[int, ...], int]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _num_pages: int = 0

    def number(self, parent: int, page: tuple[int, ...]) -> int:
        siblings = self._numbers[parent, page[0]]
        if page not in siblings:
            self._num_pages += 1
            self.num_whole += len(page) == self.page_size
            siblings[page] = self._num_pages
        return siblings[page]

    def most_in_common(self, parent: int, page: tuple[int, ...]) -> int:
        """Return how many tokens `page` shares at most with another page in its place."""
        others = (other for other in self._numbers[parent, page[0]] if other != page)
        return max((common_length(other, page) for other in others), default=0)


def page_uses(trace: list[TracedRequest], page_size: int) -> tuple[list[PageUses], int]:
    """Return the trace in pages, and its working set: how many distinct whole pages it has."""
    names = PageNames(page_size)
    return [_uses_of(request, names) for request in trace], names.num_whole


def _uses_of(request: TracedRequest, names: PageNames) -> PageUses:
    """The last token of a prompt is always computed, the last of an answer never."""
    size, num_known = names.page_size, len(request.prompt) - 1
    token_ids = (request.prompt + request.answer)[:-1]
    part_tokens, parent, numbers = 0, 0, []
    for start in range(0, len(token_ids), size):
        known = tuple(token_ids[start : min(start + size, num_known)])
        if known:
            part_tokens = max(part_tokens, names.most_in_common(parent, known))
        parent = names.number(parent, tuple(token_ids[start : start + size]))
        numbers.append(parent)
    left = numbers[: len(token_ids) // size]
    num_held = -(-len(token_ids) // size)
    return PageUses(left[: num_known // size], left, num_held, min(part_tokens, size - 1))


def most_cached_tokens(uses: list[PageUses], num_pages: int, page_size: int) -> int:
    """Return a number of cached tokens that no policy exceeds with `num_pages` pages."""
    return page_size * most_found(uses, num_pages) + sum(use.part_tokens for use in uses)


def most_found(uses: list[PageUses], num_pages: int) -> int:
    """Return how many whole pages MIN finds.

    An entry of the heap counts while its page is kept, and has not been used since.
    """
    next_uses = _next_uses(uses)
    resident: dict[int, int] = {}  # pages that others left, and their next use
    furthest: list[tuple[int, int]] = []
    num_found = 0
    for use, nexts in zip(uses, next_uses, strict=True):
        num_found += sum(page in resident for page in use.found)
        for page in use.left:
            resident.pop(page, None)
        while len(resident) + use.num_held > num_pages:
            next_use, page = heapq.heappop(furthest)
            if resident.get(-page) == -next_use:
                del resident[-page]
        for page, next_use in zip(use.left, nexts, strict=True):
            resident[page] = next_use
            heapq.heappush(furthest, (-next_use, -page))
    return num_found


def _next_uses(uses: list[PageUses]) -> list[list[int]]:
    """Return when each page that a request leaves is found next, or the end of time.

    A page that is computed again in any case, for the last token of a prompt, is not worth keeping
    until then.
    """
    never = len(uses)
    following: dict[int, int] = {}
    next_uses = []
    for index in reversed(range(len(uses))):
        next_uses.append([following.get(page, never) for page in uses[index].left])
        following.update(dict.fromkeys(uses[index].left, never))
        following.update(dict.fromkeys(uses[index].found, index))
    return next_uses[::-1]
