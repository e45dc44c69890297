"""A service that needs keys: two tenants, a member of each, and an operator."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import websockets
from gateway.gateway_helpers import Event, Service, run_service
from websockets.exceptions import InvalidStatus

from chatserve.identity import Role
from chatserve.store.api_keys import ApiKey, IssuedKey
from chatserve.store.connection import open_store
from chatserve.store.tenants import Tenant


@dataclass(frozen=True, slots=True)
class Secured:
    """A running service, and the keys to it."""

    service: Service
    member: IssuedKey
    stranger: IssuedKey
    operator: IssuedKey

    @property
    def origin(self) -> dict[str, str]:
        """The headers of a page of the service's own."""
        return {"origin": self.service.url}

    async def issue(self, user: str = "bob", **fields: Any) -> IssuedKey:
        """Return another key of the tenant acme."""
        return await self.service.store.api_keys.add(ApiKey("", "acme", user, **fields))

    async def cookie(self, issued: IssuedKey) -> dict[str, str]:
        """Log in, and return the header that a browser sends from then on."""
        reply = await self.service.http.post("/v1/chatserve/login", json={"key": issued.secret})
        assert reply.status_code == 200, reply.text
        token = reply.headers["set-cookie"].partition(";")[0]
        self.service.http.cookies.clear()
        return {"cookie": token}

    async def refused(self, **options: Any) -> tuple[int, Event]:
        """Return how a handshake is refused: the status, and the error."""
        uri = f"ws://127.0.0.1:{self.service.port}/v1/responses"
        try:
            async with websockets.connect(uri, **options):
                raise AssertionError("the handshake was accepted")
        except InvalidStatus as refusal:
            return refusal.response.status_code, error_of(refusal.response.body)


def bearer(issued: IssuedKey) -> dict[str, str]:
    """Return the header that shows a key."""
    return {"authorization": f"Bearer {issued.secret}"}


def error_of(body: bytes | bytearray) -> Event:
    """Return the error object of a reply's body."""
    error: Event = json.loads(body)["error"]
    return error


@asynccontextmanager
async def run_secured_service(store_url: str, **options: Any) -> AsyncIterator[Secured]:
    """Run a service on an empty store that gets tenants and keys first."""
    store = await open_store(store_url)
    await store.commands.call("FLUSHDB")
    for tenant in ("acme", "zeta"):
        await store.tenants.add(Tenant(tenant))
    member = await store.api_keys.add(ApiKey("", "acme", "bob"))
    stranger = await store.api_keys.add(ApiKey("", "zeta", "bob"))
    operator = await store.api_keys.add(ApiKey("", "acme", "root", Role.OPERATOR))
    await store.aclose()
    async with run_service(store_url, **options) as service:
        yield Secured(service, member, stranger, operator)
