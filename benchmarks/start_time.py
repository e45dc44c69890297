"""How long the service takes from its command to its readiness, and what the time is spent on.

    python -m benchmarks.start_time [--repetitions 5] [--port 8765] [FLAGS OF `chatserve serve`]

A start is warm: one that is not counted comes before, so that the weights are converted and the
files are in the system's cache. The end is the first 200 from /ready, asked for every 10 ms. Phases
are told apart by the lines that the processes log, each by the time at which it arrives here:

    processes   from the command to the engine's process: supervisor, guardian, store
    imports     to the engine's first line: Python, torch and everything else it loads
    weights     to the model in memory, packed
    plan        to the limits of the engine: measuring the machine's speed
    readiness   to /ready: pool, tokenizer, model card, the gateway's look at it

Times on a busy machine are those of its neighbours too, so that the processor time of all processes
is stated beside them.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import IO

import httpx

from benchmarks.record import write_record
from benchmarks.service import share_models

PHASES = {
    "processes": "started the engine, process",
    "imports": "chatserve.engine.start_log: computing",
    "weights": "chatserve.engine.start_log: serving",
    "plan": "chatserve.engine.start_log: limits:",
}
"""By what line in the log each phase but the last ends."""

_DEADLINE_S = 120.0
_ASK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds of each phase, of the whole, and of processor time in all processes."""

    phases: dict[str, float]
    ready_s: float
    cpu_s: float


class LineClock:
    """Reads a log and notes when the end of each phase is first in it.

    Owns: the thread that reads. Used from: the main thread.
    """

    def __init__(self, log: IO[str], began_s: float):
        self.ends_s: dict[str, float] = {}
        self._began_s = began_s
        self._thread = threading.Thread(target=self._read, args=(log,), daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _read(self, log: IO[str]) -> None:
        for line in log:
            for phase, marker in PHASES.items():
                if marker in line and phase not in self.ends_s:
                    self.ends_s[phase] = time.perf_counter() - self._began_s


def measure_start(port: int, flags: Sequence[str]) -> Start:
    """Start the service in a folder of its own, wait until it is ready, and stop it."""
    with tempfile.TemporaryDirectory(prefix="chatserve-bench-") as folder:
        share_models(Path(folder))
        command = [sys.executable, "-m", "chatserve", "serve", "--port", str(port)]
        command += ["--data-dir", folder, "--log-level", "info", *flags]
        cpu_before_s, began_s = _children_cpu_s(), time.perf_counter()
        service = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert service.stderr is not None, "it was started with a pipe"
        clock = LineClock(service.stderr, began_s)
        _wait_until_ready(port, service)
        ready_s = time.perf_counter() - began_s
        service.send_signal(signal.SIGTERM)
        service.wait()
        clock.join()
        return Start(_durations(clock.ends_s, ready_s), ready_s, _children_cpu_s() - cpu_before_s)


def _durations(ends_s: dict[str, float], ready_s: float) -> dict[str, float]:
    """Return how long each phase took, from when each ended."""
    ordered = {**{phase: ends_s[phase] for phase in PHASES}, "readiness": ready_s}
    begins = [0.0, *ordered.values()]
    return {
        phase: end - begin for (phase, end), begin in zip(ordered.items(), begins, strict=False)
    }


def _children_cpu_s() -> float:
    """Return the processor time of all processes that have ended, theirs and their children's."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _wait_until_ready(port: int, service: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + _DEADLINE_S
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        while time.monotonic() < deadline:
            if service.poll() is not None:
                sys.exit(f"the service ended with code {service.returncode} before it was ready")
            try:
                if client.get("/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(_ASK_EVERY_S)
    sys.exit(f"the service was not ready within {_DEADLINE_S:g} s")


def summarise(starts: Sequence[Start]) -> Start:
    """Return the median of each figure; those of phases need not add up to that of the whole."""
    return Start(
        phases={phase: median(s.phases[phase] for s in starts) for phase in starts[0].phases},
        ready_s=median(start.ready_s for start in starts),
        cpu_s=median(start.cpu_s for start in starts),
    )


def print_table(starts: Sequence[Start]) -> None:
    """Print the medians, and the whole of each start."""
    middle = summarise(starts)
    for phase, seconds in middle.phases.items():
        print(f"  {phase:<12}{seconds:6.2f} s")
    each = ", ".join(f"{start.ready_s:.2f}" for start in starts)
    print(f"  {'ready after':<12}{middle.ready_s:6.2f} s  (each: {each})")
    print(f"  {'processor':<12}{middle.cpu_s:6.2f} s, start and stop of all processes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--port", type=int, default=8765)
    args, flags = parser.parse_known_args()
    measure_start(args.port, flags)
    starts = [measure_start(args.port, flags) for _ in range(args.repetitions)]
    print_table(starts)
    figures = {
        "load_average": os.getloadavg()[0],
        "flags": flags,
        "median": asdict(summarise(starts)),
        "starts": [asdict(start) for start in starts],
    }
    print(f"\nwritten to {write_record('start-time', figures)}")


if __name__ == "__main__":
    main()
