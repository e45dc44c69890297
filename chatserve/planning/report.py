"""A plan for people, for programs and for the log.

Owns how a plan is written. The JSON has the names of the records and is described in docs/plan.md;
the table says the same in the order in which one would ask.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict

from chatserve.planning.plan import Plan
from chatserve.wording import counted


def as_json(plan: Plan) -> str:
    record = asdict(plan)
    if plan.inputs.speed is not None:
        speeds = asdict(plan.inputs.speed)
        record["inputs"]["speed"] = {name: round(speed, 3) for name, speed in speeds.items()}
    return json.dumps(record, indent=2)


def as_table(plan: Plan) -> str:
    lines = [f"{plan.inputs.model} in {plan.inputs.cost.dtype}", ""]
    lines += [f"  {name:<12}{text}" for name, text in _facts(plan)]
    lines += ["", *_steps(plan), ""]
    lines += [f"  {flag} {value}\n      {reason}" for flag, value, reason in _limits(plan)]
    lines += [f"  warning: {warning}" for warning in plan.warnings]
    return "\n".join(lines)


def log_summary(plan: Plan) -> str:
    """Return the limits in one line."""
    requests = counted(plan.max_num_seqs.value, "request")
    tokens = counted(plan.max_num_batched_tokens.value, "token")
    pages = counted(plan.num_pages, "page")
    pins = ""
    if plan.inputs.prefix_cache:
        pins = f", {plan.max_pinned_pages:,} of them may be pinned"
    speed, figures = plan.inputs.speed, ""
    if speed is not None:
        figures = (
            "planned with the figures of this start, "
            f"{speed.bandwidth_gb_per_s:,.1f} GB/s of weights "
            f"and {speed.throughput_gflops:,.0f} GFLOP/s: "
        )
    return f"limits: {requests}, {tokens} a step, {pages}{pins}; {figures}`chatserve plan` explains"


def log_details(plan: Plan) -> tuple[str, str]:
    """Return the estimate with its reasons, and the inputs it was made from."""
    reasons = "; ".join(
        f"{flag} {value}: {reason.removesuffix('.')}" for flag, value, reason in _limits(plan)
    )
    facts = "; ".join(f"{name} {text}" for name, text in _facts(plan))
    return f"plan: {reasons}{_prediction(plan)}", f"planned from: {facts}"


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    inputs, cost, workload = plan.inputs, plan.inputs.cost, plan.inputs.workload
    yield "weights", f"{cost.weight_bytes / 1e6:,.0f} MB"
    if inputs.speed is not None:
        speed = inputs.speed
        yield (
            "machine",
            f"reads {speed.bandwidth_gb_per_s:,.1f} GB/s of weights and "
            f"{speed.kv_bandwidth_gb_per_s:,.1f} of KV, "
            f"computes {speed.throughput_gflops:,.0f} GFLOP/s",
        )
    yield (
        "KV",
        f"{plan.kv_bytes_per_token:,} bytes a token, {plan.kv_bytes_per_page:,} a page of "
        f"{inputs.page_size}",
    )
    yield "pool", _pool(plan)
    yield "context", counted(plan.max_model_len, "token")
    yield "sessions", _sessions(plan)
    yield "target", f"time between tokens of at most {workload.target_itl_ms:g} ms"


def _pool(plan: Plan) -> str:
    megabytes = plan.num_pages * plan.kv_bytes_per_page / 1e6
    pool = f"{counted(plan.num_pages, 'page')}, {megabytes:,.0f} MB"
    if not plan.inputs.prefix_cache:
        return pool
    return f"{pool}; up to {plan.max_pinned_pages:,} may be pinned"


def _sessions(plan: Plan) -> str:
    workload, alone = plan.inputs.workload, plan.sessions_without_sharing
    sessions = (
        f"of {counted(workload.session_tokens, 'token')}: {alone:,} "
        f"{'fits' if alone == 1 else 'fit'} the pool"
    )
    if not plan.inputs.prefix_cache:
        return sessions
    return (
        f"{sessions}, {plan.sessions_with_sharing:,} sharing their first {workload.shared_tokens:,}"
    )


def _steps(plan: Plan) -> Iterator[str]:
    yield "  requests   reading  computing      step   tokens/s"
    for step in plan.steps:
        chosen = "  <- --max-num-seqs" if step.num_seqs == plan.max_num_seqs.value else ""
        yield (
            f"  {step.num_seqs:>8}{step.read_ms:>8.1f}ms{step.compute_ms:>9.1f}ms"
            f"{step.step_ms:>8.1f}ms{step.tokens_per_s:>11,.0f}{chosen}"
        )


def _limits(plan: Plan) -> Iterator[tuple[str, int, str]]:
    yield "--max-num-seqs", plan.max_num_seqs.value, plan.max_num_seqs.reason
    budget = plan.max_num_batched_tokens
    yield "--max-num-batched-tokens", budget.value, budget.reason


def _prediction(plan: Plan) -> str:
    if not plan.steps:
        return ""
    alone = plan.steps[0].step_ms
    full = next(step for step in plan.steps if step.num_seqs == plan.max_num_seqs.value).step_ms
    return f"; a step is predicted to take {alone:.1f} ms for one request, {full:.1f} ms for all"
