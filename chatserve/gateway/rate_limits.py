"""What a client is told about its limits: headers, the event on a socket, and why it is refused.

Owns the words. Of a tenant's and a key's limit clients are told the one that leaves them less.
"""

import math
from collections.abc import Iterator
from typing import Any

from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, InvalidRequest, RateLimited
from chatserve.store.limits import Allowance, Allowances, Limited
from chatserve.wording import counted

LIMIT_HEADERS = tuple(
    f"x-ratelimit-{what}-{name}"
    for name in ("requests", "tokens")
    for what in ("limit", "remaining", "reset")
)

_WORDS = {
    "requests": ("request", "per minute"),
    "tokens": ("token", "per minute"),
    "parallel": ("response", "at a time"),
}


def limit_headers(allowances: Allowances) -> dict[str, str]:
    """Return the headers that say what is left, none where nothing is limited."""
    headers: dict[str, str] = {}
    for name, allowance in _named(allowances):
        headers[f"x-ratelimit-limit-{name}"] = str(allowance.limit)
        headers[f"x-ratelimit-remaining-{name}"] = str(allowance.remaining)
        headers[f"x-ratelimit-reset-{name}"] = f"{allowance.reset_ms / 1e3:.3f}s"
    return headers


def limits_event(allowances: Allowances) -> dict[str, Any]:
    """Return the event that says what is left. It has no number and is in no log."""
    return {
        "type": "rate_limits.updated",
        "rate_limits": [
            {
                "name": name,
                "limit": allowance.limit,
                "remaining": allowance.remaining,
                "reset_seconds": allowance.reset_ms / 1e3,
            }
            for name, allowance in _named(allowances)
        ],
    }


def refusal_of(limited: Limited) -> ClientError:
    """Return the error that says why a request was not taken, and when it may be.

    One that needs more than a whole limit is a bad request: with a 429, clients would send it again
    for ever.
    """
    noun, per = _WORDS[limited.name]
    whose = "this tenant" if limited.scope.startswith("tenant:") else "this key"
    bound = f"{whose} is limited to {counted(limited.limit, noun)} {per}"
    if limited.retry_ms is None:
        return InvalidRequest(
            f"the request may need {limited.needed:,}, and {bound}: it can never be served",
            code=ErrorCode.OVER_LIMIT,
        )
    retry_after_s = math.ceil(limited.retry_ms / 1e3)
    return RateLimited(
        f"{bound}, with {limited.remaining:,} left, and the request may need {limited.needed:,}; "
        f"try again in {retry_after_s} s",
        retry_after_s=retry_after_s,
        limits=limit_headers(limited.allowances),
    )


def _named(allowances: Allowances) -> Iterator[tuple[str, Allowance]]:
    for name, allowance in (("requests", allowances.requests), ("tokens", allowances.tokens)):
        if allowance is not None:
            yield name, allowance
