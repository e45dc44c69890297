"""The same tokens however they are computed: the default model's engine against itself.

The reference runs each prompt alone, without the prefix cache, its prompt in one piece. Every other
mode runs the same prompts greedily and is compared with it up to the first token that differs: from
there on the two histories are no longer the same. Another token is acceptable only where the
reference itself hardly preferred its own: where the margin between the logits of the two is below
the dtype's tolerance. One beyond it is a bug, and the command fails.

    python -m benchmarks.differential [--dtype bfloat16] [--prompts 50] [--tokens 64]
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.comparison import Comparison, Outcome, Recording
from benchmarks.local_engine import EngineShape, LocalModel, load_local_model
from benchmarks.prompts import mixed_prompts
from benchmarks.record import write_record
from benchmarks.stepped_engine import SteppedEngine, Work

TOLERANCES = {"float32": 1e-3, "bfloat16": 1.0}
"""The margin from which on another token is a bug and not rounding, by dtype.

Other rows beside a request mean another shape of matrix product and another order of summing. Each
of 30 layers adds to the residual stream twice and rounds the sum, in bfloat16 by up to 2^-9 of it.
Errors that do not know of each other grow with the root of their number: a logit of 32 moves by
sqrt(60) * 2^-9 * 32 = 0.5, and a margin has two logits. In float32 the same comes to 3e-5; sums
inside a layer err as well there, so its tolerance is wider. How far margins moved is printed.
"""


@dataclass(frozen=True, slots=True)
class Mode:
    """One way of computing the same tokens. With a second pass, that one is reported as well."""

    name: str
    shape: EngineShape
    num_passes: int = 1
    must_preempt: bool = False


def modes_for(works: Sequence[Work], *, batch: int, chunk: int, page_size: int) -> list[Mode]:
    """Return the ways to compare, the reference first.

    Prompts are whole unless `chunk` is the step's token budget. The small pool holds the longest
    request, or the prompts of the first batch and none of its answers; where prompts are shared,
    the longest request and one page.
    """
    pages = [-(-(work.num_prompt_tokens + work.max_tokens) // page_size) for work in works]
    first_batch = sum(-(-work.num_prompt_tokens // page_size) for work in works[:batch])
    longest = max(work.num_prompt_tokens for work in works)
    alone = EngineShape(sum(pages), page_size, max_num_seqs=1, max_num_batched_tokens=longest)
    uncached = replace(alone, prefix_cache=False)
    whole = batch * (longest + 1)
    batched = replace(uncached, max_num_seqs=batch, max_num_batched_tokens=whole)
    small = replace(batched, num_pages=max(*pages, first_batch))
    chunked = replace(batched, max_num_batched_tokens=chunk)
    everything = replace(chunked, prefix_cache=True, num_pages=max(pages) + 1)
    return [
        Mode("alone, whole, cache off", uncached),
        Mode("alone, cache on", alone, num_passes=2),
        Mode(f"{batch} at once", batched),
        Mode(f"{batch} at once, chunks of {chunk}", chunked),
        Mode(f"{batch} at once, {small.num_pages} pages", small, must_preempt=True),
        Mode("all of it, cache on", everything, num_passes=2),
    ]


def compare(model: LocalModel, works: Sequence[Work], modes: Sequence[Mode]) -> Iterator[Outcome]:
    """Run every mode; the first is the reference and has no outcome."""
    recording = Recording(model.dtype)
    model.engine(modes[0].shape, recording.observe).run(*works)
    for mode in modes[1:]:
        comparison = Comparison(recording)
        engine = model.engine(mode.shape, comparison.observe)
        for number in range(mode.num_passes):
            outcome = Outcome(
                mode=mode.name + (", again" if number else ""),
                num_requests=len(works),
                tolerance=TOLERANCES[model.dtype_name],
                must_preempt=mode.must_preempt,
            )
            comparison.begin(outcome)
            _run_pass(engine, works, outcome)
            yield outcome


def _run_pass(engine: SteppedEngine, works: Sequence[Work], outcome: Outcome) -> None:
    scheduler, began = engine.scheduler, time.monotonic()
    hits, preemptions = scheduler.num_hit_tokens, scheduler.num_preemptions
    engine.run(*works)
    scheduler.check_invariants()
    outcome.seconds = time.monotonic() - began
    outcome.num_hit_tokens = scheduler.num_hit_tokens - hits
    outcome.num_preemptions = scheduler.num_preemptions - preemptions


# ── Report ───────────────────────────────────────────────────────────────────────────────────

COLUMNS = (
    "mode",
    "identical",
    "within",
    "beyond",
    "margin lost",
    "margin moved",
    "logit moved",
    "cached tokens",
    "preemptions",
    "s",
)


def print_row(outcome: Outcome) -> None:
    cells = (
        outcome.mode,
        str(outcome.num_identical),
        str(len(outcome.divergences) - outcome.num_beyond),
        str(outcome.num_beyond),
        f"{max((each.margin for each in outcome.divergences), default=0.0):.3g}",
        f"{outcome.largest_margin_change:.3g}",
        f"{outcome.largest_difference:.3g}",
        f"{outcome.num_hit_tokens:,}",
        str(outcome.num_preemptions),
        f"{outcome.seconds:.0f}",
    )
    print(f"| {' | '.join(cells)} |", flush=True)


def to_record(model: LocalModel, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    derived = ("num_identical", "num_beyond")
    return {
        "dtype": model.dtype_name,
        "tolerance": TOLERANCES[model.dtype_name],
        "modes": [
            {**{name: getattr(each, name) for name in derived}, **asdict(each)} for each in outcomes
        ],
    }


def chosen_works(model: LocalModel, num_prompts: int, num_tokens: int) -> list[Work]:
    """Return that many of the mixed prompts, from all over the list."""
    prompts = mixed_prompts(model.tokenizer)
    chosen = [prompts[index * len(prompts) // num_prompts] for index in range(num_prompts)]
    return [Work(f"prompt {index}", prompt, num_tokens) for index, prompt in enumerate(chosen)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dtype", default="bfloat16", choices=TOLERANCES)
    parser.add_argument("--prompts", type=int, default=50, help="how many of the 50 prompts")
    parser.add_argument(
        "--tokens", type=int, default=64, help="tokens for each; few preempt nothing"
    )
    args = parser.parse_args()
    model = load_local_model(args.dtype)
    works = chosen_works(model, args.prompts, args.tokens)
    print(
        f"{len(works)} prompts, {args.tokens} tokens each, {args.dtype}; "
        f"tolerance {TOLERANCES[args.dtype]:g}.\n"
        "Largest margin that the reference lost, and how far any margin or logit moved at most.\n\n"
        f"| {' | '.join(COLUMNS)} |\n"
        f"|---|{'---:|' * (len(COLUMNS) - 1)}",
        flush=True,
    )
    outcomes: list[Outcome] = []
    for outcome in compare(model, works, modes_for(works, batch=10, chunk=48, page_size=16)):
        outcomes.append(outcome)
        print_row(outcome)
    path = write_record(f"differential-{args.dtype}", to_record(model, outcomes))
    print(f"\nraw figures: {path}")
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
