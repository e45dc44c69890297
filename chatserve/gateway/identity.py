"""Who a request comes from, once it has been authenticated.

Owns the place in the ASGI scope where the answer stands, and the rule for operators. How it got
there is `auth.py`'s business.
"""

from starlette.requests import HTTPConnection
from starlette.types import Scope

from chatserve.error_codes import ErrorCode
from chatserve.errors import Forbidden
from chatserve.identity import Identity
from chatserve.store.api_keys import Grant

_IDENTITY = "chatserve.identity"
_GRANT = "chatserve.grant"


def set_identity(scope: Scope, identity: Identity, grant: Grant | None = None) -> None:
    """Note who a connection comes from, and by which grant; there is none where no keys exist."""
    scope[_IDENTITY] = identity
    scope[_GRANT] = grant


def identity_of(connection: HTTPConnection) -> Identity:
    """Return who a request comes from; there is none before it was found out."""
    identity: Identity = connection.scope[_IDENTITY]
    return identity


def is_authenticated(connection: HTTPConnection) -> bool:
    """Return whether it is known who a connection comes from."""
    return _IDENTITY in connection.scope


def grant_of(connection: HTTPConnection) -> Grant | None:
    """Return by which grant a caller was known; None where no keys exist."""
    grant: Grant | None = connection.scope.get(_GRANT)
    return grant


def require_operator(connection: HTTPConnection) -> Identity:
    """Return who asks, or raise Forbidden for one who is no operator."""
    identity = identity_of(connection)
    if not identity.is_operator:
        raise Forbidden("this is for operators: use a key of theirs", code=ErrorCode.OPERATOR_ONLY)
    return identity
