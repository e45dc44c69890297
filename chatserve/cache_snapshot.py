"""What a worker's cache and batch look like between two steps, for people to look at.

Owns the records that go from the engine through the store to the gateways. They are the whole
truth, of all tenants; what of it a viewer may see is decided in the gateway. Standard library only,
since the cache, the engine, the store and the gateway all use them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

FREE, CACHED, PINNED, HELD = ".", "c", "p", "u"
"""States of a page: nobody's, in the tree only, there for a pin, held by one request."""

NUM_FIRST_TOKENS = 32
"""How many tokens of a node are told, for its first words."""

NUM_TOKENS_BEFORE = 8
"""How many tokens before a node are told, since what begins a turn may end in the node above."""

MAX_HOLDERS = 9
"""A page that so many requests hold, or more, is shown with this number."""


def page_state(num_holders: int, *, is_pinned: bool) -> str:
    """Return the character for a page that is in the tree or held."""
    if num_holders == 0:
        return PINNED if is_pinned else CACHED
    return HELD if num_holders == 1 else str(min(num_holders, MAX_HOLDERS))


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node of the radix tree.

    `node_id` names the place in the tree where it begins, until the engine ends; nobody else can
    compute it. `tenant` is empty for a public node, `user` None for one that not only a user is in.
    `known_to` are tenant and user of those who may read its tokens, of which the first are here,
    and those before it; `pinned_by` the tenants for whom it is pinned. There the empty names are
    the operator's.
    """

    node_id: int
    parent_id: int | None
    tenant: str
    user: str | None
    num_tokens: int
    pages: list[int]
    num_hits: int
    idle_s: float
    pinned_by: list[str]
    known_to: list[list[str]]
    first_token_ids: list[int]
    token_ids_before: list[int]


@dataclass(frozen=True, slots=True)
class RunningRequest:
    """A request that runs: `node_id` is the end of its prefix in the tree, as far as it is told.

    `pages` are in the order of its tokens; `copied_page` is the one that was copied on write.
    """

    request_id: str
    tenant: str
    user: str
    node_id: int | None
    is_prefilling: bool
    num_prompt_tokens: int
    num_cached_tokens: int
    num_computed_tokens: int
    num_output_tokens: int
    pages: list[int]
    copied_page: int | None


@dataclass(slots=True)
class StepCounts:
    """What the steps of an interval did for one tenant, or one user. Mutable while it lasts.

    `num_waiting` is the most that waited for a seat at a time.
    """

    tenant: str
    user: str | None
    prefill_tokens: int = 0
    decode_tokens: int = 0
    cached_tokens: int = 0
    num_waiting: int = 0


@dataclass(frozen=True, slots=True)
class StepInterval:
    """The steps of half a second that begins `at`, in seconds since 1970."""

    at: float
    counts: list[StepCounts]


@dataclass(frozen=True, slots=True)
class HiddenNodes:
    """How many nodes of a scope were too many to be told."""

    tenant: str
    user: str | None
    num_nodes: int


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """One worker's state. Parents come before children; `pages` has one character for each page.

    `by_user` says that conversations are shared by nobody but the same user.
    """

    taken_at: float
    page_size: int
    by_user: bool
    pages: str
    nodes: list[NodeState]
    hidden: list[HiddenNodes]
    requests: list[RunningRequest]
    intervals: list[StepInterval]

    @property
    def num_pages(self) -> int:
        return len(self.pages)

    @classmethod
    def from_dict(cls, parsed: Mapping[str, Any]) -> Self:
        """Return the snapshot whose records were written as JSON objects."""
        return cls(
            **{
                **parsed,
                "nodes": [NodeState(**each) for each in parsed["nodes"]],
                "hidden": [HiddenNodes(**each) for each in parsed["hidden"]],
                "requests": [RunningRequest(**each) for each in parsed["requests"]],
                "intervals": [
                    StepInterval(each["at"], [StepCounts(**one) for one in each["counts"]])
                    for each in parsed["intervals"]
                ],
            }
        )
