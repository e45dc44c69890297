"""What the machine can serve: pages, sessions, requests at once, tokens a step.

Owns the arithmetic from a model's shape, memory and speed to the limits of an engine. Pure: no
torch, no settings, no clock. `chatserve plan` prints what the engine itself starts with, since both
come from `make_plan`.

Sessions are counted in whole pages. What they have in common is held once, as far as it fills whole
pages; the page in which a session parts from the others is its own:

    page size 4, 10 shared tokens of 15:   ssss ssss │ ss·· ···     2 pages once,
                                           in common │ private      2 for each session
"""

from dataclasses import dataclass, replace

from chatserve.errors import ConfigError
from chatserve.planning.inputs import PlanInputs
from chatserve.planning.limits import (
    MAX_SEQS,
    Limit,
    choose_max_num_batched_tokens,
    choose_max_num_seqs,
)
from chatserve.planning.plan_warnings import (
    context_warnings,
    pin_warnings,
    pool_warnings,
    time_warnings,
)
from chatserve.planning.step_time import StepTimes

_LEAST_PART_FOR_PINS = 4
"""Part of the pool, one in so many, that the context leaves where its length is not given.

If one request could fill the whole pool, nothing could ever be pinned.
"""

_LEAST_CONTEXTS = 2
"""Requests at full context that a share of memory is used for, so that prefixes can stay too."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """The predicted decode step of `num_seqs` typical sessions, each at its mean length."""

    num_seqs: int
    read_ms: float
    compute_ms: float
    step_ms: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The limits of one engine, and what can be expected within them.

    The inputs are those that were used: a session longer than the context is cut to it.
    `max_pinned_pages` is what may be pinned so that a request of full context still fits, and never
    more than half of the pool; without a prefix cache it is 0, and no session shares. `steps` is
    empty where the machine's speed was not asked for.
    """

    inputs: PlanInputs
    kv_bytes_per_token: int
    kv_bytes_per_page: int
    num_pages: int
    max_pinned_pages: int
    max_model_len: int
    sessions_without_sharing: int
    sessions_with_sharing: int
    max_num_seqs: Limit
    max_num_batched_tokens: Limit
    steps: tuple[StepEstimate, ...]
    warnings: tuple[str, ...]


def make_plan(inputs: PlanInputs) -> Plan:
    """Plan an engine.

    Raises:
        ConfigError: Not even one page fits, or the wanted context is longer than the model's.
    """
    wanted_len = _wanted_context(inputs)
    num_pages = _num_pages(inputs, wanted_len)
    max_model_len = _context(inputs, num_pages, wanted_len)
    used = _within_context(inputs, max_model_len)
    alone = count_sessions(used, num_pages, shares=False)
    fitting = count_sessions(used, num_pages, shares=inputs.prefix_cache)
    max_pinned_pages = _max_pinned_pages(used, num_pages, max_model_len)
    times = _step_times(used)
    seqs = choose_max_num_seqs(used, fitting, times)
    budget = choose_max_num_batched_tokens(used, seqs.value, times)
    return Plan(
        inputs=used,
        kv_bytes_per_token=used.cost.kv_bytes_per_token,
        kv_bytes_per_page=_page_bytes(used),
        num_pages=num_pages,
        max_pinned_pages=max_pinned_pages,
        max_model_len=max_model_len,
        sessions_without_sharing=alone,
        sessions_with_sharing=fitting,
        max_num_seqs=seqs,
        max_num_batched_tokens=budget,
        steps=tuple(_estimates(times, seqs.value)) if times else (),
        warnings=(
            *context_warnings(inputs, num_pages, wanted_len, max_model_len),
            *pin_warnings(inputs, max_pinned_pages),
            *pool_warnings(seqs.value, fitting),
            *(time_warnings(times, seqs.value, budget.value, used) if times else ()),
        ),
    )


def check_sizes(inputs: PlanInputs) -> None:
    """Raise ConfigError for a size that was given and that `make_plan` would refuse.

    It asks for neither weights nor speeds, so an engine knows before it loads anything.
    """
    wanted_len = _wanted_context(inputs)
    if inputs.given.kv_memory_bytes is not None:
        _num_pages(inputs, wanted_len)


