"""What the live workers say of registered prompts, in words.

Owns the words for each state, and the sentences about it.
"""

from collections import Counter
from collections.abc import Sequence

from chatserve.engine.api import PrefixState
from chatserve.store.named_prompt import NamedPrompt
from chatserve.store.prompt_news import PromptStatus
from chatserve.store.prompt_reports import PromptReport
from chatserve.wording import counted


def settings_of(prompt: NamedPrompt) -> str:
    """Return what was asked for, which is not what the workers have made of it."""
    if prompt.is_pinned:
        return f"{title_of(prompt)}: to be pinned"
    expiry = "" if prompt.ttl_s is None else f", dropped when unused for {prompt.ttl_s:g} s"
    return f"{title_of(prompt)}: to be cached, priority {prompt.priority}{expiry}"


def versions_of(shown: NamedPrompt, current: NamedPrompt, kept: Sequence[NamedPrompt]) -> str:
    """Return which version is shown, what there is beside it, and which variables it has."""
    is_current = shown.version == current.version
    named = {shown.version, current.version}
    others = ", ".join(str(each.version) for each in kept if each.version not in named)
    line = f"version {shown.version}"
    line += ", current" if is_current else f"; version {current.version} is current"
    line += f"; kept too: {others}" if others else ""
    if shown.variables:
        line += "; variables: " + ", ".join(_variable(shown, name) for name in shown.variables)
    return line


def _variable(prompt: NamedPrompt, name: str) -> str:
    default = prompt.defaults.get(name)
    return name if default is None else f"{name}={default!r}"


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
    origin = ", restored from disk" if status.is_restored else ""
    size = f"{counted(status.num_tokens, 'token')} in {counted(status.num_pages, 'page')}"
    return f"{state}, {size}{origin}"
