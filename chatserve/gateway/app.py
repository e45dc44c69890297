"""The application: which path leads where, and what surrounds every request.

Owns the table of routes and the order of the layers. From the outside in: the gatekeeper (Host and
Origin), CORS for configured origins, authentication, then the routes with the conversion of errors
to replies.
"""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Route, WebSocketRoute

from chatserve.errors import ClientError, StoreError
from chatserve.gateway import (
    cache,
    chat_completions,
    completions,
    conversation_archive,
    conversation_items,
    conversation_list,
    conversation_search,
    conversations,
    health,
    login,
    metrics,
    model_list,
    overview,
    prompts,
    responses_http,
    tenants,
    tokenize,
    usage,
)
from chatserve.gateway.auth import Authentication
from chatserve.gateway.chat_completions import ChatCompletions
from chatserve.gateway.completions import Completions
from chatserve.gateway.connection import serve_connection
from chatserve.gateway.drain import DrainGate
from chatserve.gateway.openapi import OpenApi
from chatserve.gateway.operations import Operation
from chatserve.gateway.page import Page
from chatserve.gateway.rate_limits import LIMIT_HEADERS
from chatserve.gateway.replies import (
    IGNORED_HEADER,
    on_departure,
    on_fault,
    on_http_exception,
    on_service_error,
)
from chatserve.gateway.security import Gatekeeper
from chatserve.gateway.services import Services

_EXPOSED_HEADERS = ("etag", "x-request-id", "retry-after")


def create_app(services: Services) -> Starlette:
    """Return the application over services that are up."""
    routes = _routes()
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Gatekeeper, config=services.config),
            Middleware(
                CORSMiddleware,
                allow_origins=services.config.allowed_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=[IGNORED_HEADER, *_EXPOSED_HEADERS, *LIMIT_HEADERS],
            ),
            Middleware(DrainGate, drain=services.drain),
            Middleware(Authentication, services=services, roots=_roots_of(routes)),
        ],
        exception_handlers={
            ClientError: on_service_error,
            StoreError: on_service_error,
            HTTPException: on_http_exception,
            ClientDisconnect: on_departure,
            Exception: on_fault,
        },
    )
    # Not a mount: that would take a wrong method on an endpoint's path for a file of the page.
    app.router.default = Page()
    app.state.services = services
    return app


def _roots_of(routes: Sequence[BaseRoute]) -> frozenset[str]:
    """Return the first segments of the paths of endpoints, such as `v1`."""
    paths = [route.path for route in routes if isinstance(route, Route | WebSocketRoute)]
    assert len(paths) == len(routes), "a route of another kind would need no key"
    return frozenset(path.split("/")[1] for path in paths)


def _routes() -> list[BaseRoute]:
    return [
        Route("/v1/chat/completions", ChatCompletions(), methods=["POST"]),
        Route("/v1/completions", Completions(), methods=["POST"]),
        WebSocketRoute("/v1/responses", serve_connection),
        *responses_http.routes(),
        *model_list.routes(),
        *prompts.routes(),
        *conversations.routes(),
        *conversation_items.routes(),
        *conversation_list.routes(),
        *conversation_search.routes(),
        *conversation_archive.routes(),
        *login.routes(),
        *tenants.routes(),
        *usage.routes(),
        *overview.routes(),
        *cache.routes(),
        *tokenize.routes(),
        Route("/health", health.get_health),
        Route("/ready", health.Readiness().serve),
        Route("/version", health.get_version),
        Route("/metrics", metrics.get_metrics),
        *OpenApi(operations()).routes(),
    ]


def operations() -> list[Operation]:
    """Return what is known of every route, for the OpenAPI document."""
    modules = (
        chat_completions,
        completions,
        responses_http,
        model_list,
        prompts,
        conversations,
        conversation_items,
        conversation_list,
        conversation_search,
        conversation_archive,
        login,
        tenants,
        usage,
        overview,
        cache,
        tokenize,
        health,
        metrics,
    )
    return [operation for module in modules for operation in module.OPERATIONS]
