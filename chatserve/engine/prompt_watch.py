"""Keeps an engine's prefixes equal to the registry of prompts, and tells what became of each.

Owns the way from a registered text to the token ids that an engine keeps, and from the engine's
news to the statuses in the store. Knows no pages, and decides nothing about a prompt but whether
this model can have it at all.

    registry ──> follow: read, render in a thread ──> engine.keep_exactly
                                                            │ reports
    store <── publish: write, renew <── statuses <── take ──┘

Both loops may fail at any await and are then repeated by their caller. `follow` compares with what
the engine was told last, `publish` forgets nothing before it is written; so a store that was away
costs time and nothing else.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

from chatserve.engine.api import KeptPrefix, ModelCard, PrefixReport, PrefixState
from chatserve.engine.engine_thread import EngineThread
from chatserve.errors import ClientError, ModelError
from chatserve.store.connection import Store
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompt_news import PromptStatus
from chatserve.text.prompt import PromptEncoder
from chatserve.text.system_prompt import leading_ids_of_preamble, leading_ids_of_prompt
from chatserve.wording import counted

logger = logging.getLogger(__name__)

_RELOAD_MS = 10_000
"""How often the registry is read without a bell, which a store that lost its last second needs."""

_WRITE_EVERY_S = 0.05
"""Statuses that change meanwhile are written together."""


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A registered prompt as this model has it: the prefix to keep, or why there is none."""

    prompt: NamedPrompt
    prefix: KeptPrefix | None
    refusal: str | None = None


class _Rendering(NamedTuple):
    """What the ids of a registered text depend on, besides the model."""

    text: str
    preamble: str | None
    is_preamble: bool
    today: date


class _Seen(NamedTuple):
    """What the engine's prefixes depend on; `bounds` are the tenants' quotas of pinned pages."""

    prompts: list[NamedPrompt]
    bounds: dict[str, int]
    today: date


