"""The two limits of a step, each with the reason for its value.

Owns the rules by which `max_num_seqs` and `max_num_batched_tokens` are chosen, and the ranges they
stay in. Pure arithmetic.

Requests are bound by memory (their KV must fit the pool) or by time (a step that decodes all of
them must stay within the target ITL). Tokens are bound by time: everyone who decodes in a step
waits for what a prefill chunk adds to it.
"""

from dataclasses import dataclass
from enum import StrEnum

from chatserve.planning.inputs import PlanInputs, Workload
from chatserve.planning.step_time import StepTimes
from chatserve.wording import counted

MIN_SEQS, MAX_SEQS = 8, 256
"""Range of what is recommended.

All running requests share one reading of the weights. Below the minimum a wait for a seat, which is
a wait for a whole answer, costs more than the slower tokens of a fuller step.
"""

MIN_BATCHED_TOKENS, MAX_BATCHED_TOKENS = 64, 8192

PREFILL_STEP_FACTOR = 3
"""How many target ITLs a step that carries a prefill chunk may last.

A smaller factor makes answers smoother and prompts slower: each chunk reads all weights again.
"""


class Bound(StrEnum):
    """What a limit was decided by."""

    GIVEN = "given"
    POOL = "pool"
    TARGET_ITL = "target_itl"
    TOKEN_BUDGET = "max_num_batched_tokens"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"


@dataclass(frozen=True, slots=True)
class Limit:
    """The value of a limit, what decided it, and why in one sentence."""

    value: int
    bound: Bound
    reason: str


def choose_max_num_seqs(inputs: PlanInputs, pool_sessions: int, times: StepTimes | None) -> Limit:
    """Return how many requests may run at once, of which the pool holds `pool_sessions`."""
    given, workload = inputs.given, inputs.workload
    if given.max_num_seqs is not None:
        return Limit(given.max_num_seqs, Bound.GIVEN, "given.")
    assert times is not None, "max_num_seqs depends on the machine's speed"
    limit = _clamped(pool_sessions, times.max_seqs_within(workload.target_itl_ms), workload)
    budget = given.max_num_batched_tokens
    if budget is not None and budget < limit.value:
        tokens = counted(budget, "token")
        reason = f"a step has {tokens} (--max-num-batched-tokens), one for each request."
        return Limit(budget, Bound.TOKEN_BUDGET, reason)
    return limit


def _clamped(pool_sessions: int, itl_seqs: int, workload: Workload) -> Limit:
    fits = f"the pool holds {counted(pool_sessions, 'typical session')}"
    number = f"{itl_seqs:,} fit" if itl_seqs > 1 else ("no request fits", "1 fits")[itl_seqs]
    feeds = f"{number} a step within {workload.target_itl_ms:g} ms, the wanted time between tokens"
    wanted = min(pool_sessions, itl_seqs)
    if wanted < MIN_SEQS:
        reason = f"{fits}; {feeds}, but fewer than {MIN_SEQS} requests are never planned for."
        return Limit(MIN_SEQS, Bound.MINIMUM, reason)
    if wanted > MAX_SEQS:
        reason = f"{fits}; {feeds}, but more than {MAX_SEQS} requests are only run when asked."
        return Limit(MAX_SEQS, Bound.MAXIMUM, reason)
    if pool_sessions <= itl_seqs:
        return Limit(wanted, Bound.POOL, f"{fits}; by the machine's speed, {feeds}.")
    return Limit(wanted, Bound.TARGET_ITL, f"{feeds}; {fits}.")


def choose_max_num_batched_tokens(
    inputs: PlanInputs, max_num_seqs: int, times: StepTimes | None
) -> Limit:
    """Return the token budget of a step: every request's decode, and the largest bearable chunk."""
    if inputs.given.max_num_batched_tokens is not None:
        value = inputs.given.max_num_batched_tokens
        return Limit(value, Bound.GIVEN, "given.")
    assert times is not None, "max_num_batched_tokens depends on the machine's speed"
    allowed_ms = (PREFILL_STEP_FACTOR - 1) * inputs.workload.target_itl_ms
    chunk = int(allowed_ms // times.prefill_token_ms())
    # Down to whole pages, so that most chunks of a lone prefill end where a page does.
    wanted = (max_num_seqs + chunk) // inputs.page_size * inputs.page_size
    least = max(MIN_BATCHED_TOKENS, max_num_seqs + inputs.page_size)
    if wanted < least:
        fits = f"a prefill chunk of {counted(chunk, 'token')} takes {allowed_ms:g} ms"
        reason = (
            f"{fits if chunk else 'no prefill fits the target'}, but every request's decode and "
            "a page of a prefill must fit a step."
        )
        return Limit(least, Bound.MINIMUM, reason)
    if wanted > MAX_BATCHED_TOKENS:
        reason = f"larger steps gain nothing, though {wanted:,} tokens would be quick enough."
        return Limit(MAX_BATCHED_TOKENS, Bound.MAXIMUM, reason)
    reason = (
        f"{counted(max_num_seqs, 'decode')} and a prefill chunk that adds at most "
        f"{allowed_ms:g} ms: where decodes keep to the target, a step with a full prefill chunk "
        f"lasts at most {PREFILL_STEP_FACTOR} times the target."
    )
    return Limit(wanted, Bound.TARGET_ITL, reason)
