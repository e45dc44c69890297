"""What pages do for memory: the default model's engine against contiguous reservation.

The engine runs in this process and its pages are counted while every step holds them. Two rivals
are simulated on the same requests: one gives each request 2,048 tokens, one exactly what it will
have needed. Every request asks at once and greedily. Also draws the pages of the three-request
example.

    python -m benchmarks.memory [--requests 110] [--dtype auto] [--picture docs/page-map.svg]
"""

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.local_engine import (
    MAX_NUM_BATCHED_TOKENS,
    EngineShape,
    LocalModel,
    load_local_model,
)
from benchmarks.page_map import PageMap, draw
from benchmarks.prompts import STORY, SYSTEM_PROMPT, chat, user_turn
from benchmarks.record import write_record
from benchmarks.reservation import (
    PRE_ALLOCATED_TOKENS,
    Reserve,
    exact_reservation,
    pre_allocation,
    simulate,
)
from benchmarks.step_samples import LoadFigures, StepSample
from benchmarks.stepped_engine import SteppedEngine, Work

PAGE_SIZE = 16
LOAD_POOL_PAGES = 4 * PRE_ALLOCATED_TOKENS // PAGE_SIZE
SESSION_COUNTS = (2, 8, 32)
SESSION_WORDS, SESSION_TOKENS = 24, 80
PICTURE = Path(__file__).parents[1] / "docs" / "page-map.svg"


def measure_load(model: LocalModel, num_requests: int) -> dict[str, LoadFigures]:
    """Ask more at once than fits the memory of four requests of 2,048 tokens."""
    lengths = random.Random("load")
    works = [
        Work(
            f"load {index}",
            chat(model.tokenizer, SYSTEM_PROMPT, user_turn(index, lengths.randint(10, 60))),
            lengths.randint(32, 128),
        )
        for index in range(num_requests)
    ]
    shared, alone = (
        model.engine(EngineShape(LOAD_POOL_PAGES, PAGE_SIZE, prefix_cache=cache))
        for cache in (True, False)
    )
    # A service has the prompt in its cache before a crowd comes.
    shared.run(Work("first", chat(model.tokenizer, SYSTEM_PROMPT, "Hello!"), 2))
    return {
        "pages, shared": _load_figures(shared, works),
        "pages, cache off": _load_figures(alone, works),
        "exact reservation": _reserved_figures(works, exact_reservation),
        "pre-allocation": _reserved_figures(works, pre_allocation),
    }


def _load_figures(engine: SteppedEngine, works: Sequence[Work]) -> LoadFigures:
    samples = engine.run(*works)
    preemptions = engine.scheduler.num_preemptions
    return LoadFigures.of(samples, LOAD_POOL_PAGES * PAGE_SIZE, preemptions)


def _reserved_figures(works: Sequence[Work], reserve: Reserve) -> LoadFigures:
    num_slots = LOAD_POOL_PAGES * PAGE_SIZE
    return LoadFigures.of(simulate(works, num_slots, reserve, MAX_NUM_BATCHED_TOKENS), num_slots)


@dataclass(frozen=True, slots=True)
class PeakFigures:
    """The most memory that the same requests need at once, in pages; reservations computed."""

    shared: int
    cache_off: int
    exact: float
    pre_allocated: int

    @property
    def saved_percent(self) -> float:
        return 100 * (1 - self.shared / self.cache_off)

    @classmethod
    def of(cls, works: Sequence[Work], *, shared: int, cache_off: int) -> "PeakFigures":
        exact = sum(map(exact_reservation, works)) / PAGE_SIZE
        pre_allocated = sum(map(pre_allocation, works)) // PAGE_SIZE
        return cls(shared, cache_off, exact, pre_allocated)


def peak_pages(samples: Sequence[StepSample]) -> int:
    return max(sample.allocated_slots for sample in samples) // PAGE_SIZE


