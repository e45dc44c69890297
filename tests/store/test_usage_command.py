"""`chatserve usage` on a real store: whose sums, by what, as a table and as JSON."""

import io
import json
from pathlib import Path

import pytest
from store.limit_helpers import claim_all, end_of
from store.store_helpers import append, enqueue

from chatserve.admin.usage_command import run_usage_command
from chatserve.admin.usage_config import UsageConfig
from chatserve.command_line import load_config
from chatserve.errors import ConfigError, NotFound, StoreError
from chatserve.store.connection import Store
from chatserve.store.tenant_removal import remove_tenant
from chatserve.store.tenants import Tenant


async def usage(server_url: str, *argv: str) -> str:
    config = load_config(["usage", "--redis-url", server_url, *argv], {})
    assert isinstance(config, UsageConfig)
    out = io.StringIO()
    assert await run_usage_command(config, out) == 0
    return out.getvalue()


async def fill(store: Store) -> None:
    """Let two users of a tenant and one of the default tenant have answers."""
    await store.tenants.add(Tenant("org"))
    await enqueue(store, "a", "b", tenant="org", user="ann")
    await enqueue(store, "c", tenant="org", user="bob")
    await claim_all(store)
    await append(store, end_of("a", 1200), end_of("b", 34), end_of("c", 5))


async def test_table_has_a_row_for_each_tenant_and_the_total(store: Store, server_url: str) -> None:
    await fill(store)

    assert (await usage(server_url)).splitlines() == [
        "TENANT  REQUESTS  INPUT  CACHED  OUTPUT",
        "org     3         9      3       1,239",
        "total   3         9      3       1,239",
    ]


async def test_one_tenants_users(store: Store, server_url: str) -> None:
    await fill(store)

    lines = (await usage(server_url, "--tenant", "org", "--by", "user")).splitlines()

    assert [line.split()[:2] for line in lines] == [
        ["USER", "REQUESTS"],
        ["ann", "2"],
        ["bob", "1"],
        ["total", "3"],
    ]


async def test_json_is_for_programs(store: Store, server_url: str) -> None:
    await fill(store)

    report = json.loads(await usage(server_url, "--by", "model", "--days", "2", "--json"))

    sums = {"requests": 3, "input_tokens": 9, "cached_tokens": 3, "output_tokens": 1239}
    assert report == {"data": [{"model": "tiny", **sums}], "total": sums}


async def test_removed_tenants_stay_in_the_table_and_in_the_total(
    store: Store, server_url: str
) -> None:
    """They used to be there only where one asked for them by name."""
    await fill(store)
    before = await usage(server_url)

    await remove_tenant(store, "org")

    assert await usage(server_url) == before
    assert await usage(server_url, "--tenant", "org") == before


async def test_tenant_without_usage_has_an_empty_table(store: Store, server_url: str) -> None:
    await store.tenants.add(Tenant("idle"))

    lines = (await usage(server_url, "--tenant", "idle")).splitlines()

    assert [line.split()[0] for line in lines] == ["TENANT", "total"]


async def test_tenant_that_there_never_was_is_an_error(store: Store, server_url: str) -> None:
    await store.probe()

    with pytest.raises(NotFound, match="no tenant 'nobody'"):
        await usage(server_url, "--tenant", "nobody")


async def test_without_a_store_it_says_so(tmp_path: Path) -> None:
    config = load_config(["usage", "--data-dir", str(tmp_path)], {})
    assert isinstance(config, UsageConfig)

    with pytest.raises(StoreError, match="no `chatserve serve`"):
        await run_usage_command(config, io.StringIO())


@pytest.mark.parametrize("argv", [["--days", "0"], ["--days", "401"], ["--by", "hour"]])
def test_setting_that_makes_no_sense_is_refused(argv: list[str]) -> None:
    with pytest.raises(ConfigError):
        load_config(["usage", *argv], {})
