"""What the OpenAPI document says of one route, declared next to its handler.

Owns the record and its defaults: which errors a route can answer with follows from what it takes.
`openapi.py` makes the document of all of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
"""The schema of a body whose shape somebody else's documentation tells."""

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")

# What every route may say: not authenticated, not allowed, too many requests, no store.
_ALWAYS = (401, 403, 429, 503)


@dataclass(frozen=True, slots=True)
class Query:
    """One parameter of a query string."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool = False


LIMIT = Query("limit", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20})


ORDER = Query("order", {"enum": ["asc", "desc"], "default": "desc"})


def flag(name: str) -> Query:
    """Return a parameter that is true or false."""
    return Query(name, {"type": "boolean", "default": False})


def text(name: str, *, is_required: bool = False) -> Query:
    """Return a parameter that is any text."""
    return Query(name, {"type": "string"}, is_required)


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a request that changes what a route does; none is required."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    `body` and `reply` are models, or schemas where the body has no model of ours. A `media_type`
    other than JSON makes the reply a text. `errors` are the statuses that do not follow from what
    the route takes.
    """

    method: str
    path: str
    summary: str
    body: type[BaseModel] | Mapping[str, Any] | None = None
    query: tuple[Query, ...] = ()
    headers: tuple[Header, ...] = ()
    reply: type[BaseModel] | Mapping[str, Any] = field(default_factory=lambda: ANY_OBJECT)
    media_type: str = "application/json"
    errors: tuple[int, ...] = ()

    @property
    def parameters(self) -> list[str]:
        """The names in the path."""
        return _PARAMETER.findall(self.path)

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it, without the converters of the router."""
        return _PARAMETER.sub(r"{\1}", self.path)

    @property
    def error_statuses(self) -> list[int]:
        """All statuses of errors that the route may answer with."""
        statuses = {*_ALWAYS, *self.errors}
        if self.body is not None:
            statuses |= {400, 408, 413}
        if self.query:
            statuses.add(400)
        if self.parameters:
            statuses.add(404)
        return sorted(statuses)
