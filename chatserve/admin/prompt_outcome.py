"""Waiting until the workers have made something of a prompt that has just changed.

Owns how long that takes, what is shown meanwhile, and the exit code that it comes to.
"""

import asyncio
from typing import TextIO

from chatserve.admin.output import Console, write_lines
from chatserve.admin.prompt_words import in_words, title_of
from chatserve.errors import Conflict
from chatserve.store.connection import Store
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompt_reports import PromptReport, read_reports

_POLL_S = 0.1

EXIT_NOT_KEPT = 1


async def outcome_of(store: Store, prompt: NamedPrompt, console: Console, wait_s: float) -> int:
    """Tell what every worker has made of a prompt, and return the exit code."""
    report = await _wait_for_workers(store, prompt, console.progress, wait_s)
    if not report.workers:
        write_lines(console.out, ["no worker is running; the first to start computes it"])
    write_lines(console.out, in_words(report))
    if not all(worker.is_final for worker in report.workers):
        write_lines(console.progress, [f"not every worker has computed it within {wait_s:g} s"])
        return EXIT_NOT_KEPT
    return EXIT_NOT_KEPT if any(worker.is_refusal for worker in report.workers) else 0


async def _wait_for_workers(
    store: Store, prompt: NamedPrompt, progress: TextIO, wait_s: float
) -> PromptReport:
    """Return what every live worker has made of a prompt, or what it says when the time is up.

    Raises:
        Conflict: The prompt was removed or replaced meanwhile.
    """
    clock = asyncio.get_running_loop().time
    deadline, shown = clock() + wait_s, [""]
    while True:
        current = await store.prompts.get(prompt.tenant, prompt.name)
        if current is None or current.revision != prompt.revision:
            what = "removed" if current is None else "replaced"
            raise Conflict(f"{title_of(prompt)} was {what} while its workers computed it")
        (report,) = await read_reports(store, [prompt])
        if all(worker.is_final for worker in report.workers) or clock() > deadline:
            return report
        lines = in_words(report)
        if lines != shown:
            write_lines(progress, lines)
            shown = lines
        await asyncio.sleep(_POLL_S)
