"""Logging in and out, tickets, and who one is: `/v1/chatserve/login`, `logout`, `ticket`, `me`.

Owns the cookie. A login turns a key into one that a page's scripts cannot read and that other sites
cannot send; the page never keeps the key. A ticket turns any credential into one that works once,
for a socket that can show no header.
"""

from typing import Any

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import Conflict, Unauthenticated
from chatserve.gateway.auth import LOGIN_COOKIE, check_origin, find_account, redeem
from chatserve.gateway.identity import grant_of, identity_of
from chatserve.gateway.login_throttle import LoginThrottle
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import json_response, read_body
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.auth import Credential, LoginFields, parse_login
from chatserve.store.logins import LOGIN_TTL_S, TICKET_TTL_S

_MAX_BODY_BYTES = 4096


def routes() -> list[BaseRoute]:
    """Return the paths of logins and tickets."""
    return [
        Route("/v1/chatserve/login", Login().serve, methods=["POST"]),
        Route("/v1/chatserve/logout", log_out, methods=["POST"]),
        Route("/v1/chatserve/me", get_me),
        Route("/v1/chatserve/ticket", issue_ticket, methods=["POST"]),
    ]


class Login:
    """`POST /v1/chatserve/login`.

    Owns: the count of failures.
    Used from: the event loop.
    """

    def __init__(self) -> None:
        self._throttle = LoginThrottle()

    async def serve(self, request: Request) -> Response:
        """Turn the key in the body into a cookie.

        Raises:
            Unauthenticated: It is not a valid key.
            RateLimited: Too many logins from this address have failed.
        """
        services: Services = request.app.state.services
        secret = parse_login(await read_body(request, _MAX_BODY_BYTES))
        address = request.client.host if request.client is not None else ""
        self._throttle.begin(address)
        try:
            grant = await redeem(services.store, Credential(token=secret))
            account = await find_account(services.directory, grant)
        except Unauthenticated:
            raise
        except BaseException:  # not the caller's fault
            self._throttle.forgive(address)
            raise
        self._throttle.forgive(address)
        token = await services.store.logins.begin(grant)
        response = json_response(_identity_object(account.identity))
        _set_cookie(response, request, token, LOGIN_TTL_S)
        return response


async def log_out(request: Request) -> Response:
    """Serve `POST /v1/chatserve/logout`: end the login, if there is one, and drop the cookie.

    Raises:
        Forbidden: A cookie without an Origin, which counts for nothing here either.
    """
    services: Services = request.app.state.services
    if LOGIN_COOKIE in request.cookies:
        check_origin(request)
    await services.store.logins.end(request.cookies.get(LOGIN_COOKIE, ""))
    response = json_response({"object": "chatserve.logout", "logged_out": True})
    _set_cookie(response, request, "", 0)
    return response


async def get_me(request: Request) -> Response:
    """Serve `GET /v1/chatserve/me`."""
    return json_response(_identity_object(identity_of(request)))


async def issue_ticket(request: Request) -> Response:
    """Serve `POST /v1/chatserve/ticket`, or raise Conflict where nobody needs one."""
    services: Services = request.app.state.services
    grant = grant_of(request)
    if grant is None:
        raise Conflict(
            "no key is needed here yet, and so no ticket: connect without", code=ErrorCode.NO_KEYS
        )
    ticket = await services.store.logins.issue_ticket(grant)
    return json_response(
        {"object": "chatserve.ticket", "ticket": ticket, "expires_in": TICKET_TTL_S}
    )


def _identity_object(identity: Identity) -> dict[str, Any]:
    return {
        "object": "chatserve.identity",
        "tenant": identity.tenant,
        "user": identity.user,
        "role": identity.role.value,
        "key_id": identity.key_id or None,
    }


def _set_cookie(response: Response, request: Request, token: str, max_age_s: int) -> None:
    response.set_cookie(
        LOGIN_COOKIE,
        token,
        max_age=max_age_s,
        path="/",
        secure=_is_https(request),
        httponly=True,
        samesite="strict",
    )


def _is_https(request: HTTPConnection) -> bool:
    """Return whether the browser speaks TLS, be it to us or to a proxy in front.

    A proxy's caller tells its scheme by the Origin, which the gatekeeper has found to be ours.
    """
    is_https_page = request.headers.get("origin", "").startswith("https://")
    return request.url.scheme == "https" or is_https_page


OPERATIONS = (
    Operation("POST", "/v1/chatserve/login", "Turn a key into a cookie", body=LoginFields),
    Operation("POST", "/v1/chatserve/logout", "End the login of the cookie"),
    Operation("GET", "/v1/chatserve/me", "Tell who the caller is"),
    Operation("POST", "/v1/chatserve/ticket", "Issue a ticket for one WebSocket", errors=(409,)),
)
