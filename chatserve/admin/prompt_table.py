"""The list of registered prompts, as a table for people and as JSON for programs.

Owns the layout. What the workers say comes from `prompt_reports.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from chatserve.admin.prompt_reports import PromptReport, WorkerReport, reason_of, state_of
from chatserve.store.codec import dump_json
from chatserve.store.prompts import NamedPrompt

_HEADINGS = ("TENANT", "NAME", "MODEL", "STATE", "TOKENS", "PAGES", "WORKERS")
_NOTHING = "-"
_EVERYBODY = "(all)"


def as_table(reports: Iterable[PromptReport]) -> str:
    """Return a line for each prompt, model and state, and a refusal's reason below its line."""
    rows: list[tuple[tuple[str, ...], str]] = [(_HEADINGS, "")]
    for report in reports:
        rows += _rows(report)
    widths = [max(map(len, column)) for column in zip(*(cells for cells, _ in rows), strict=True)]
    return "".join(_line(cells, widths) + _note(reason) for cells, reason in rows)


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
    owner = (_EVERYBODY if prompt.is_preamble else prompt.tenant, prompt.name)
    counts = Counter(
        (_cells(prompt, worker), reason_of(prompt, worker.status)) for worker in report.workers
    )
    if not counts:
        yield (*owner, _NOTHING, "registered", _NOTHING, _NOTHING, "0"), ""
    for (cells, reason), count in counts.items():
        yield (*owner, *cells, str(count)), reason


def _cells(prompt: NamedPrompt, worker: WorkerReport) -> tuple[str, str, str, str]:
    status = worker.status
    state = state_of(prompt, status)
    if status is None:
        return worker.model, state, _NOTHING, _NOTHING
    tokens, pages = str(status.num_tokens or _NOTHING), str(status.num_pages or _NOTHING)
    return worker.model, state, tokens, pages


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip() + "\n"


def _note(reason: str) -> str:
    return f"    {reason}\n" if reason else ""