class PromptWatch:
    """The registered prompts of one worker.

    Owns: what the engine was told to keep, and the status of each prompt.
    Used from: the event loop.

    Args:
        renew_s: How often statuses that do not change are renewed.
        ttl_ms: How long they last without it: no longer than the worker's other signs of life.
    """

    def __init__(
        self,
        store: Store,
        engine: EngineThread,
        card: ModelCard,
        worker_id: str,
        *,
        renew_s: float,
        ttl_ms: int,
    ):
        self._prompts = store.prompts
        self._tenants = store.tenants
        self._news = store.prompt_news
        self._engine = engine
        self._card = card
        self._worker_id = worker_id
        self._renew_s = renew_s
        self._ttl_ms = ttl_ms
        self._encoder: PromptEncoder | None = None
        self._rendered: dict[_Rendering, tuple[int, ...] | str] = {}
        self._is_stopped = False
        self._cursor = "0-0"
        self._seen: _Seen | None = None
        self._kept: dict[KeptPrefix, NamedPrompt] = {}
        self._statuses: dict[tuple[str, str], PromptStatus] = {}
        self._written: list[PromptStatus] | None = None
        self._changed = asyncio.Event()

    @property
    def bodies(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """What is to be repeated for ever, by the name of its task."""
        return {"prompts": self._follow, "prompt news": self._publish}

    def take(self, reports: Iterable[PrefixReport]) -> None:
        """Take in the engine's news; that of a prefix which was replaced meanwhile is void."""
        for report in reports:
            prompt = self._kept.get(report.prefix)
            if prompt is not None:
                _log(report)
                self._set_status(_status_of(prompt, report))

    async def _follow(self) -> None:
        """Have the engine keep what is registered, then wait until that may have changed."""
        prompts = await self._prompts.list()
        seen = _Seen(prompts, await self._bounds(prompts), date.today())
        # A template may write the date: then other ids lead its prompts from midnight on.
        if seen != self._seen:
            try:
                self._keep(await asyncio.to_thread(self._render, seen))
            except asyncio.CancelledError:
                self._is_stopped = True  # the thread goes on, and the process would wait for it
                raise
            self._seen = seen
        self._cursor = await self._prompts.wait_for_change(self._cursor, _RELOAD_MS)

    async def _bounds(self, prompts: Sequence[NamedPrompt]) -> dict[str, int]:
        """Return how many pages tenants may pin, those of them that have a quota."""
        quotas = await self._tenants.quotas_of({prompt.tenant for prompt in prompts})
        found = {tenant: each.pinned_pages for tenant, each in quotas.items()}
        return {tenant: pages for tenant, pages in found.items() if pages is not None}

    def _render(self, seen: _Seen) -> list[RenderedPrompt]:
        """Return the prompts as this model has them, the first to be registered first.

        What has been rendered before is not rendered again: a prompt of the largest size takes half
        a second.
        """
        prompts = sorted(seen.prompts, key=lambda prompt: prompt.created_at)
        if not prompts:
            return []
        try:
            self._encoder = self._encoder or PromptEncoder(self._card)
        except ModelError as error:
            return [RenderedPrompt(prompt, None, str(error)) for prompt in prompts]
        preamble = next((prompt.text for prompt in prompts if prompt.is_preamble), None)
        before, self._rendered = self._rendered, {}
        rendered: list[RenderedPrompt] = []
        for prompt in prompts:
            if self._is_stopped:
                break
            made = _Rendering(prompt.text, preamble, prompt.is_preamble, seen.today)
            ids = before.get(made) or self._rendered.get(made) or _render(self._encoder, made)
            self._rendered[made] = ids
            rendered.append(_kept(prompt, ids, seen.bounds.get(prompt.tenant)))
        return rendered

    def _keep(self, rendered: Sequence[RenderedPrompt]) -> None:
        """Tell the engine, and what is known of each prompt before the engine has spoken.

        1. What this model cannot have is refused here.
        2. A prefix that the engine had refused and that was added anew is tried again, since there
           may be room now: it is taken off the list and put back.
        3. Of any other that was kept before there will be no news, so the old ones hold.
        """
        kept = {each.prefix: each.prompt for each in rendered if each.prefix is not None}
        statuses, self._statuses = self._statuses, {}
        retried: set[KeptPrefix] = set()
        for each in rendered:
            prompt, known = each.prompt, statuses.get((each.prompt.tenant, each.prompt.name))
            if each.prefix is None:  # 1
                self._set_status(_refused(prompt, each.refusal))
            elif known is not None and each.prefix in self._kept:
                was_refused = known.state is PrefixState.REFUSED
                if was_refused and known.revision != prompt.revision:  # 2
                    retried.add(each.prefix)
                else:  # 3
                    self._set_status(replace(known, revision=prompt.revision))
        self._kept = kept
        self._changed.set()  # also when all are gone
        if retried:
            self._engine.keep_exactly([prefix for prefix in kept if prefix not in retried])
        self._engine.keep_exactly(list(kept))

    def _set_status(self, status: PromptStatus) -> None:
        self._statuses[status.tenant, status.name] = status
        self._changed.set()

    async def _publish(self) -> None:
        """Write the statuses if they have changed; else wait until they do, and renew them."""
        statuses = list(self._statuses.values())
        if statuses != self._written:
            await self._news.write(self._worker_id, statuses, self._ttl_ms)
            self._written = statuses
            await asyncio.sleep(_WRITE_EVERY_S)
            return
        self._changed.clear()
        try:
            async with asyncio.timeout(self._renew_s):
                await self._changed.wait()
        except TimeoutError:
            if not await self._news.keep(self._worker_id, self._ttl_ms):
                self._written = None


def _render(encoder: PromptEncoder, made: _Rendering) -> tuple[int, ...] | str:
    """Return the ids that lead every prompt with a text, or why there are none."""
    try:
        if made.is_preamble:
            token_ids = leading_ids_of_preamble(encoder, made.text)
        else:
            token_ids = leading_ids_of_prompt(encoder, made.preamble, made.text)
    except ClientError as error:
        return error.message
    return token_ids or "prompts of this model begin with nothing of it"


def _kept(
    prompt: NamedPrompt, rendered: tuple[int, ...] | str, tenant_pages: int | None
) -> RenderedPrompt:
    if isinstance(rendered, str):
        return RenderedPrompt(prompt, None, rendered)
    prefix = KeptPrefix(
        tenant=prompt.tenant,
        name=prompt.name,
        token_ids=rendered,
        is_pinned=prompt.is_pinned,
        priority=prompt.priority,
        ttl_s=prompt.ttl_s,
        tenant_pages=tenant_pages,
    )
    return RenderedPrompt(prompt, prefix)


def _status_of(prompt: NamedPrompt, report: PrefixReport) -> PromptStatus:
    return PromptStatus(
        tenant=prompt.tenant,
        name=prompt.name,
        revision=prompt.revision,
        state=report.state,
        at=int(time.time()),
        num_tokens=len(report.prefix.token_ids),
        num_pages=report.num_pages,
        is_restored=report.is_restored,
        reason=report.reason,
    )


def _refused(prompt: NamedPrompt, reason: str | None) -> PromptStatus:
    return PromptStatus(
        tenant=prompt.tenant,
        name=prompt.name,
        revision=prompt.revision,
        state=PrefixState.REFUSED,
        at=int(time.time()),
        reason=reason,
    )


def _log(report: PrefixReport) -> None:
    prefix = report.prefix
    origin = ", restored from disk" if report.is_restored else ""
    logger.info(
        "prompt %r of tenant %r is %s, %s in %s%s",
        prefix.name,
        prefix.tenant,
        report.state,
        counted(len(prefix.token_ids), "token"),
        counted(report.num_pages, "page"),
        origin,
    )
