"""Query strings that are read strictly: a word that is misspelt is neither `false` nor nothing."""

from starlette.requests import Request

from chatserve.errors import InvalidRequest
from chatserve.protocol.body import unknown_name
from chatserve.protocol.errors import describe


def flag_of(request: Request, name: str) -> bool:
    """Return a parameter that is true or false, and false when it is absent."""
    text = request.query_params.get(name, "false")
    if text not in ("true", "false"):
        raise InvalidRequest(
            f"{name}: must be true or false, received {describe(text)}", param=name
        )
    return text == "true"


def check_names(request: Request, *known: str) -> None:
    """Raise InvalidRequest for a parameter that is none of these.

    For operators, whose `?versions=1` would remove a prompt with all its versions.
    """
    for name in request.query_params:
        if name not in known:
            raise unknown_name(name, known)
