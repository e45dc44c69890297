"""The application: which path leads where, and what surrounds every request.

Owns the table of routes and the order of the layers. From the outside in: the gatekeeper (Host and
Origin), CORS for configured origins, then the routes with the conversion of errors to replies.
"""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Route, WebSocketRoute

from chatserve.errors import ClientError, StoreError
from chatserve.gateway import conversations, health, metrics
from chatserve.gateway.chat_completions import ChatCompletions
from chatserve.gateway.completions import Completions
from chatserve.gateway.connection import refuse_http_responses, serve_connection
from chatserve.gateway.page import Page
from chatserve.gateway.replies import (
    IGNORED_HEADER,
    on_departure,
    on_fault,
    on_http_exception,
    on_service_error,
)
from chatserve.gateway.security import Gatekeeper
from chatserve.gateway.services import Services


def create_app(services: Services) -> Starlette:
    """Return the application over services that are up."""
    app = Starlette(
        routes=_routes(),
        middleware=[
            Middleware(Gatekeeper, config=services.config),
            Middleware(
                CORSMiddleware,
                allow_origins=services.config.allowed_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=[IGNORED_HEADER, "x-request-id", "retry-after"],
            ),
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


def _routes() -> list[BaseRoute]:
    conversation = "/v1/conversations/{conversation_id}"
    return [
        Route("/v1/chat/completions", ChatCompletions(), methods=["POST"]),
        Route("/v1/completions", Completions(), methods=["POST"]),
        WebSocketRoute("/v1/responses", serve_connection),
        Route("/v1/responses", refuse_http_responses, methods=["GET", "POST"]),
        Route("/v1/models", health.list_models),
        Route("/v1/models/{model:path}", health.get_model),
        Route("/v1/conversations", conversations.create_conversation, methods=["POST"]),
        Route(conversation, conversations.get_conversation, methods=["GET"]),
        Route(conversation, conversations.update_conversation, methods=["POST"]),
        Route(conversation, conversations.delete_conversation, methods=["DELETE"]),
        Route(f"{conversation}/items", conversations.list_items),
        Route("/v1/chatserve/conversations", conversations.list_conversations),
        Route("/health", health.get_health),
        Route("/ready", health.get_ready),
        Route("/version", health.get_version),
        Route("/metrics", metrics.get_metrics),
    ]
