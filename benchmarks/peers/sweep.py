"""Finds the flags with which llama.cpp's server is fastest here: it is compared at its best.

Owns the grid and the record. First the number of slots is varied, then the sizes of batches with
the best number; each setting is a server of its own that takes the shared-system load. The best is
the one with the most tokens per second, as an operator would choose; the times to the first token
and the load that comes as a burst are recorded beside it.
"""

import asyncio
import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.chat_load.figures import LoadFigures
from benchmarks.chat_load.run import Target, run_load
from benchmarks.chat_load.scenario import Load, Scenario
from benchmarks.peers.layout import PeerError, PeerFolder, PeerModel, Precision
from benchmarks.peers.servers import LlamaFlags, llama_server, running_peer
from benchmarks.record import RESULTS, write_record

_RECORD = "llama-sweep"
_NUM_SLOTS = (4, 8, 16)
_BATCHES = ((512, 128), (512, 512), (2048, 256), (2048, 2048))  # -b and -ub


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting and what it was measured at."""

    flags: LlamaFlags
    shared_system: LoadFigures
    burst: LoadFigures

    @property
    def speed(self) -> float:
        return self.shared_system.output_tok_s


def sweep(folder: PeerFolder, num_sessions: int) -> Path:
    """Try every setting of the grid and write the record; return its path.

    Raises:
        PeerError: llama.cpp is not installed, or a load had errors.
    """
    if not folder.has_llama or not folder.has_weights(PeerModel.DEFAULT):
        raise PeerError("llama.cpp is not installed: run `make bench-peers` first")
    seed = secrets.token_hex(4)
    slots = (LlamaFlags(num_slots=number) for number in _NUM_SLOTS)
    trials = list(_try_all(folder, slots, num_sessions, seed))
    best = best_of(trials).flags
    sizes = (replace(best, batch=batch, micro_batch=micro) for batch, micro in _BATCHES)
    trials += _try_all(folder, sizes, num_sessions, seed)
    figures: dict[str, Any] = {
        "num_sessions": num_sessions,
        "best": asdict(best_of(trials).flags),
        "trials": [asdict(trial) for trial in trials],
    }
    return write_record(_RECORD, figures)


def best_of(trials: Iterable[Trial]) -> Trial:
    return max(trials, key=lambda trial: trial.speed)


def recorded_best() -> LlamaFlags:
    """Return the best flags of the newest record, or the defaults where there is none."""
    records = sorted(RESULTS.glob(f"{_RECORD}-*.json"))
    if not records:
        return LlamaFlags()
    return LlamaFlags(**json.loads(records[-1].read_text())["best"])


def _try_all(
    folder: PeerFolder, settings: Iterable[LlamaFlags], num_sessions: int, seed: str
) -> Iterator[Trial]:
    for flags in settings:
        command = llama_server(folder, PeerModel.DEFAULT, Precision.BF16, flags)
        with running_peer(command) as address:
            shared = _run(address, Load(Scenario.SHARED_SYSTEM, seed, num_sessions))
            burst = Load(Scenario.BURST, seed, num_sessions=8, max_tokens=16)
            trial = Trial(flags, shared, _run(address, burst))
        print(f"{' '.join(flags.arguments())}: {trial.speed:g} tokens/s", flush=True)
        yield trial


def _run(address: str, load: Load) -> LoadFigures:
    figures = asyncio.run(run_load(Target(address), load))
    if figures.num_errors:
        raise PeerError(f"{load.scenario}: {figures.num_errors} errors: {figures.first_error}")
    return figures
