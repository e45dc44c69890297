"""The OpenAPI document: complete, and true of what a fuzzer gets."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from gateway.gateway_helpers import Service
from gateway.secured_helpers import Secured, bearer
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from chatserve.gateway.app import create_app, operations
from chatserve.gateway.openapi import OPERATIONS, openapi_document

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MAX_EXAMPLES = 20

ALL = [*operations(), *OPERATIONS]

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_route_has_an_entry_and_every_entry_a_route(shared_service: Service) -> None:
    routes = create_app(shared_service.services).routes

    served = {
        (method, route.path)
        for route in routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }

    described = [(each.method, each.path) for each in ALL]
    assert set(described) == served
    assert len(described) == len(served)


async def test_every_part_of_our_own_surface_is_in_the_documentation() -> None:
    """Logins, keys and usage used to be found in the OpenAPI document alone."""
    api = (Path(__file__).parents[2] / "docs/api.md").read_text()

    parts = {each.path.split("/")[3] for each in ALL if each.path.startswith("/v1/chatserve/")}

    assert {"tenants", "login", "usage"} <= parts
    assert [part for part in sorted(parts) if f"/{part}" not in api] == []


async def test_document_is_served_and_its_references_lead_somewhere(
    shared_service: Service,
) -> None:
    document = (await shared_service.http.get("/openapi.json")).json()

    assert document == openapi_document(ALL)
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= known


async def test_headers_that_change_a_reply_are_in_the_document() -> None:
    paths = openapi_document(ALL)["paths"]

    described = {
        (method, each["name"])
        for path in ("/v1/responses", "/v1/responses/{response_id}")
        for method, operation in paths[path].items()
        for each in operation["parameters"]
        if each["in"] == "header"
    }

    assert described == {
        ("post", "Idempotency-Key"),
        ("post", "x-chatserve-updates"),
        ("get", "x-chatserve-updates"),
    }


@pytest.mark.parametrize("operation", ALL, ids=lambda each: f"{each.method} {each.path}")
async def test_replies_to_whatever_fits_the_document_are_as_it_says(
    secured: Secured, operation: Any
) -> None:
    """An operator asks, who may do everything: one without a key would get no further."""
    service, headers = secured.service, bearer(secured.operator)
    document = openapi_document([operation])
    schema = schemathesis.openapi.from_dict(document)
    found = schema[operation.template][operation.method]
    body = {"items": [{"role": "user", "content": "Hello"}]}
    created = await service.http.post("/v1/conversations", json=body, headers=headers)
    known = created.json()["id"]

    @settings(
        max_examples=MAX_EXAMPLES,
        database=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=found.as_strategy(), is_known=st.booleans())
    def check(case: Any, *, is_known: bool) -> None:
        if is_known and "conversation_id" in case.path_parameters:
            case.path_parameters["conversation_id"] = known
        reply = case.call(base_url=service.url, headers=headers)
        case.validate_response(reply, checks=CHECKS)

    await asyncio.to_thread(check)


def references(value: Any) -> set[str]:
    """Return all references in a document."""
    if isinstance(value, list):
        return {found for each in value for found in references(each)}
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own.union(*(references(each) for each in value.values()))
