"""Flags in a query string: read strictly, since a word that is misspelt is no `false`."""

from starlette.requests import Request

from chatserve.errors import InvalidRequest
from chatserve.protocol.errors import describe


def flag_of(request: Request, name: str) -> bool:
    """Return a parameter that is true or false, and false when it is absent."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidRequest(
            f"{name}: must be true or false, received {describe(text)}", param=name
        )
    return text == "true"
