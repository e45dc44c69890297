"""Our order of eviction against least recent use and Belady's optimum, on synthetic tenants.

Every cell of the grid is a trace and a pool: Zipf's exponent over tenants, no scan or one of two
kinds, and a share of the trace's working set (all its distinct pages). The bound knows the future
and is counted generously (`belady.py`), so no order of eviction can reach it. Rows are medians over
the seeds; gains are over all runs, in points of hit rate.

    python -m benchmarks.eviction [--seeds 101 102 103] [--sessions 400]
"""

import argparse
from dataclasses import asdict, dataclass
from itertools import product
from statistics import mean, median

from benchmarks.eviction.belady import most_cached_tokens, page_uses
from benchmarks.eviction.simulate import PAGE_SIZE, Score, least_recently_used, simulate
from benchmarks.eviction.traces import Scan, Workload, make_trace
from benchmarks.record import write_record
from chatserve.cache.eviction_queue import EvictionQueue

EXPONENTS = (0.6, 0.9, 1.2)
POOL_SHARES = (0.1, 0.25, 0.5)
MAX_LOSS = 0.5


@dataclass(frozen=True, slots=True)
class Result:
    """One trace and one pool under the three orders."""

    workload: Workload
    pool_share: float
    num_pages: int
    least_recent: Score
    ours: Score
    bound: float

    @property
    def cell(self) -> tuple[Scan, float, float]:
        return self.workload.scan, self.workload.zipf, self.pool_share

    @property
    def gain(self) -> float:
        """Return our hit rate above least recent use, in points."""
        return 100 * (self.ours.hit_rate - self.least_recent.hit_rate)

    @property
    def gap(self) -> float:
        """Return the bound above least recent use, in points."""
        return 100 * (self.bound - self.least_recent.hit_rate)

    @property
    def gain_in_work(self) -> float:
        return 100 * (self.ours.saved_work - self.least_recent.saved_work)


@dataclass(frozen=True, slots=True)
class Summary:
    """Gains over least recent use, in points, and how much of the way to the bound they go."""

    runs: int
    mean_gain: float
    worst_gain: float
    best_gain: float
    share_of_gap: float
    mean_gain_in_work: float

    def __str__(self) -> str:
        return (
            f"mean gain {self.mean_gain:+.2f} points over {self.runs} runs, worst "
            f"{self.worst_gain:+.2f}, best {self.best_gain:+.2f}; {self.share_of_gap:.0%} of the "
            f"way to the bound; {self.mean_gain_in_work:+.2f} points of the work to compute prompts"
        )


def measure(workload: Workload) -> list[Result]:
    trace = make_trace(workload)
    uses, working_set = page_uses(trace, PAGE_SIZE)
    num_tokens = sum(len(request.prompt) for request in trace)
    results = []
    for share in POOL_SHARES:
        num_pages = int(share * working_set)
        bound = most_cached_tokens(uses, num_pages, PAGE_SIZE) / num_tokens
        least_recent = simulate(trace, num_pages, least_recently_used())
        ours = simulate(trace, num_pages, EvictionQueue())
        results.append(Result(workload, share, num_pages, least_recent, ours, bound))
    return results


def print_table(results: list[Result]) -> None:
    print("| scan | Zipf | pool | least recent use | ours | gain, points | bound |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for cell in product(Scan, EXPONENTS, POOL_SHARES):
        seeds = [result for result in results if result.cell == cell]
        scan, zipf, share = cell
        least_recent = median(result.least_recent.hit_rate for result in seeds)
        ours = median(result.ours.hit_rate for result in seeds)
        gain = median(result.gain for result in seeds)
        bound = median(result.bound for result in seeds)
        print(
            f"| {scan} | {zipf} | {share:.0%} | {least_recent:.1%} | {ours:.1%} "
            f"| {gain:+.2f} | {bound:.1%} |"
        )


def summarise(results: list[Result]) -> Summary:
    gains = [result.gain for result in results]
    return Summary(
        runs=len(results),
        mean_gain=mean(gains),
        worst_gain=min(gains),
        best_gain=max(gains),
        share_of_gap=sum(gains) / sum(result.gap for result in results),
        mean_gain_in_work=mean(result.gain_in_work for result in results),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102, 103])
    parser.add_argument("--sessions", type=int, default=400, help="sessions of each trace")
    args = parser.parse_args()
    grid = product(Scan, EXPONENTS, args.seeds)
    workloads = [
        Workload(zipf, scan, seed, num_sessions=args.sessions) for scan, zipf, seed in grid
    ]
    results = [result for workload in workloads for result in measure(workload)]
    print_table(results)
    parts = {str(scan): [r for r in results if r.workload.scan is scan] for scan in Scan}
    summaries = {name: summarise(part) for name, part in {**parts, "all": results}.items()}
    for name, summary in summaries.items():
        print(f"{name}: {summary}")
    record = {
        "summary": {name: asdict(summary) for name, summary in summaries.items()},
        "results": [asdict(result) for result in results],
    }
    print(f"raw figures: {write_record('eviction', record)}")
    if summaries["all"].worst_gain < -MAX_LOSS:
        raise SystemExit(f"a trace is more than {MAX_LOSS} points below least recent use")


if __name__ == "__main__":
    main()
