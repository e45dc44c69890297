"""Lists in pages: what a client may ask of one, and the object that a page is.

Owns the query parameters `limit`, `order` and `after` and the shape of a list. Knows nothing of
what is listed, but for its ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from chatserve.errors import InvalidRequest
from chatserve.protocol.errors import describe

_DEFAULT_LIMIT = 20
_MAX_LIMIT = 100


def page_limit(request: Request) -> int:
    """Return how many entries a page shall have at most."""
    text = request.query_params.get("limit", str(_DEFAULT_LIMIT))
    # The length comes first: Python refuses to make a number of thousands of digits.
    is_number = len(text) <= 9 and text.isascii() and text.isdigit()
    if not is_number or not 1 <= int(text) <= _MAX_LIMIT:
        raise InvalidRequest(
            f"limit: must be a number from 1 to {_MAX_LIMIT}, received {describe(text)}",
            param="limit",
        )
    return int(text)


def is_descending(request: Request) -> bool:
    """Return whether a list shall begin with the newest, as it does unless told otherwise."""
    order = request.query_params.get("order", "desc")
    if order not in ("asc", "desc"):
        raise InvalidRequest(
            f"order: must be asc or desc, received {describe(order)}", param="order"
        )
    return order == "desc"


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which page of a list of ids a client asks for: up to `limit` of those behind `after`."""

    limit: int
    is_descending: bool
    after: str | None

    @classmethod
    def of(cls, request: Request) -> "PageQuery":
        """Return what the query of a request says, or raise InvalidRequest."""
        return cls(page_limit(request), is_descending(request), request.query_params.get("after"))

    def cut(self, ids: Sequence[str]) -> tuple[Sequence[str], bool]:
        """Return the page of ids, which come oldest first, and whether there are more.

        Raises:
            InvalidRequest: `after` is none of them.
        """
        ordered = ids[::-1] if self.is_descending else ids
        first = self._place_after(ordered)
        end = first + self.limit
        return ordered[first:end], len(ordered) > end

    def _place_after(self, ids: Sequence[str]) -> int:
        if self.after is None:
            return 0
        if self.after not in ids:
            raise InvalidRequest(f"after: there is no item {describe(self.after)}", param="after")
        return ids.index(self.after) + 1


def page_object(items: Sequence[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    """Return a page as it is sent."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else "",
        "last_id": items[-1]["id"] if items else "",
        "has_more": has_more,
    }


def first_page(objects: Sequence[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return the page of a list of which one more than the limit was read."""
    return {"object": "list", "data": list(objects[:limit]), "has_more": len(objects) > limit}
