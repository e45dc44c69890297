"""`chatserve tenant` and `chatserve key` on a real store."""

import io
import json
import time
from typing import Any

import pytest

from chatserve.admin.key_command import run_key_command
from chatserve.admin.key_config import KeyConfig
from chatserve.admin.output import Console
from chatserve.admin.table import moment_of
from chatserve.admin.tenant_command import run_tenant_command
from chatserve.admin.tenant_config import TenantConfig
from chatserve.command_line import load_config
from chatserve.engine.api import EngineStats
from chatserve.errors import ConfigError, Conflict, NotFound
from chatserve.gateway.ids import new_id
from chatserve.identity import LOCAL
from chatserve.store import keys
from chatserve.store.api_keys import ApiKey, parse_secret
from chatserve.store.connection import Store
from chatserve.store.tenants import Quotas, Tenant
from chatserve.store.workers import WorkerBeat


class Shell:
    """Runs commands on one store and returns what they print."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.notes = ""

    async def run(self, line: str) -> str:
        """Return what a command prints that succeeds, and keep its notes."""
        code, printed = await self.answered(line, None)
        assert code == 0
        return printed

    async def answered(self, line: str, answer: str | None) -> tuple[int, str]:
        """Return exit code and output of a command, with somebody there to answer it or not."""
        out, notes = io.StringIO(), io.StringIO()
        config = load_config([*line.split(), "--redis-url", self._url], {})
        if isinstance(config, TenantConfig):
            answers = None if answer is None else io.StringIO(answer)
            code = await run_tenant_command(config, Console(out, notes, answers))
        else:
            assert isinstance(config, KeyConfig)
            code = await run_key_command(config, out)
        self.notes = notes.getvalue()
        return code, out.getvalue()

    async def json(self, line: str) -> Any:
        return json.loads(await self.run(f"{line} --json"))


@pytest.fixture
def shell(server_url: str) -> Shell:
    return Shell(server_url)


async def test_a_tenant_is_added_with_quotas_and_models(store: Store, shell: Shell) -> None:
    printed = await shell.run(
        "tenant add acme --requests-per-minute 6000 --connections 0 --models tiny,large"
    )

    tenant = await store.tenants.get("acme")
    assert tenant is not None
    assert tenant.quotas == Quotas(requests_per_minute=6000, connections=0)
    assert tenant.models == ("tiny", "large")
    assert printed.splitlines()[0] == "TENANT  SINCE       MODELS      QUOTAS"
    assert printed.endswith("  tiny,large  requests per minute 6,000, connections 0\n")


async def test_set_changes_what_is_given_and_takes_away_what_is_none(
    store: Store, shell: Shell
) -> None:
    await shell.run("tenant add acme --connections 5 --tokens-per-minute 9 --models tiny")

    document = await shell.json("tenant set acme --connections none --parallel-responses 2")
    everything = await shell.json("tenant set acme --models all")

    assert document["quotas"] == {"tokens_per_minute": 9, "parallel_responses": 2}
    assert document["models"] == ["tiny"]
    assert everything["models"] == []


async def test_adding_a_tenant_twice_says_that_there_is_one_already(
    store: Store, shell: Shell
) -> None:
    await store.tenants.add(Tenant("acme"))

    with pytest.raises(Conflict, match="there is a tenant 'acme' already"):
        await shell.run("tenant add acme")


async def test_list_has_a_line_for_each_tenant(store: Store, shell: Shell) -> None:
    for name in ("b", "a"):
        await store.tenants.add(Tenant(name))
    await store.tenants.close("b")

    lines = (await shell.run("tenant list")).splitlines()

    assert [line.partition("  ")[0] for line in lines] == ["TENANT", "a", "b (being removed)"]
    assert [each["name"] for each in await shell.json("tenant")] == ["a", "b"]


async def test_remove_tells_what_went(store: Store, shell: Shell) -> None:
    await shell.run("tenant add acme")
    await shell.run("key add --tenant acme --user bob")

    printed = await shell.run("tenant remove acme --yes")

    assert printed == (
        "removed tenant 'acme': 1 key, 0 prompts, 0 conversations, 0 other responses\n"
    )
    assert not await store.tenants.any()
    with pytest.raises(NotFound, match="no tenant 'acme'"):
        await shell.run("tenant remove acme --yes")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
async def test_a_removal_is_asked_for_once_more(
    store: Store, shell: Shell, answer: str, code: int
) -> None:
    await store.tenants.add(Tenant("acme"))

    ended, _ = await shell.answered("tenant remove acme", answer)

    assert ended == code
    assert await store.tenants.any() == (code != 0)
    assert "for good? [y/N]" in shell.notes


async def test_a_script_confirms_a_removal_by_a_flag(store: Store, shell: Shell) -> None:
    await store.tenants.add(Tenant("acme"))

    with pytest.raises(ConfigError, match="--yes"):
        await shell.run("tenant remove acme")

    assert await store.tenants.any()


async def test_the_first_tenant_is_told_what_it_ends(store: Store, shell: Shell) -> None:
    await store.probe()

    await shell.run("tenant add acme")
    first = shell.notes
    await shell.run("tenant add zeta")

    assert "chatserve key add --tenant acme --user NAME --role operator" in first
    assert shell.notes == ""


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        (
            "acme",
            ["chatserve tenant add default", "chatserve key add --tenant default --user local"],
        ),
        ("default", ["chatserve key add --tenant default --user local"]),
    ],
)
async def test_the_first_tenant_is_told_how_earlier_conversations_are_reached(
    store: Store, shell: Shell, name: str, commands: list[str]
) -> None:
    await store.probe()
    await store.sessions.create(LOCAL.owner, new_id("conv_", LOCAL.tenant))

    await shell.run(f"tenant add {name}")
    lines = [line.strip() for line in shell.notes.splitlines()]
    told = lines[
        lines.index("'default', where no other key finds them. For a key that opens them:") + 1 :
    ]
    for command in told:
        await shell.run(command.removeprefix("chatserve "))

    assert told == commands
    assert [key.user for key in await store.api_keys.list(9, tenant="default")] == ["local"]


async def test_without_conversations_nothing_is_said_of_them(store: Store, shell: Shell) -> None:
    await store.probe()

    await shell.run("tenant add acme")

    assert "conversations" not in shell.notes


async def test_models_that_nobody_serves_are_told(store: Store, shell: Shell) -> None:
    beat = WorkerBeat("w", "tiny", "none", "1.0", EngineStats())
    assert not await store.workers.heartbeat(beat, ttl_ms=60_000)
    await shell.run("tenant add acme --models tiny")
    without = shell.notes

    await shell.run("tenant set acme --models tiny,tinny")

    assert "note" not in without
    assert shell.notes == "note: nobody serves 'tinny' now; served: tiny\n"


async def test_the_secret_of_a_new_key_stands_alone_when_it_is_wanted_so(
    store: Store, shell: Shell
) -> None:
    await shell.run("tenant add acme")

    printed = await shell.run("key add --tenant acme --user bob --expires 90d --quiet")

    grant = parse_secret(printed.removesuffix("\n"))
    assert grant is not None
    valid = await store.api_keys.check(grant)
    assert valid is not None
    assert valid.valid_until is not None
    assert abs(valid.valid_until - time.time() - 90 * 24 * 3600) < 60


async def test_a_new_key_is_shown_with_its_secret_and_listed_without(
    store: Store, shell: Shell
) -> None:
    await shell.run("tenant add acme")

    printed = await shell.run("key add --tenant acme --user bob --role operator --connections 2")
    listed = await shell.run("key list")
    shown = await shell.json(f"key show {listed.splitlines()[1].split()[0]}")

    secret = printed.splitlines()[-1].strip()
    assert parse_secret(secret) is not None
    assert printed.splitlines()[:2] == listed.splitlines()
    assert "csk_" not in listed
    assert (shown["user"], shown["role"], shown["quotas"]) == (
        "bob",
        "operator",
        {"connections": 2},
    )
    assert not {"secret", "digest"} & set(shown)


async def test_a_key_is_rotated_and_revoked(store: Store, shell: Shell) -> None:
    await shell.run("tenant add acme")
    added = await shell.json("key add --tenant acme --user bob")

    rotated = await shell.json(f"key rotate {added['key_id']} --grace 1h")
    revoked = await shell.run(f"key revoke {added['key_id']}")

    assert rotated["secret"] != added["secret"]
    until = rotated["old_secret_until"]
    assert abs(until - time.time() - 3600) < 60
    assert {**rotated, "secret": ""} == {**added, "secret": "", "old_secret_until": until}
    assert revoked == f"revoked key {added['key_id']}\n"
    assert await store.api_keys.list(10) == []


async def test_set_changes_of_a_key_what_is_given(store: Store, shell: Shell) -> None:
    await shell.run("tenant add acme")
    added = await shell.json(
        "key add --tenant acme --user bob --connections 2 --tokens-per-minute 9 --expires 1h"
    )
    key_id = added["key_id"]

    first = await shell.json(
        f"key set {key_id} --connections none --label laptop --role operator --expires 90d"
    )
    second = await shell.json(f"key set {key_id} --expires never")

    assert abs(first["expires_at"] - time.time() - 90 * 24 * 3600) < 60
    assert (first["quotas"], first["label"], first["role"]) == (
        {"tokens_per_minute": 9},
        "laptop",
        "operator",
    )
    assert second == {**first, "expires_at": None}


async def test_the_end_of_a_key_and_of_its_old_secret_are_shown_to_the_minute(
    store: Store, shell: Shell
) -> None:
    """There used to be the day alone, and nothing of an old secret that still works."""
    await shell.run("tenant add acme")
    added = await shell.json("key add --tenant acme --user bob --expires 1h")
    key_id = added["key_id"]
    rotated = await shell.json(f"key rotate {key_id} --grace 30m")

    before = await shell.run(f"key show {key_id}")
    name = keys.GLOBAL.key(keys.API_KEY + key_id)
    gone_at = int(time.time()) - 60
    await store.commands.call("HSET", name, "expires_at", gone_at)
    after = await shell.run("key list")

    assert moment_of(added["expires_at"]) in before
    assert moment_of(rotated["old_secret_until"]) in before
    assert f"{moment_of(gone_at)}, expired" in after
    with pytest.raises(Conflict, match="has expired"):
        await shell.run(f"key rotate {key_id}")


async def test_list_shows_the_keys_of_one_tenant_or_of_all(store: Store, shell: Shell) -> None:
    for tenant in ("acme", "zeta"):
        await store.tenants.add(Tenant(tenant))
        await store.api_keys.add(ApiKey("", tenant, "bob"))

    ours = await shell.json("key list --tenant acme")
    everybody = await shell.json("key")

    assert [key["tenant"] for key in ours] == ["acme"]
    assert [key["tenant"] for key in everybody] == ["acme", "zeta"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("tenant add a/b", ConfigError),
        ("tenant show unknown", NotFound),
        ("tenant set unknown --connections 1", NotFound),
        ("tenant add acme", Conflict),
        ("key add --tenant unknown --user bob", NotFound),
        ("key add --tenant acme --user b/b", ConfigError),
        ("key list --tenant unknown", NotFound),
        ("key show unknown", NotFound),
        ("key rotate unknown", NotFound),
        ("key revoke unknown", NotFound),
        ("key set unknown --label x", NotFound),
    ],
)
async def test_what_cannot_be_done_is_one_error(
    store: Store, shell: Shell, line: str, error: type[Exception]
) -> None:
    await store.tenants.add(Tenant("acme"))

    with pytest.raises(error):
        await shell.run(line)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("tenant add", "tenant add: name a tenant"),
        ("tenant list --connections 1", "--connections is not for `tenant list`"),
        ("tenant list acme", "`tenant list` takes no name"),
        ("tenant add acme --connections some", "expected a whole number or none"),
        ("tenant add acme --connections -1", "must be from 0 to"),
        ("tenant drop acme", "must be one of list, add, show, set, remove"),
        ("key add --tenant acme", "--tenant and --user"),
        ("tenant set acme", "say what is to change, by any of --models"),
        ("key set k", "say what is to change, by any of --role, --label, --expires"),
        ("key set k --tenant acme --label x", "--tenant is not for `key set`"),
        ("key rotate", "name a key by its id"),
        ("key rotate k --expires 1d", "--expires is not for `key rotate`"),
        ("key add --tenant a --user b --expires 3", "such as 90d"),
        ("key add --tenant a --user b --expires 0d", "must be from 1s to 36500d"),
        ("key add --tenant a --user b --quiet --json", "give one of them"),
        ("key add --tenant a --user b --role root", "must be one of member, operator"),
    ],
)
def test_a_command_that_makes_no_sense_is_told_in_one_line(line: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as refusal:
        load_config(line.split(), {})

    assert "\n" not in str(refusal.value)
