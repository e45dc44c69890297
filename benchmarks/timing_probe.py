"""Whether a tenant can tell from the time to first token what another tenant has cached.

Tenant A's long prompt is in the cache. Somebody else sends probes, one after the other: A's exact
prompt, or as many random tokens. Every probe comes from a tenant of its own, which is revoked
afterwards, so that no probe warms the next one and the cache is the same before each. Probes come
in pairs of both kinds, in random order within the pair, so that whatever slows the machine slows
both kinds.

The same is done with the cache shared by everybody: the positive control, in which the two must be
told apart, or the probe is too blunt to show anything.

Decided beforehand: the run fails if the control's classifier is right in at most 95% of the probes,
or if a sign-flip test of the pairs with scopes on gives p < 0.001. The classifier is one threshold,
chosen on nine tenths of the pairs and judged on the rest.

    python -m benchmarks.timing_probe [--probes 200] [--tokens 320] [--dtype auto]
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.local_engine import EngineShape, LocalModel, load_local_model
from benchmarks.record import write_record
from chatserve.cache.scope_map import CacheScope, ScopeMap
from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore

PAGE_SIZE = 16
NUM_WARM_UP_PAIRS = 3
NUM_FOLDS = 10
NUM_RESAMPLES = 10_000
MIN_CONTROL_ACCURACY = 0.95
MIN_SCOPED_P = 0.001

Times = NDArray[np.float64]
"""Milliseconds [num_pairs, 2]: the exact prompt's, the random one's."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe as its sender sees it; `cached_tokens` is what the answer's usage says."""

    ttft_ms: float
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the probes tell about A's prompt. Differences are random minus exact."""

    exact_median_ms: float
    random_median_ms: float
    difference_ms: float
    difference_95_ms: tuple[float, float]
    p: float
    classifier_accuracy: float
    exact_cached_tokens: list[int]
    random_cached_tokens: list[int]


# ── Probing ──────────────────────────────────────────────────────────────────────────────────


