"""Who a caller is: from a credential to an identity, for HTTP and for sockets.

Owns where credentials are looked for and in which order, and which refusal means what. What they
look like is in `protocol/auth.py`, whether one is valid in `directory.py` and in the store.

1. While no tenant exists, on a loopback address, everybody is the local operator; credentials are
   not looked at.
2. `Authorization: Bearer <key>`.
3. The cookie of a login. A browser sends it by itself, also when a page of another site asks it to,
   so it counts only together with an Origin, which the gatekeeper has checked by then. A request
   that changes nothing needs none, unless its `Sec-Fetch-Site` says that another site's page has
   made it. No Origin is no browser, and such a caller must show more than a cookie.
4. On sockets, the subprotocol `openai-insecure-api-key.<key>` or `chatserve-ticket.<ticket>`.
5. On sockets without any of these, the first message, which must come soon.

What is in headers is decided before a socket is upgraded. The first that is there decides: a wrong
key is not made good by a cookie. A query string never holds a credential, since those are logged.
"""

import asyncio
from collections.abc import Collection

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from chatserve.error_codes import ErrorCode
from chatserve.errors import ClientError, Forbidden, StoreError, Unauthenticated
from chatserve.gateway.directory import Account, Directory
from chatserve.gateway.ending import Ending, PeerGone
from chatserve.gateway.identity import grant_of, identity_of, is_authenticated, set_identity
from chatserve.gateway.replies import as_client_error, error_response
from chatserve.gateway.security import refuse
from chatserve.gateway.services import Services
from chatserve.identity import LOCAL, Identity
from chatserve.protocol.auth import Credential, credential_of_protocols, parse_auth_frame
from chatserve.protocol.codes import CloseCode
from chatserve.store.api_keys import Grant, parse_secret
from chatserve.store.connection import Store

LOGIN_COOKIE = "chatserve-login"

PUBLIC_PATHS = frozenset(
    {
        "/health",
        "/ready",
        "/version",
        "/openapi.json",
        "/v1/chatserve/login",
        "/v1/chatserve/logout",
    }
)

_SAFE_METHODS = ("GET", "HEAD")

_FOREIGN_SITES = ("cross-site", "same-site")
"""Values of `Sec-Fetch-Site` that no page of our own causes; a browser lets nobody forge them."""

_NO_KEY = "this is not a valid key"
_EXPIRED = "this key has expired: ask an operator for another, or to let it last longer"
_HOW_TO_GET_A_KEY = (
    "an operator makes one by `chatserve tenant add NAME` and "
    "`chatserve key add --tenant NAME --user USER`"
)


class Authentication:
    """Finds out who calls, or refuses with 401 or 403, before anything else is done.

    Owns: nothing that changes.
    Used from: the event loop, as the layer around the routes.

    Args:
        app: What is behind it.
        services: The directory and the store.
        roots: The first segments of all paths that have an endpoint. Any other path can only be a
            file of the page, which everybody may have.
    """

    def __init__(self, app: ASGIApp, *, services: Services, roots: Collection[str]) -> None:
        self._app = app
        self._directory = services.directory
        self._store = services.store
        self._roots = roots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and not self._is_public(scope):
            try:
                await self._authenticate(HTTPConnection(scope))
            except (ClientError, StoreError) as error:
                refusal = error_response(as_client_error(error), scope["path"])
                await refuse(refusal, scope, receive, send)
                return
            receive = self._checking_again(scope, receive)
        await self._app(scope, receive, send)

    def _checking_again(self, scope: Scope, receive: Receive) -> Receive:
        """Return a `receive` that looks the caller up once more when a body has arrived.

        A body may take as long as it likes, within its deadline: what its tenant has been removed
        for meanwhile must not be stored any more.
        """
        grant = grant_of(HTTPConnection(scope))
        if grant is None or scope.get("method", "GET") in _SAFE_METHODS:
            return receive

        async def receive_and_check() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                await find_account(self._directory, grant)
            return message

        return receive_and_check

    def _is_public(self, scope: Scope) -> bool:
        if scope["type"] == "websocket":
            return False
        path: str = scope["path"]
        return path in PUBLIC_PATHS or path.partition("/")[2].partition("/")[0] not in self._roots

    async def _authenticate(self, connection: HTTPConnection) -> None:
        """Note who calls. A socket that shows nothing yet may still do so in its first message."""
        if self._directory.is_open:
            set_identity(connection.scope, LOCAL)
            return
        grant = await self._grant_in_headers(connection)
        if grant is not None:
            account = await find_account(self._directory, grant)
            set_identity(connection.scope, account.identity, grant)
        elif connection.scope["type"] == "http":
            raise Unauthenticated(
                f"show a key as `Authorization: Bearer <key>`; {_HOW_TO_GET_A_KEY}",
                code=ErrorCode.UNAUTHENTICATED,
            )

    async def _grant_in_headers(self, connection: HTTPConnection) -> Grant | None:
        """Return what the first credential comes to, None where there is none."""
        authorization = connection.headers.get("authorization")
        if authorization is not None:
            scheme, _, secret = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise _invalid("the Authorization header must be `Bearer <key>`")
            return await redeem(self._store, Credential(token=secret.strip()))
        token = connection.cookies.get(LOGIN_COOKIE)
        if token is not None:
            check_origin(connection)
            grant = await self._store.logins.find(token)
            if grant is None:
                raise _invalid("the login is over: log in again")
            return grant
        shown = credential_of_protocols(connection.scope.get("subprotocols", ()))
        return await redeem(self._store, shown) if shown is not None else None


