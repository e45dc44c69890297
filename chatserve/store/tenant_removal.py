"""Removing a tenant: what goes with it, and in which order.

Owns the order. Each step is small, so that the server serves others in between, and repeatable:
a removal that broke off goes on where it was when it is asked for again.

1. The tenant is closed. From here on it gets no keys, and those it has stop working.
2. Its keys are revoked and its prompts removed.
3. Its sessions go with their messages and responses, then the responses that are in no session,
   however short they live. What is in flight is cancelled. The workers drop what is cached of it,
   see `access_watch.py`.
4. It is taken out of the list of tenants.

What was counted of it as usage stays until it runs out, since it may have to be paid for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from chatserve.engine.api import DEFAULT_TENANT, RequestId
from chatserve.identity import Owner
from chatserve.store.connection import Store

_PIECE = 50


@dataclass(frozen=True, slots=True)
class Removed:
    """How much was removed with a tenant."""

    num_keys: int
    num_prompts: int
    num_sessions: int
    num_responses: int


async def remove_tenant(store: Store, name: str) -> Removed | None:
    """Remove a tenant and all that belongs to it; None when there is no such tenant.

    What a request that was under way stored after an earlier removal goes all the same.
    """
    if not await store.tenants.close(name):
        # What is the default tenant's may be from before there were any.
        if name != DEFAULT_TENANT:
            await _erase_sessions(store, name)
            await _erase_responses(store, name)
        return None
    removed = Removed(
        num_keys=await _revoke_keys(store, name),
        num_prompts=await _remove_prompts(store, name),
        num_sessions=await _erase_sessions(store, name),
        num_responses=await _erase_responses(store, name),
    )
    await store.tenants.forget(name)
    return removed


async def _revoke_keys(store: Store, tenant: str) -> int:
    num_revoked = 0
    while keys := await store.api_keys.list(_PIECE, tenant=tenant):
        for key in keys:
            num_revoked += await store.api_keys.revoke(key.key_id)
    return num_revoked


async def _remove_prompts(store: Store, tenant: str) -> int:
    prompts = await store.prompts.list(tenant)
    return sum([await store.prompts.remove(tenant, prompt.name) for prompt in prompts])


async def _erase_sessions(store: Store, tenant: str) -> int:
    num_erased = 0
    while users := await store.tenant_contents.users(tenant, _PIECE):
        for user in users:
            for archived in (False, True):
                num_erased += await _erase_list(store, Owner(tenant, user), archived=archived)
        await store.tenant_contents.drop_users(tenant, users)
    return num_erased


async def _erase_list(store: Store, owner: Owner, *, archived: bool) -> int:
    num_erased = 0
    while sessions := await store.sessions.list(owner, _PIECE, archived=archived):
        for session in sessions:
            deleted = await store.sessions.delete(session.session_id)
            if deleted is not None:
                num_erased += 1
                await _cancel(store, deleted.active_response_ids)
    return num_erased


async def _erase_responses(store: Store, tenant: str) -> int:
    num_erased = 0
    while response_ids := await store.tenant_contents.responses(tenant, _PIECE):
        await _cancel(store, response_ids)
        for response_id in response_ids:
            num_erased += await store.responses.delete(response_id)
        await store.tenant_contents.drop_responses(tenant, response_ids)
    return num_erased


async def _cancel(store: Store, response_ids: Iterable[RequestId]) -> None:
    """End answers that may be in flight; one that has ended already is none to complain of."""
    for response_id in response_ids:
        await store.queue.cancel(response_id)
