"""`chatserve usage`: what tenants and their users have used.

Owns whose rows are read and how they are printed. They are counted in the store. Those of a tenant
that was removed count like any others: they may have to be paid for.
"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TextIO

from chatserve.admin.output import write_text
from chatserve.admin.store_access import known_tenant, service_store
from chatserve.admin.table import as_table
from chatserve.admin.usage_config import UsageConfig
from chatserve.engine.api import DEFAULT_TENANT
from chatserve.store.codec import dump_json
from chatserve.store.connection import Store
from chatserve.store.usage import UsageRow, Used
from chatserve.store.usage_report import UsageGroup, UsageReport, report_of

_HEADINGS = ("REQUESTS", "INPUT", "CACHED", "OUTPUT")
_TOTAL = "total"


async def run_usage_command(config: UsageConfig, out: TextIO) -> int:
    """Print what was asked for and return the exit code.

    Raises:
        NotFound: There is no such tenant, and nothing is counted of one.
        StoreError: The store does not answer.
        OutputError: The output cannot be written.
    """
    async with service_store(config.redis_url, config.data_dir) as store:
        report = report_of(await _rows(store, config), UsageGroup(config.group))
    if config.as_json:
        write_text(out, _as_json(report, config.group))
    else:
        rows = [_cells(name, used) for name, used in (*report.sums, (_TOTAL, report.total))]
        write_text(out, as_table((config.group.upper(), *_HEADINGS), rows))
    return 0


async def _rows(store: Store, config: UsageConfig) -> list[UsageRow]:
    last = datetime.now(UTC).date()
    first = last - timedelta(days=config.days - 1)
    rows: list[UsageRow] = []
    for tenant in await _tenants(store, config.tenant):
        rows += await store.usage.read(tenant, first, last)
    return rows


async def _tenants(store: Store, named: str | None) -> list[str]:
    """Return the tenant that was named, or all that have used anything."""
    if named is None:
        return await store.usage.tenants()
    if named != DEFAULT_TENANT and not await store.usage.knows(named):
        await known_tenant(store, named)
    return [named]


def _as_json(report: UsageReport, group: str) -> str:
    sums = [{group: name, **asdict(used)} for name, used in report.sums]
    return dump_json({"data": sums, "total": asdict(report.total)}) + "\n"


def _cells(name: str, used: Used) -> tuple[str, ...]:
    counts = (used.requests, used.input_tokens, used.cached_tokens, used.output_tokens)
    return (name, *(f"{count:,}" for count in counts))
