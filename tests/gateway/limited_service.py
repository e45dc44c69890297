"""A service with a tenant whose limits a test chooses, and callers with keys of it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from gateway.gateway_helpers import Service, Socket, chat, run_service

from chatserve.identity import Role
from chatserve.store.api_keys import ApiKey
from chatserve.store.connection import Store, open_store
from chatserve.store.tenants import NO_QUOTAS, Quotas, Tenant

TENANT = "acme"


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a key."""

    service: Service
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.secret}"}

    async def chat(self, text: str = "hello", **members: Any) -> httpx.Response:
        body = chat(text, **members)
        return await self.service.http.post("/v1/chat/completions", json=body, headers=self.headers)

    async def get(self, path: str, **params: str) -> httpx.Response:
        return await self.service.http.get(path, params=params, headers=self.headers)

    def socket(self) -> AbstractAsyncContextManager[Socket]:
        return self.service.socket(additional_headers=self.headers)


async def secret_of(
    store: Store,
    user: str,
    *,
    tenant: str = TENANT,
    role: Role = Role.MEMBER,
    quotas: Quotas = NO_QUOTAS,
) -> str:
    """Return the secret of a new key."""
    return (await store.api_keys.add(ApiKey("", tenant, user, role, quotas=quotas))).secret


@asynccontextmanager
async def limited_service(
    store_url: str, quotas: Quotas, *, of_key: Quotas = NO_QUOTAS, **settings: Any
) -> AsyncIterator[Caller]:
    """Run a service for a tenant with these quotas, and yield one of its users."""
    store = await open_store(store_url)
    await store.tenants.add(Tenant(TENANT, quotas=quotas))
    secret = await secret_of(store, "ann", quotas=of_key)
    await store.aclose()
    async with run_service(store_url, **settings) as service:
        yield Caller(service, secret)
