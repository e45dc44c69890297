"""Lists in pages: what a client may ask of one, and the object that a page is.

Owns the query parameters `limit`, `order` and `after` and the shape of a list. Knows nothing of
what is listed, but for its ids.
"""

from collections.abc import Sequence
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


def page_of(request: Request, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the page of items, which come oldest first, that a request asks for."""
    limit = page_limit(request)
    ordered = list(reversed(items)) if is_descending(request) else list(items)
    first = _place_after(request.query_params.get("after"), ordered)
    page = ordered[first : first + limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else "",
        "last_id": page[-1]["id"] if page else "",
        "has_more": len(ordered) > first + limit,
    }


def first_page(objects: Sequence[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return the page of a list of which one more than the limit was read."""
    return {"object": "list", "data": list(objects[:limit]), "has_more": len(objects) > limit}


def _place_after(after: str | None, items: Sequence[dict[str, Any]]) -> int:
    if after is None:
        return 0
    for place, item in enumerate(items, start=1):
        if item["id"] == after:
            return place
    raise InvalidRequest(f"after: there is no item {describe(after)}", param="after")