async def redeem(store: Store, credential: Credential) -> Grant:
    """Return what a key's secret or a ticket comes to; the key may be revoked all the same.

    Raises:
        Unauthenticated: The secret has another form, or the ticket is unknown, used or too old.
    """
    if credential.ticket is not None:
        grant = await store.logins.redeem_ticket(credential.ticket)
        if grant is None:
            raise _invalid("the ticket is unknown, or was used, or is too old")
        return grant
    grant = parse_secret(credential.token or "")
    if grant is None:
        raise _invalid(_NO_KEY)
    return grant


async def find_account(directory: Directory, grant: Grant) -> Account:
    """Return whose grant it is, or raise Unauthenticated.

    An unknown key, a wrong secret and a revoked one are told apart for nobody. That a key has
    expired is told to whoever shows its secret, which nobody else can.
    """
    account = await directory.find(grant)
    if account is None:
        if await directory.has_expired(grant):
            raise Unauthenticated(_EXPIRED, code=ErrorCode.KEY_EXPIRED)
        raise _invalid(_NO_KEY)
    return account


async def authenticate_socket(websocket: WebSocket, services: Services) -> Identity:
    """Return who is at the other end of an accepted socket, waiting for its first message.

    Raises:
        Ending: The message did not come in time, or was no good, or the store does not answer.
        PeerGone: It has left instead.
    """
    if is_authenticated(websocket):
        return identity_of(websocket)
    shown = await _first_message(websocket, services.limits.auth_timeout_s)
    try:
        grant = await redeem(services.store, shown)
        account = await find_account(services.directory, grant)
    except Unauthenticated as error:
        raise Ending(CloseCode.UNAUTHENTICATED, error.message) from None
    except StoreError:
        raise Ending(CloseCode.TRY_AGAIN_LATER, "the store cannot be reached") from None
    set_identity(websocket.scope, account.identity, grant)
    return account.identity


async def _first_message(websocket: WebSocket, timeout_s: float) -> Credential:
    try:
        async with asyncio.timeout(timeout_s):
            message = await websocket.receive()
    except TimeoutError:
        raise Ending(CloseCode.AUTH_TIMEOUT, "no chatserve:auth came in time") from None
    if message["type"] == "websocket.disconnect":
        raise PeerGone(message["code"])
    if message.get("text") is None:
        raise Ending(CloseCode.BINARY_FRAME, "events are JSON in text frames")
    shown = parse_auth_frame(message["text"])
    if shown is None:
        wanted = "the first message must be chatserve:auth with a token or a ticket"
        raise Ending(CloseCode.UNAUTHENTICATED, wanted)
    return shown


def check_origin(connection: HTTPConnection) -> None:
    """Refuse a cookie without an Origin where that could change something, or comes from others."""
    is_safe = connection.scope.get("method") in _SAFE_METHODS
    is_foreign = connection.headers.get("sec-fetch-site", "").lower() in _FOREIGN_SITES
    if (is_foreign or not is_safe) and "origin" not in connection.headers:
        raise Forbidden(
            "a login counts only together with an Origin header: show a key instead",
            code=ErrorCode.ORIGIN_REQUIRED,
        )


def _invalid(message: str) -> Unauthenticated:
    return Unauthenticated(message, code=ErrorCode.INVALID_API_KEY)
