"""What the live workers say of registered prompts, in words.

Owns the join of registry, heartbeats and news, and the sentences about it. Asks the store, changes
nothing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
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


def in_words(workers: Iterable[WorkerReport]) -> list[str]:
    """Return a line for each model and state, with the number of workers if there are several."""
    counts = Counter((worker.model, _sentence(worker.status)) for worker in workers)
    return [
        f"{model}: {sentence}" + (f" ({count} workers)" if count > 1 else "")
        for (model, sentence), count in counts.items()
    ]


def reason_of(status: PromptStatus | None) -> str:
    """Return the reason of a refusal, fit for a terminal: a model's template may have written it.

    Empty for whatever is no refusal.
    """
    reason = "" if status is None else status.reason or ""
    return "".join(each if each.isprintable() else " " for each in reason)


def _sentence(status: PromptStatus | None) -> str:
    if status is None:
        return "not heard of yet"
    pages = "page" if status.num_pages == 1 else "pages"
    size = f"{status.num_tokens} tokens in {status.num_pages} {pages}"
    match status.state:
        case PrefixState.WARMING:
            return f"being computed, {size}"
        case PrefixState.PINNED:
            return f"pinned, {size}" + (", restored from disk" if status.is_restored else "")
        case PrefixState.CACHED:
            return f"computed, not pinned, {size}"
        case PrefixState.REFUSED:
            return f"refused: {reason_of(status)}"
