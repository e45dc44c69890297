"""What the live workers say of registered prompts, in words.

Owns the join of registry, heartbeats and news, the words for each state, and the sentences about
it. Asks the store, changes nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from chatserve.engine.api import PrefixState
from chatserve.store.connection import Store
from chatserve.store.prompt_news import PromptStatus
from chatserve.store.prompts import NamedPrompt


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What one live worker says of a prompt; nothing yet where the status is None."""

    worker_id: str
    model: str
    status: PromptStatus | None

    @property
    def is_final(self) -> bool:
        return self.status is not None and self.status.state is not PrefixState.WARMING

    @property
    def is_refusal(self) -> bool:
        return self.status is not None and self.status.state is PrefixState.REFUSED


@dataclass(frozen=True, slots=True)
class PromptReport:
    """A prompt as it is registered now, and what each live worker says of it."""

    prompt: NamedPrompt
    workers: tuple[WorkerReport, ...]


async def read_reports(store: Store, prompts: Sequence[NamedPrompt]) -> list[PromptReport]:
    """Return a report for each prompt, in the order given."""
    beats = await store.workers.live()
    news = await store.prompt_news.read([beat.worker_id for beat in beats])
    known = {
        (worker_id, status.tenant, status.name, status.revision): status
        for worker_id, statuses in news.items()
        for status in statuses
    }

    def report(prompt: NamedPrompt) -> PromptReport:
        key = (prompt.tenant, prompt.name, prompt.revision)
        said = ((beat, known.get((beat.worker_id, *key))) for beat in beats)
        return PromptReport(
            prompt, tuple(WorkerReport(beat.worker_id, beat.model, each) for beat, each in said)
        )

    return [report(prompt) for prompt in prompts]


def title_of(prompt: NamedPrompt) -> str:
    """Return how messages name a prompt."""
    return "the preamble" if prompt.is_preamble else f"{prompt.name!r} of tenant {prompt.tenant!r}"


def in_words(report: PromptReport) -> list[str]:
    """Return a line for each model and state, with the number of workers if there are several."""
    prompt = report.prompt
    counts = Counter((each.model, _sentence(prompt, each.status)) for each in report.workers)
    return [
        f"{model}: {sentence}" + (f" ({count} workers)" if count > 1 else "")
        for (model, sentence), count in counts.items()
    ]


def state_of(prompt: NamedPrompt, status: PromptStatus | None) -> str:
    """Return the word for what a worker has made of a prompt; a refusal denies what was asked."""
    if status is None:
        return "not heard of yet"
    if status.state is not PrefixState.REFUSED:
        return status.state
    return "not pinned" if prompt.is_pinned else "not cached"


def reason_of(prompt: NamedPrompt, status: PromptStatus | None) -> str:
    """Return the reason of a refusal, fit for a terminal: a model's template may have written it.

    Empty for whatever is no refusal.
    """
    if status is None or not status.reason:
        return ""
    reason = "".join(each if each.isprintable() else " " for each in status.reason)
    return f"in force, but not kept computed: {reason}" if prompt.is_preamble else reason


def _sentence(prompt: NamedPrompt, status: PromptStatus | None) -> str:
    state, reason = state_of(prompt, status), reason_of(prompt, status)
    if status is None:
        return state
    if status.state is PrefixState.REFUSED:
        return f"{state}{';' if prompt.is_preamble else ':'} {reason}"
    pages = "page" if status.num_pages == 1 else "pages"
    origin = ", restored from disk" if status.is_restored else ""
    return f"{state}, {status.num_tokens} tokens in {status.num_pages} {pages}{origin}"
