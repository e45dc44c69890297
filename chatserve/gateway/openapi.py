"""`GET /openapi.json`: what this gateway serves, as an OpenAPI 3.1 document.

Owns how the declarations next to the handlers become the document. It has the models' schemas, so
it cannot say anything else than what is checked; what it leaves out is the WebSocket, which OpenAPI
cannot describe, and the page.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve import __version__
from chatserve.gateway.operations import Operation
from chatserve.gateway.replies import json_response

_PATH = "/openapi.json"
_REF = "#/components/schemas/{model}"

Schema = Mapping[str, Any]
Mode = Literal["validation", "serialization"]

_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "code", "message", "param"],
            "properties": {
                "type": {"type": "string"},
                "code": {"type": ["string", "null"]},
                "message": {"type": "string"},
                "param": {"type": ["string", "null"]},
            },
        }
    },
}

OPERATIONS = (Operation("GET", _PATH, "This document"),)


class OpenApi:
    """The endpoint of the document.

    Owns: the document, made when it is first asked for.
    Used from: the event loop.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.operations = (*operations, *OPERATIONS)
        self._document: dict[str, Any] | None = None

    async def get_document(self, _request: Request) -> Response:
        """Serve `GET /openapi.json`."""
        if self._document is None:
            self._document = openapi_document(self.operations)
        return json_response(self._document)

    def routes(self) -> list[BaseRoute]:
        """Return the route of this module."""
        return [Route(_PATH, self.get_document, methods=["GET"])]


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the document of these operations."""
    operations = tuple(operations)
    refs, schemas = _model_schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _describe(operation, refs)
        paths.setdefault(operation.template, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "chatserve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _model_schemas(
    operations: Iterable[Operation],
) -> tuple[Mapping[Any, Schema], dict[str, Any]]:
    """Return the reference of each model, as it is sent or received, and what they refer to."""
    wanted: dict[tuple[type[BaseModel], Mode], None] = {}
    for operation in operations:
        if isinstance(operation.body, type):
            wanted[operation.body, "validation"] = None
        if isinstance(operation.reply, type):
            wanted[operation.reply, "serialization"] = None
    refs, definitions = models_json_schema(list(wanted), by_alias=True, ref_template=_REF)
    return refs, definitions.get("$defs", {})


def _describe(operation: Operation, refs: Mapping[Any, Schema]) -> dict[str, Any]:
    reply, body = operation.reply, operation.body
    described: dict[str, Any] = {
        "summary": operation.summary,
        "parameters": _parameters(operation),
        "responses": {
            "200": {
                "description": "done",
                "content": {
                    operation.media_type: {
                        "schema": refs[reply, "serialization"] if isinstance(reply, type) else reply
                    }
                },
            },
            **{str(status): _error_reply() for status in operation.error_statuses},
        },
    }
    if body is not None:
        schema = refs[body, "validation"] if isinstance(body, type) else body
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in operation.parameters
    ]
    in_query = [
        {"name": each.name, "in": "query", "required": each.is_required, "schema": each.schema}
        for each in operation.query
    ]
    in_headers = [
        {
            "name": each.name,
            "in": "header",
            "required": False,
            "description": each.description,
            "schema": each.schema,
        }
        for each in operation.headers
    ]
    return in_path + in_query + in_headers


def _error_reply() -> dict[str, Any]:
    reference = {"$ref": _REF.format(model="Error")}
    return {"description": "an error", "content": {"application/json": {"schema": reference}}}
