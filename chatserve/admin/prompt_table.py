"""The list of registered prompts, as a table for people and as JSON for programs.

Owns the layout. What the workers say is put in words by `prompt_words.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from chatserve.admin.prompt_words import reason_of, state_of
from chatserve.admin.table import NOTHING, aligned
from chatserve.store.codec import dump_json
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompt_reports import PromptReport, WorkerReport

_HEADINGS = ("TENANT", "NAME", "VERSION", "MODEL", "STATE", "TOKENS", "PAGES", "WORKERS")
_EVERYBODY = "(all)"


def as_table(reports: Iterable[PromptReport]) -> str:
    """Return a line for each prompt, model and state, and a refusal's reason below its line."""
    rows = [row for report in reports for row in _rows(report)]
    lines = aligned(_HEADINGS, [cells for cells, _ in rows])
    notes = ["", *(_note(reason) for _, reason in rows)]
    return "".join(f"{line}\n{note}" for line, note in zip(lines, notes, strict=True))


def as_json(reports: Iterable[PromptReport]) -> str:
    """Return all there is to know of the prompts but their texts, of which it tells the length."""
    documents = []
    for report in reports:
        document = asdict(report.prompt)
        document["num_bytes"] = len(document.pop("text").encode())
        document["workers"] = [asdict(worker) for worker in report.workers]
        documents.append(document)
    return dump_json(documents) + "\n"


def _rows(report: PromptReport) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the cells of each line and the reason below it, which may be empty."""
    prompt = report.prompt
    tenant = _EVERYBODY if prompt.is_preamble else prompt.tenant
    owner = (tenant, prompt.name, str(prompt.version))
    counts = Counter(
        (_cells(prompt, worker), reason_of(prompt, worker.status)) for worker in report.workers
    )
    if not counts:
        yield (*owner, NOTHING, "registered", NOTHING, NOTHING, "0"), ""
    for (cells, reason), count in counts.items():
        yield (*owner, *cells, str(count)), reason


def _cells(prompt: NamedPrompt, worker: WorkerReport) -> tuple[str, str, str, str]:
    status = worker.status
    state = state_of(prompt, status)
    if status is None:
        return worker.model, state, NOTHING, NOTHING
    tokens, pages = str(status.num_tokens or NOTHING), str(status.num_pages or NOTHING)
    return worker.model, state, tokens, pages


def _note(reason: str) -> str:
    return f"    {reason}\n" if reason else ""