class ProbedEngine:
    """An engine that has tenant A's prompt in its cache.

    Owns: the engine, and the secret.
    """

    def __init__(self, model: LocalModel, num_tokens: int, cache_scope: CacheScope):
        self._rng = random.Random("timing probe")
        self._vocab_size = model.model.config.vocab_size
        self._num_tokens = num_tokens
        self._num_probes = 0
        num_pages = 4 * -(-(num_tokens + 1) // PAGE_SIZE)
        engine = model.engine(EngineShape(num_pages, PAGE_SIZE, max_num_batched_tokens=num_tokens))
        engine.scheduler.scope_map = ScopeMap(cache_scope)
        self._core = EngineCore(engine.scheduler, engine.runner, engine.tokenizer)
        self.secret = self.random_prompt()
        self._ask("A", self.secret)

    def random_prompt(self) -> tuple[int, ...]:
        return tuple(self._rng.randrange(self._vocab_size) for _ in range(self._num_tokens))

    def probe(self, prompt: tuple[int, ...]) -> Probe:
        """Ask as a tenant that nobody has heard of before or will again."""
        self._num_probes += 1
        tenant = f"prober {self._num_probes}"
        probe = self._ask(tenant, prompt)
        self._core.revoke(tenant)
        return probe

    def probe_in_pairs(self, num_pairs: int) -> Iterator[tuple[Probe, Probe]]:
        """Yield an exact and a random probe at a time, whichever was sent first."""
        for _ in range(num_pairs):
            prompts = {"exact": self.secret, "random": self.random_prompt()}
            order = self._rng.sample(sorted(prompts), k=2)
            probes = {kind: self.probe(prompts[kind]) for kind in order}
            yield probes["exact"], probes["random"]

    def is_secret_cached(self) -> bool:
        return self._ask("A", self.secret).cached_tokens == self._num_tokens - 1

    def _ask(self, tenant: str, prompt: tuple[int, ...]) -> Probe:
        sampling = SamplingParams(max_tokens=1, seed=0, temperature=0.0, ignore_eos=True)
        request = GenerationRequest(RequestId(tenant), "probed", prompt, sampling, tenant)
        began = time.perf_counter()
        refused = self._core.add(request)
        assert refused is None, f"a probe was refused: {refused}"
        (admitted,) = self._core.begin_step()
        while not self._core.finish_step():
            self._core.begin_step()
        ttft_ms = 1e3 * (time.perf_counter() - began)
        assert admitted.admitted_cached_tokens is not None
        return Probe(ttft_ms, admitted.admitted_cached_tokens)


def measure(
    model: LocalModel, num_pairs: int, num_tokens: int, cache_scope: CacheScope
) -> tuple[Times, Comparison]:
    """Probe a fresh engine; the first few pairs only warm the machine up."""
    engine = ProbedEngine(model, num_tokens, cache_scope)
    pairs = list(engine.probe_in_pairs(NUM_WARM_UP_PAIRS + num_pairs))[NUM_WARM_UP_PAIRS:]
    assert engine.is_secret_cached(), "A's prompt is not in the cache any more: nothing was probed"
    times = np.array([[probe.ttft_ms for probe in pair] for pair in pairs])
    return times, compare(times, pairs)


# ── Statistics ───────────────────────────────────────────────────────────────────────────────


def compare(times: Times, pairs: Sequence[tuple[Probe, Probe]]) -> Comparison:
    rng = np.random.default_rng(0)
    exact, other = np.median(times, axis=0)
    low, high = bootstrap_interval(times, rng)
    cached = [sorted({pair[kind].cached_tokens for pair in pairs}) for kind in (0, 1)]
    return Comparison(
        exact_median_ms=float(exact),
        random_median_ms=float(other),
        difference_ms=float(other - exact),
        difference_95_ms=(low, high),
        p=sign_flip_p(times, rng),
        classifier_accuracy=threshold_accuracy(times, rng),
        exact_cached_tokens=cached[0],
        random_cached_tokens=cached[1],
    )


def bootstrap_interval(times: Times, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95% interval of the difference of medians, over resampled pairs."""
    drawn = rng.integers(len(times), size=(NUM_RESAMPLES, len(times)))
    medians = np.median(times[drawn], axis=1)  # [num_resamples, 2]
    low, high = np.percentile(medians[:, 1] - medians[:, 0], [2.5, 97.5])
    return float(low), float(high)


def sign_flip_p(times: Times, rng: np.random.Generator) -> float:
    """Return how often pairs with their kinds swapped at random differ as much as they do.

    What is summed are differences of logarithms: one slow probe weighs little.
    """
    log_ratios = np.diff(np.log(times), axis=1)[:, 0]
    signs = rng.choice([-1.0, 1.0], size=(NUM_RESAMPLES, len(times)))
    at_random = np.abs(signs @ log_ratios)
    return float((1 + np.sum(at_random >= abs(log_ratios.sum()))) / (1 + NUM_RESAMPLES))


def threshold_accuracy(times: Times, rng: np.random.Generator) -> float:
    """Return how often the best threshold of the other folds tells the two kinds apart."""
    folds = np.array_split(rng.permutation(len(times)), NUM_FOLDS)
    num_right = 0
    for fold in folds:
        threshold, is_exact_below = best_threshold(np.delete(times, fold, axis=0))
        is_below = times[fold] <= threshold
        num_right += np.sum(is_below[:, 0] == is_exact_below)
        num_right += np.sum(is_below[:, 1] != is_exact_below)
    return float(num_right / times.size)


def best_threshold(times: Times) -> tuple[float, bool]:
    """Return the time that parts the kinds best, and whether the exact ones are below it."""
    thresholds = np.sort(times, axis=None)
    below = np.mean(times[:, :, None] <= thresholds, axis=0)  # [2, num_thresholds]
    gains = below[0] - below[1]
    best = int(np.argmax(np.abs(gains)))
    return float(thresholds[best]), bool(gains[best] > 0)


# ── Report ───────────────────────────────────────────────────────────────────────────────────


def print_table(modes: dict[str, Comparison]) -> None:
    print(f"| | {' | '.join(modes)} |")
    print("|---|" + "---:|" * len(modes))
    rows = {
        "A's exact prompt, median TTFT, ms": "{0.exact_median_ms:.1f}",
        "random prompt, median TTFT, ms": "{0.random_median_ms:.1f}",
        "difference, ms": "{0.difference_ms:+.2f}",
        "95% interval of it, ms": "{0.difference_95_ms[0]:+.2f} to {0.difference_95_ms[1]:+.2f}",
        "p of the sign-flip test": "{0.p:.4f}",
        "best threshold is right": "{0.classifier_accuracy:.1%}",
        "cached tokens of exact probes": "{0.exact_cached_tokens}",
        "cached tokens of random probes": "{0.random_cached_tokens}",
    }
    for title, form in rows.items():
        print(f"| {title} | {' | '.join(form.format(each) for each in modes.values())} |")


def failures(scoped: Comparison, control: Comparison) -> list[str]:
    """Return why the run shows no isolation, or that there is none."""
    found = []
    if control.classifier_accuracy <= MIN_CONTROL_ACCURACY:
        found.append(f"the control was told apart in only {control.classifier_accuracy:.1%}")
    if scoped.p < MIN_SCOPED_P:
        found.append(f"with scopes on the prompts can be told apart: p = {scoped.p:.4f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--probes", type=int, default=200, help="probes of each mode, two a pair")
    parser.add_argument("--tokens", type=int, default=320, help="length of A's prompt")
    parser.add_argument("--dtype", default="auto", help="as chatserve's flag")
    args = parser.parse_args()
    model = load_local_model(args.dtype)
    modes: dict[str, Comparison] = {}
    times: dict[str, Any] = {}
    for name, cache_scope in (("scopes on", CacheScope.TENANT), ("control", CacheScope.ALL)):
        raw, modes[name] = measure(model, args.probes // 2, args.tokens, cache_scope)
        times[name] = np.round(raw, 3).tolist()
    print_table(modes)
    figures = {
        "arguments": vars(args),
        "dtype": model.dtype_name,
        "modes": {name: asdict(each) for name, each in modes.items()},
        "exact_and_random_ttft_ms": times,
    }
    print(f"raw figures: {write_record('timing-probe', figures)}")
    if found := failures(modes["scopes on"], modes["control"]):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
