"""One worker's snapshot as JSON, for one viewer.

Owns the shape of the reply, and the numbers that pages have in it. An operator sees the pages of
the pool as they are. To a member the numbers that its pages happen to have would tell what others
hold, so they are numbered one after the other, anew in each reply; of all others it sees nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from chatserve.cache_snapshot import CacheSnapshot, RunningRequest, StepInterval, page_state
from chatserve.gateway.cache_alike import Alike, nodes_alike
from chatserve.gateway.cache_nodes import ShownNode, shown_nodes
from chatserve.gateway.cache_viewer import Viewer
from chatserve.text.turns import Turn

MAX_TEXT_LEN = 80
UNKNOWN = "?"
"""The state of a page that is not the viewer's business."""

_UNREADABLE: Mapping[str, Any] = {"text": None, "roles": []}

TurnsIn = Callable[[Sequence[int], Sequence[int]], list[Turn]]


def worker_view(snapshot: CacheSnapshot, viewer: Viewer, turns_in: TurnsIn) -> dict[str, Any]:
    """Return what a viewer sees of a worker.

    `turns_in` reads tokens, given those right before them.
    """
    requests = [each for each in snapshot.requests if viewer.may_see(each.tenant, each.user)]
    nodes = shown_nodes(snapshot, viewer, requests)
    alike = nodes_alike(nodes)
    numbers = _own_numbers(nodes, requests) if not viewer.sees_all else None
    copied = [each.copied_page for each in requests if each.copied_page is not None]
    return {
        "taken_at": snapshot.taken_at,
        "page_size": snapshot.page_size,
        "num_pages": snapshot.num_pages,
        "nodes": [_node(each, viewer, alike.get(each.node_id), turns_in) for each in nodes],
        "num_hidden_nodes": sum(
            each.num_nodes for each in snapshot.hidden if viewer.may_see(each.tenant, each.user)
        ),
        "pages": snapshot.pages if numbers is None else _states(snapshot, nodes, requests, numbers),
        "copied_pages": _numbered(copied, numbers),
        "requests": [_request(each, viewer, numbers) for each in requests],
        "steps": [step for each in snapshot.intervals if (step := _step(each, viewer))],
    }


def _node(
    node: ShownNode, viewer: Viewer, alike: Alike | None, turns_in: TurnsIn
) -> dict[str, Any]:
    ids = node.first_token_ids
    words = _words(turns_in(node.token_ids_before, ids)) if ids is not None else _UNREADABLE
    return {
        "id": node.node_id,
        "parent": node.parent_id,
        "num_tokens": node.num_tokens,
        "num_pages": len(node.pages),
        "num_sharers": node.num_sharers,
        "num_hits": node.num_hits,
        "idle_s": node.idle_s,
        "scope": _scope(node, viewer),
        "tenant": node.tenant or None if viewer.sees_all else None,
        "pinned": node.is_pinned,
        "alike": alike._asdict() if alike is not None else None,
        **words,
    }


def _words(turns: Iterable[Turn]) -> dict[str, Any]:
    """Return the first words on one line, and where in them whose turn begins."""
    text = ""
    roles: list[dict[str, Any]] = []
    for turn in turns:
        text += " " if text else ""
        if turn.role is not None and len(text) < MAX_TEXT_LEN:
            roles.append({"role": turn.role, "at": len(text)})
        text += " ".join(turn.text.split())
    return {"text": text[:MAX_TEXT_LEN], "roles": roles}


def _scope(node: ShownNode, viewer: Viewer) -> str:
    if not node.tenant:
        return "public"
    return "mine" if viewer.is_mine(node.tenant, node.user) else "other"


def _own_numbers(nodes: Iterable[ShownNode], requests: Iterable[RunningRequest]) -> dict[int, int]:
    """Number the viewer's pages: those of the tree in its order, then those of requests."""
    numbers: dict[int, int] = {}
    for pages in (*(node.pages for node in nodes), *(each.pages for each in requests)):
        for page in pages:
            numbers.setdefault(page, len(numbers))
    return numbers


def _numbered(pages: Iterable[int], numbers: dict[int, int] | None) -> list[int]:
    return list(pages) if numbers is None else [numbers[page] for page in pages]


def _states(
    snapshot: CacheSnapshot,
    nodes: Iterable[ShownNode],
    requests: Iterable[RunningRequest],
    numbers: dict[int, int],
) -> str:
    """Return the states of the viewer's pages as if nobody else held any."""
    holding = Counter(page for each in requests for page in each.pages)
    pinned = {page for node in nodes if node.is_pinned for page in node.pages}
    known = "".join(page_state(holding[page], is_pinned=page in pinned) for page in numbers)
    return known + UNKNOWN * (snapshot.num_pages - len(numbers))


def _request(
    request: RunningRequest, viewer: Viewer, numbers: dict[int, int] | None
) -> dict[str, Any]:
    may_name = viewer.sees_all or request.user == viewer.identity.user
    return {
        "id": request.request_id if may_name else None,
        "tenant": request.tenant or None if viewer.sees_all else None,
        "state": "prefilling" if request.is_prefilling else "decoding",
        "num_prompt_tokens": request.num_prompt_tokens,
        "num_cached_tokens": request.num_cached_tokens,
        "num_computed_tokens": request.num_computed_tokens,
        "num_output_tokens": request.num_output_tokens,
        "pages": _numbered(request.pages, numbers),
    }


def _step(interval: StepInterval, viewer: Viewer) -> dict[str, Any] | None:
    """Return what an interval did for those whom the viewer may know of; None for nothing."""
    counts = [each for each in interval.counts if viewer.may_see(each.tenant, each.user)]
    if not counts:
        return None
    return {
        "at": interval.at,
        "prefill_tokens": sum(each.prefill_tokens for each in counts),
        "decode_tokens": sum(each.decode_tokens for each in counts),
        "cached_tokens": sum(each.cached_tokens for each in counts),
        "num_waiting": sum(each.num_waiting for each in counts),
    }