def measure_sessions(model: LocalModel, num_sessions: int) -> PeakFigures:
    """Let sessions with one system prompt ask at once, on a cold cache and with the cache off."""
    works = [
        Work(
            f"session {index}",
            chat(model.tokenizer, SYSTEM_PROMPT, user_turn(index, SESSION_WORDS)),
            SESSION_TOKENS,
        )
        for index in range(num_sessions)
    ]
    num_pages = sum(-(-exact_reservation(work) // PAGE_SIZE) for work in works)
    shared, alone = (
        model.engine(EngineShape(num_pages, PAGE_SIZE, prefix_cache=cache)).run(*works)
        for cache in (True, False)
    )
    return PeakFigures.of(works, shared=peak_pages(shared), cache_off=peak_pages(alone))


def measure_example(model: LocalModel) -> tuple[PeakFigures, PageMap]:
    """Run A and B with one system prompt and C without it; B and C come while A is answered."""
    a, b, c = works = _example(model)
    engine = model.engine(EngineShape(256, PAGE_SIZE))
    engine.add(a)
    while not engine.outputs["A"]:
        engine.step()
    engine.add(b, c)
    while len(engine.outputs["B"]) < b.max_tokens - 1:
        engine.step()
    page_map = PageMap(
        page_size=PAGE_SIZE,
        tables=engine.page_tables(),
        copies=list(engine.watch.copies),
        title="Three requests, and the pages behind them",
        notes=_notes(works),
    )
    engine.run()
    alone = model.engine(EngineShape(256, PAGE_SIZE, prefix_cache=False)).run(*works)
    peaks = PeakFigures.of(
        works, shared=peak_pages(engine.watch.samples), cache_off=peak_pages(alone)
    )
    return peaks, page_map


def _example(model: LocalModel) -> list[Work]:
    encode = model.tokenizer.encode
    questions = (
        "How do I renew a book that somebody else has reserved, and what happens if I am late?",
        "How do I book the hall for an evening?",
    )
    a, b = (chat(model.tokenizer, SYSTEM_PROMPT, question) for question in questions)
    return [Work("A", a, 200), Work("B", b, 50), Work("C", encode(STORY)[:72], 100)]


def _notes(works: Sequence[Work]) -> list[str]:
    a, b, c = works
    pre_allocated = sum(map(pre_allocation, works)) // PAGE_SIZE
    return [
        f"A and B begin with the same system prompt; C does not. A answers with {a.max_tokens} "
        f"tokens, B with {b.max_tokens}, C with {c.max_tokens}.",
        f"Here just before B ends. A page holds {PAGE_SIZE} tokens; pre-allocating "
        f"{PRE_ALLOCATED_TOKENS:,} for each request would take {pre_allocated} pages.",
    ]


# ── Report ───────────────────────────────────────────────────────────────────────────────────


LOAD_ROWS = {
    "internal fragmentation, % of allocated slots (target: below 5)": "unfilled_percent",
    "pool utilisation, % of slots filled (target: above 90)": "utilisation_percent",
    "requests running, mean (target: 2 to 4 times pre-allocation)": "mean_running",
    "requests running, peak": "peak_running",
    "tokens of a running request, mean": "mean_tokens",
    "filled slots for each, shared ones counted once": "mean_own_tokens",
    "steps": "num_steps",
    "preemptions": "num_preemptions",
}


def print_load(load: dict[str, LoadFigures], num_requests: int) -> None:
    print(
        f"\n{num_requests} requests at once in {LOAD_POOL_PAGES} pages, while requests wait; "
        "reservations are computed.\n"
    )
    print(f"| | {' | '.join(load)} |")
    print("|---|" + "---:|" * len(load))
    for title, field in LOAD_ROWS.items():
        values = [getattr(figures, field) for figures in load.values()]
        cells = [f"{value:.1f}" if isinstance(value, float) else str(value) for value in values]
        print(f"| {title} | {' | '.join(cells)} |")
    shared, alone, exact, pre = (figures.mean_running for figures in load.values())
    print(
        f"\nIn the same memory run {alone / pre:.1f} times as many requests as with "
        f"pre-allocation and {alone / exact:.1f} times as many as with exact reservation; with the "
        f"prompt shared {shared / pre:.1f} and {shared / exact:.1f} times as many.\nEvery request "
        "leaves half a page unfilled on average: that share grows as the slots of its own shrink."
    )


def print_peaks(peaks: dict[str, PeakFigures], page_bytes: int) -> None:
    print(
        f"\nPages in use, peak; a page is {page_bytes / 1024:,.0f} KiB. Sessions: a user turn of "
        f"{SESSION_WORDS} words, an answer of {SESSION_TOKENS} tokens.\n"
    )
    print(
        "| | shared | cache off | saved by sharing | exact reservation | pre-allocation "
        "| of pre-allocation |"
    )
    print("|---|" + "---:|" * 6)
    for name, peak in peaks.items():
        print(
            f"| {name} | {peak.shared} | {peak.cache_off} | {peak.saved_percent:.1f}% "
            f"| {peak.exact:.0f} | {peak.pre_allocated} "
            f"| {100 * peak.shared / peak.pre_allocated:.1f}% |"
        )


def to_record(
    model: LocalModel, load: dict[str, LoadFigures], peaks: dict[str, PeakFigures]
) -> dict[str, Any]:
    return {
        "dtype": model.dtype_name,
        "page_size": PAGE_SIZE,
        "page_bytes": model.page_bytes(PAGE_SIZE),
        "load_pool_pages": LOAD_POOL_PAGES,
        "load": {name: asdict(figures) for name, figures in load.items()},
        "peak_pages": {name: asdict(figures) for name, figures in peaks.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=110, help="requests of the load run")
    parser.add_argument("--dtype", default="auto", help="as chatserve's flag")
    parser.add_argument("--picture", type=Path, default=PICTURE, help="where to write the picture")
    args = parser.parse_args()
    began = time.monotonic()
    model = load_local_model(args.dtype)
    example, page_map = measure_example(model)
    args.picture.write_text(draw(page_map))
    peaks = {f"{count} sessions": measure_sessions(model, count) for count in SESSION_COUNTS}
    peaks["three requests (target: a third of pre-allocation)"] = example
    load = measure_load(model, args.requests)
    print_load(load, args.requests)
    print_peaks(peaks, model.page_bytes(PAGE_SIZE))
    path = write_record("memory", to_record(model, load, peaks))
    print(f"\n{time.monotonic() - began:.0f} s; picture: {args.picture}; raw figures: {path}")


if __name__ == "__main__":
    main()
