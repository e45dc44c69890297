"""Those who call a service of two tenants, and how they call it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gateway.gateway_helpers import Service
from gateway.secured_helpers import bearer, run_secured_service

Headers = dict[str, str]


@dataclass(frozen=True, slots=True)
class Callers:
    """The headers of an operator, and of a member of each of the tenants acme and zeta."""

    service: Service
    operator: Headers
    acme: Headers
    zeta: Headers

    async def get(self, path: str, headers: Headers) -> Any:
        """Return the body of a reply that must be a good one."""
        reply = await self.service.http.get(path, headers=headers)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def post(self, path: str, headers: Headers, **body: Any) -> Any:
        """Return the body of a reply that must be a good one."""
        reply = await self.service.http.post(path, headers=headers, json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def refusal(
        self, method: str, path: str, headers: Headers, body: Any = None
    ) -> tuple[int, dict[str, Any]]:
        """Return status and error object of a reply that must be a refusal."""
        reply = await self.service.http.request(method, path, headers=headers, json=body)
        assert reply.status_code >= 400, reply.text
        return reply.status_code, reply.json()["error"]


@asynccontextmanager
async def run_for_callers(store_url: str, **settings: Any) -> AsyncIterator[Callers]:
    """Run a service that needs keys, as `run_secured_service` does."""
    async with run_secured_service(store_url, **settings) as secured:
        issued = (secured.operator, secured.member, secured.stranger)
        yield Callers(secured.service, *map(bearer, issued))