def count_sessions(inputs: PlanInputs, num_pages: int, *, shares: bool = True) -> int:
    """Return how many typical sessions a pool holds at once, with or without sharing pages."""
    workload = inputs.workload
    common = workload.shared_tokens // inputs.page_size if shares else 0
    private = inputs.pages_for(workload.session_tokens) - common
    return max(0, num_pages - common) // private


def _step_times(inputs: PlanInputs) -> StepTimes | None:
    if inputs.speed is None:
        return None
    return StepTimes(inputs.cost, inputs.speed, inputs.workload.mean_context)


def _page_bytes(inputs: PlanInputs) -> int:
    return inputs.page_size * inputs.cost.kv_bytes_per_token


def _wanted_context(inputs: PlanInputs) -> int:
    limit, wanted = inputs.cost.context, inputs.given.max_model_len
    if wanted is not None and wanted > limit:
        raise ConfigError(f"--max-model-len {wanted}: the model's context is {limit} tokens")
    return wanted or limit


def _num_pages(inputs: PlanInputs, wanted_len: int) -> int:
    """Return the given number, or what the given memory holds, or what the share holds.

    Of the share no more is taken than every request at full context could fill, or a few.
    """
    given, page_bytes = inputs.given, _page_bytes(inputs)
    if given.num_pages is not None:
        return given.num_pages
    if given.kv_memory_bytes is not None:
        memory, num_pages = given.kv_memory_bytes, given.kv_memory_bytes // page_bytes
    else:
        contexts = max(_LEAST_CONTEXTS, given.max_num_seqs or MAX_SEQS)
        most = contexts * inputs.pages_for(wanted_len)
        memory = inputs.pool_share_bytes
        num_pages = min(most, memory // page_bytes)
    if num_pages < 1:
        raise ConfigError(
            f"no KV page fits: one page needs {page_bytes:,} bytes, the pool may take {memory:,}; "
            "raise --kv-memory"
        )
    return num_pages


def _context(inputs: PlanInputs, num_pages: int, wanted_len: int) -> int:
    """Return the longest request; only where its length is given may it fill the pool."""
    most = num_pages
    if inputs.prefix_cache and inputs.given.max_model_len is None:
        most -= num_pages // _LEAST_PART_FOR_PINS
    return min(wanted_len, most * inputs.page_size)


def _max_pinned_pages(inputs: PlanInputs, num_pages: int, max_model_len: int) -> int:
    if not inputs.prefix_cache:
        return 0
    return min(num_pages - inputs.pages_for(max_model_len), num_pages // 2)


def _within_context(inputs: PlanInputs, max_model_len: int) -> PlanInputs:
    """Return the inputs with sessions that can exist: no longer than a request can get."""
    workload = inputs.workload
    tokens = min(workload.session_tokens, max_model_len)
    shared = tokens // 2
    if inputs.given.shared_tokens is not None:
        # The last token of a prompt is always computed, so there is always something of one's own.
        shared = min(workload.shared_tokens, tokens - 1)
    return replace(inputs, workload=replace(workload, session_tokens=tokens, shared_tokens=shared))


def _estimates(times: StepTimes, max_num_seqs: int) -> list[StepEstimate]:
    """Return the powers of two up to the first one that is enough, and the limit itself."""
    sizes = {1 << power for power in range((max_num_seqs - 1).bit_length() + 1)}
    return [_estimate(times, size) for size in sorted(sizes | {max_num_seqs})]


def _estimate(times: StepTimes, num_seqs: int) -> StepEstimate:
    step_ms = times.decode_ms(num_seqs)
    return StepEstimate(
        num_seqs=num_seqs,
        read_ms=round(times.read_ms(num_seqs), 3),
        compute_ms=round(times.compute_ms(num_seqs), 3),
        step_ms=round(step_ms, 3),
        tokens_per_s=round(1000 * num_seqs / step_ms, 1),
    )
