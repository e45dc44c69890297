"""The endpoints of registered prompts, for operators and for members."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from engine.prompt_helpers import PinningEngine, status_of
from gateway.callers import Callers, run_for_callers
from gateway.gateway_helpers import WorkerSettings

from chatserve.store.embedded import EmbeddedServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = "/v1/chatserve/prompts"
TEXT = "You help {{name}} in {{city}}."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers(store_server: EmbeddedServer) -> AsyncIterator[Callers]:
    """A service that every test uses with prompts of names of its own."""
    url = store_server.url.replace("db=0", "db=3")
    worker = WorkerSettings(engine=PinningEngine(tenant_pinned_pages=16))
    async with run_for_callers(url, worker=worker) as callers:
        yield callers


async def add(callers: Callers, name: str, text: str = TEXT, **members: Any) -> dict[str, Any]:
    """Let the operator register a prompt of the tenant acme, and return its object."""
    members = {"tenant": "acme", "variables": {}, **members}
    added: dict[str, Any] = await callers.post(
        ALL, callers.operator, name=name, text=text, **members
    )
    return added


async def settled(callers: Callers, *names: str) -> None:
    """Return once the worker has made something of prompts of the tenant acme."""
    for name in names:
        current = await callers.service.store.prompts.get("acme", name)
        assert current is not None
        await status_of(callers.service.store, current, "worker-1")


async def versions(callers: Callers, name: str) -> list[tuple[int, bool]]:
    listed = await callers.get(f"{ALL}/{name}/versions", callers.acme)
    return [(each["version"], each["is_current"]) for each in listed["data"]]


# ── For operators ────────────────────────────────────────────────────────────────────────────


async def test_an_operator_registers_a_prompt_of_any_tenant(callers: Callers) -> None:
    settings: dict[str, Any] = {
        "tenant": "zeta",
        "variables": {"city": "Rome"},
        "is_pinned": False,
        "ttl_s": 60,
    }

    added = await add(callers, "new", **settings)

    read = await callers.get(f"{ALL}/new?tenant=zeta", callers.operator)
    for told in (added, read):
        del told["workers"], told["created_at"]
    assert read == added
    assert read == {
        "object": "chatserve.prompt",
        "tenant": "zeta",
        "name": "new",
        "version": 1,
        "is_current": True,
        "num_bytes": len(TEXT),
        "excerpt": TEXT,
        "variables": [{"name": "name", "default": None}, {"name": "city", "default": "Rome"}],
        "is_pinned": False,
        "priority": 0,
        "ttl_s": 60.0,
        "text": TEXT,
    }


async def test_an_operator_is_told_what_each_worker_made_of_a_prompt(callers: Callers) -> None:
    await add(callers, "short", "Hi.")
    await add(callers, "endless", "x" * 800)
    await settled(callers, "short", "endless")

    short = await callers.get(f"{ALL}/short?tenant=acme", callers.operator)
    endless = await callers.get(f"{ALL}/endless?tenant=acme", callers.operator)

    (pinned,), (refused,) = short["workers"], endless["workers"]
    assert (pinned["worker_id"], pinned["model"], pinned["state"]) == ("worker-1", "echo", "pinned")
    assert (pinned["num_tokens"], pinned["num_pages"]) == (19, 2)
    assert refused["state"] == "refused"
    assert "that a tenant may pin" in refused["reason"]


async def test_a_second_text_is_a_second_version_and_the_first_can_be_brought_back(
    callers: Callers,
) -> None:
    await add(callers, "twice", "one")
    second = await add(callers, "twice", "two")

    path = f"{ALL}/twice/activate?tenant=acme"
    back = await callers.post(path, callers.operator, version=1)

    assert second["version"] == 2
    assert (back["version"], back["text"]) == (1, "one")
    assert await versions(callers, "twice") == [(1, True), (2, False)]
    older = await callers.get(f"{ALL}/twice?tenant=acme&version=2", callers.operator)
    assert (older["text"], older["is_current"], older["workers"]) == ("two", False, [])


async def test_pinning_is_changed_without_a_new_version(callers: Callers) -> None:
    await add(callers, "loose")
    path = f"{ALL}/loose?tenant=acme"

    unpinned = await callers.post(path, callers.operator, is_pinned=False, priority=3)
    pinned = await callers.post(path, callers.operator, is_pinned=True)

    assert (unpinned["is_pinned"], unpinned["priority"]) == (False, 3)
    assert (pinned["is_pinned"], pinned["priority"]) == (True, 3)
    assert await versions(callers, "loose") == [(1, True)]


async def test_a_version_is_deleted_and_then_the_whole_prompt(callers: Callers) -> None:
    await add(callers, "gone", "one")
    await add(callers, "gone", "two")
    path = f"{ALL}/gone?tenant=acme"
    http = callers.service.http

    in_use = await callers.refusal("DELETE", f"{path}&version=2", callers.operator)
    one = await http.delete(f"{path}&version=1", headers=callers.operator)
    left = await versions(callers, "gone")
    everything = await http.delete(path, headers=callers.operator)
    missing = await callers.refusal("GET", path, callers.operator)

    assert (in_use[0], in_use[1]["code"]) == (409, "version_in_use")
    assert one.json() == {
        "object": "chatserve.prompt.deleted",
        "name": "gone",
        "version": 1,
        "deleted": True,
    }
    assert left == [(2, True)]
    assert everything.json()["version"] is None
    assert (missing[0], missing[1]["code"]) == (404, "prompt_not_found")


async def test_a_change_holds_for_the_next_request_at_this_gateway(callers: Callers) -> None:
    await add(callers, "fresh", "Hi.")

    before = await callers.get("/v1/models", callers.acme)
    await callers.service.http.delete(f"{ALL}/fresh?tenant=acme", headers=callers.operator)
    after = await callers.get("/v1/models", callers.acme)

    assert "echo:fresh" in [model["id"] for model in before["data"]]
    assert "echo:fresh" not in [model["id"] for model in after["data"]]


async def test_the_preamble_is_the_public_prompt(callers: Callers) -> None:
    body = {"text": "Be kind.", "is_public": True}

    added = await callers.post(ALL, callers.operator, **body)
    read = await callers.get(f"{ALL}/preamble?public=true", callers.operator)
    listed = await callers.get(f"{ALL}?public=true", callers.operator)
    in_force = callers.service.services.prompts.preamble
    await callers.service.http.delete(f"{ALL}/preamble?public=true", headers=callers.operator)

    assert (added["name"], added["tenant"], in_force) == ("preamble", None, "Be kind.")
    assert read["text"] == "Be kind."
    assert [each["name"] for each in listed["data"]] == ["preamble"]
    assert callers.service.services.prompts.preamble is None


async def test_operators_list_all_tenants_or_one(callers: Callers) -> None:
    await add(callers, "listed", tenant="acme")
    await add(callers, "listed", tenant="zeta")

    everybody = await callers.get(ALL, callers.operator)
    one = await callers.get(f"{ALL}?tenant=zeta", callers.operator)

    owners = [each["tenant"] for each in everybody["data"] if each["name"] == "listed"]
    assert owners == ["acme", "zeta"]
    assert {each["tenant"] for each in one["data"]} == {"zeta"}
    assert "listed" in [each["name"] for each in one["data"]]
    assert all("text" not in each for each in everybody["data"])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"name": "a/b", "text": "x"}, "name"),
        ({"text": "x"}, "name"),
        ({"name": "ok"}, "text"),
        ({"name": "ok", "text": ""}, "text"),
        ({"name": "ok", "text": "x", "tenant": "-"}, "tenant"),
        ({"name": "ok", "text": "x", "variables": {"a": "b"}}, "variables"),
        ({"name": "ok", "text": "{{a}}", "variables": {"a": 1}}, "variables.a"),
        ({"name": "ok", "text": "x", "priority": 1001}, "priority"),
        ({"name": "ok", "text": "x", "ttl_s": 5}, "ttl_s"),
        ({"name": "ok", "text": "x", "is_public": True}, "name"),
        ({"text": "x", "is_public": True, "tenant": "acme"}, None),
        ({"name": "ok", "text": "x", "tenant": ""}, "tenant"),
    ],
    ids=str,
)
async def test_what_cannot_be_registered_is_refused_by_field(
    callers: Callers, body: dict[str, Any], param: str | None
) -> None:
    status, error = await callers.refusal("POST", ALL, callers.operator, body)

    assert (status, error["param"]) == (400, param)


@pytest.mark.parametrize(
    ("method", "path", "body", "param"),
    [
        ("POST", ALL, {"name": "new", "text": "x", "public": True}, "public"),
        ("POST", f"{ALL}?tenant=zeta", {"name": "new", "text": "x"}, "tenant"),
        ("POST", f"{ALL}/told?tenant=acme", {"pinned": False}, "pinned"),
        ("POST", f"{ALL}/told/activate?tenant=acme", {"version": 1, "v": 2}, "v"),
        ("DELETE", f"{ALL}/told?tenant=acme&versions=1", None, "versions"),
        ("GET", f"{ALL}/told?tenant=acme&versions=1", None, "versions"),
        ("GET", f"{ALL}?tenants=zeta", None, "tenants"),
    ],
    ids=str,
)
async def test_a_name_that_nobody_knows_is_refused_and_changes_nothing(
    callers: Callers, method: str, path: str, body: dict[str, Any] | None, param: str
) -> None:
    """A misspelt `version` used to remove a prompt with all its versions."""
    await add(callers, "told", "x")

    status, error = await callers.refusal(method, path, callers.operator, body)

    assert (status, error["code"], error["param"]) == (400, "unknown_parameter", param)
    assert await callers.get(f"{ALL}/told?tenant=acme", callers.operator)
    assert await callers.service.store.prompts.get("acme", "new") is None


async def test_prompts_of_a_tenant_that_is_not_there_are_an_error(callers: Callers) -> None:
    status, error = await callers.refusal("GET", f"{ALL}?tenant=nobody", callers.operator)

    assert (status, error["code"], error["param"]) == (404, "tenant_not_found", "tenant")


# ── For members ──────────────────────────────────────────────────────────────────────────────


async def test_a_member_reads_the_prompts_of_their_tenant(callers: Callers) -> None:
    await add(callers, "mine", "one")
    await add(callers, "mine", "two")

    listed = await callers.get(ALL, callers.acme)
    older = await callers.get(f"{ALL}/mine?version=1", callers.acme)

    assert ("acme", "mine") in [(each["tenant"], each["name"]) for each in listed["data"]]
    assert {each["tenant"] for each in listed["data"]} == {"acme"}
    assert (older["text"], older["is_current"]) == ("one", False)


async def test_a_member_is_told_states_and_sizes_but_no_worker_and_no_reason(
    callers: Callers,
) -> None:
    await add(callers, "large", "x" * 800)
    await settled(callers, "large")

    read = await callers.get(f"{ALL}/large", callers.acme)

    (worker,) = read["workers"]
    assert set(worker) == {"model", "state", "num_tokens", "num_pages"}
    assert worker["state"] == "refused"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", ALL, {"name": "mine", "text": "x"}),
        ("POST", f"{ALL}/mine", {"is_pinned": False}),
        ("POST", f"{ALL}/mine/activate", {"version": 1}),
        ("DELETE", f"{ALL}/mine", None),
        ("DELETE", f"{ALL}/none", None),
    ],
)
async def test_a_member_changes_nothing(
    callers: Callers, method: str, path: str, body: dict[str, Any] | None
) -> None:
    await add(callers, "mine")
    before = await versions(callers, "mine")

    status, error = await callers.refusal(method, path, callers.acme, body)

    assert (status, error["code"]) == (403, "operator_only")
    assert await versions(callers, "mine") == before
