"""What the live workers say of registered prompts: the join of registry, heartbeats and news.

Asks the store, changes nothing. The words for it are chosen by whoever shows it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from chatserve.engine.api import PrefixState
from chatserve.store.connection import Store
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompt_news import PromptStatus


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
