"""What will disappoint within a plan, each in a sentence that says what to change.

Owns the conditions and the words of the warnings. Decides nothing: limits are chosen by then.
"""

from chatserve.planning.inputs import PlanInputs
from chatserve.planning.limits import PREFILL_STEP_FACTOR
from chatserve.planning.step_time import StepTimes
from chatserve.wording import counted


def context_warnings(
    inputs: PlanInputs, num_pages: int, wanted_len: int, max_model_len: int
) -> list[str]:
    """Return what a context shorter than wanted changes, for requests and typical sessions."""
    warnings = []
    if max_model_len < wanted_len:
        warnings.append(_cut_context(inputs, num_pages, wanted_len, max_model_len))
    session = inputs.workload.session_tokens
    if session > max_model_len:
        warnings.append(
            f"sessions of {session:,} tokens are longer than the context: {max_model_len:,} are "
            "planned for."
        )
    shared = inputs.given.shared_tokens
    if shared is not None and shared >= max_model_len:
        warnings.append(
            f"--shared-tokens {shared} leaves nothing of a session of {max_model_len:,} tokens: "
            f"{max_model_len - 1:,} are planned for."
        )
    return warnings


def _cut_context(inputs: PlanInputs, num_pages: int, wanted_len: int, max_model_len: int) -> str:
    limited = f"requests are limited to {max_model_len:,} tokens"
    whole_pool = num_pages * inputs.page_size
    if max_model_len == whole_pool:
        return (
            f"a context of {wanted_len:,} tokens does not fit the pool: {limited}; raise "
            f"{_pool_flag(inputs)}."
        )
    return (
        f"a context of {wanted_len:,} tokens takes more than three quarters of the pool: "
        f"{limited}, so that a quarter can be pinned; raise {_pool_flag(inputs)}, or give "
        f"--max-model-len, up to {min(wanted_len, whole_pool)}."
    )


def pin_warnings(inputs: PlanInputs, max_pinned_pages: int) -> list[str]:
    """Return what to do where the prefix cache is on and no page may be pinned."""
    if max_pinned_pages > 0 or not inputs.prefix_cache:
        return []
    return [
        "nothing can be pinned: one request may fill the pool; lower --max-model-len or raise "
        f"{_pool_flag(inputs)}."
    ]


def pool_warnings(max_num_seqs: int, fitting: int) -> list[str]:
    """Return what happens where more requests may run than the pool holds sessions."""
    if max_num_seqs <= fitting:
        return []
    return [
        f"the pool holds {counted(fitting, 'typical session')}, fewer than the {max_num_seqs:,} "
        "that may run: when all are long, some will be preempted and computed again."
    ]


def time_warnings(times: StepTimes, seqs: int, budget: int, inputs: PlanInputs) -> list[str]:
    """Return the first of: one request is too slow, all of them, all of them beside a prefill."""
    target_ms = inputs.workload.target_itl_ms
    mixed_ms = times.decode_ms(seqs) + max(0, budget - seqs) * times.prefill_token_ms()
    if times.decode_ms(1) > target_ms:
        return [
            f"a step of one request is predicted to take {times.decode_ms(1):,.1f} ms: answers "
            f"will be slower than --target-itl ({target_ms:g} ms) even when one runs alone; raise "
            "--target-itl or serve a smaller model."
        ]
    if times.decode_ms(seqs) > target_ms:
        return [
            f"a step of {seqs:,} requests is predicted to take {times.decode_ms(seqs):,.1f} ms: "
            f"answers will be slower than --target-itl ({target_ms:g} ms) when {seqs:,} run at "
            "once; lower --max-num-seqs or raise --target-itl."
        ]
    if mixed_ms > PREFILL_STEP_FACTOR * target_ms:
        return [
            f"a step of {counted(budget, 'token')} is predicted to take {mixed_ms:,.1f} ms: "
            f"answers will pause for more than {PREFILL_STEP_FACTOR} times --target-itl "
            f"({target_ms:g} ms) while prompts are read; lower --max-num-batched-tokens or "
            "raise --target-itl."
        ]
    return []


def _pool_flag(inputs: PlanInputs) -> str:
    return "--kv-memory" if inputs.given.num_pages is None else "--num-pages"
