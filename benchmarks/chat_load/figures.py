"""Sums a load's answers up: percentiles of times, tokens per second, errors.

Owns the definitions. TTFT runs from the request to the first piece of text that is not empty, ITL
is the time between two pieces, E2E runs to the last. Answers with an error count as errors and in
no other figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.chat_load.clients import Answer

_MS = 1e3


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of times in milliseconds; the p-th is the smallest that p percent do not exceed by rank."""

    p50: float
    p90: float
    p99: float

    @classmethod
    def of_seconds(cls, values: Sequence[float]) -> "Percentiles":
        ranked = sorted(values)
        at = (ranked[min(len(ranked) - 1, int(len(ranked) * share))] for share in (0.5, 0.9, 0.99))
        return cls(*(round(_MS * value, 1) for value in at))


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """What one load measured. Times are None where no answer was good, or none had two pieces."""

    num_answers: int
    num_errors: int
    first_error: str
    seconds: float
    output_tokens: int
    output_tok_s: float
    prompt_tokens: int
    cached_tokens: int
    ttft_ms: Percentiles | None
    itl_ms: Percentiles | None
    e2e_ms: Percentiles | None

    @classmethod
    def of(cls, answers: Sequence[Answer], seconds: float) -> "LoadFigures":
        good = [answer for answer in answers if not answer.error]
        output_tokens = sum(answer.output_tokens for answer in good)
        return cls(
            num_answers=len(answers),
            num_errors=len(answers) - len(good),
            first_error=next((answer.error for answer in answers if answer.error), ""),
            seconds=round(seconds, 2),
            output_tokens=output_tokens,
            output_tok_s=round(output_tokens / seconds, 1),
            prompt_tokens=sum(answer.prompt_tokens for answer in good),
            cached_tokens=sum(answer.cached_tokens for answer in good),
            ttft_ms=_percentiles([answer.stamps_s[0] - answer.began_s for answer in good]),
            itl_ms=_percentiles([b - a for each in good for a, b in pairwise(each.stamps_s)]),
            e2e_ms=_percentiles([answer.stamps_s[-1] - answer.began_s for answer in good]),
        )


def _percentiles(values: Sequence[float]) -> Percentiles | None:
    return Percentiles.of_seconds(values) if values else None
