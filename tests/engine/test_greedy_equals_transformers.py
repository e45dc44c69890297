"""The engine on the real model, against transformers: the same greedy tokens in float32.

Every way of running the prompts gives the same tokens as the reference: alone, in one batch, with
the prefix cache and without it, in small chunks, and in a pool so small that it must preempt.
A divergence is allowed only where the reference's own margin between its two best tokens is below
`MARGIN`; how many there were is printed.
"""

import sys
from pathlib import Path

import pytest
import torch
from engine.reference_model import load_reference, top_two_margins
from transformers import LlamaForCausalLM

from chatserve.cache.prefix_cache import PrefixCache
from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.engine_core import EngineCore
from chatserve.engine.kv_pool import allocate_kv_pages
from chatserve.engine.model_runner import ModelRunner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig
from chatserve.kernels import get_ops
from chatserve.model.weights import LoadedModel, load_model
from chatserve.text.tokenizer import Tokenizer

MARGIN = 1e-3
NUM_TOKENS = 32
PAGE_SIZE = 16

SYSTEM = "You are the help desk of a small town's library. " * 5
QUESTIONS = (
    "Hi",
    "What is gravity?",
    "Name three colours.",
    "How do I renew a book, and how often may I do that?",
    "Wie heißt die Hauptstadt von Österreich? Grüße aus Köln!",
    "日本の首都はどこですか。短く答えてください。",
    "Что такое радиус-дерево?",
    "Emoji: 👩‍👩‍👧‍👦 🏳️‍🌈 🇨🇭 — what do they mean?",
    "def fib(n):\n    if n < 2:\n        return n\n    return",
    "SELECT name, COUNT(*) FROM users WHERE",
    "for (int i = 0; i < 10; ++i) {\n\tprintf(",
    "1, 1, 2, 3, 5, 8, 13,",
    "   leading and trailing spaces   ",
    "Translate to French: The cat sleeps on the warm stone.",
)
RAW_PROMPTS = (
    "Once upon a time",
    "The",
    "import numpy as np\n\n",
    "Dear Sir or Madam,\n\n",
    "Page one. " * 40,
    "€$£¥ %&/()=?` ^° <html><body>",
    "The quick brown fox jumps over the lazy dog. " * 20,
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 " * 8,
)


@pytest.fixture(scope="module", autouse=True)
def _all_cores() -> None:
    torch.set_num_threads(2)


@pytest.fixture(scope="module")
def model(default_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_model(
        default_model_path,
        dtype=torch.float32,
        device="cpu",
        cache_dir=tmp_path_factory.mktemp("weights"),
        ops=get_ops("cpu"),
    )


@pytest.fixture(scope="module")
def reference(default_model_path: Path) -> LlamaForCausalLM:
    return load_reference(default_model_path)


@pytest.fixture(scope="module")
def prompts(model: LoadedModel) -> list[list[int]]:
    tokenizer = Tokenizer.from_json(model.tokenizer_json)
    chats = [
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
        "<|im_start|>assistant\n"
        for question in QUESTIONS
    ]
    return [tokenizer.encode_special(text) for text in (*chats, *RAW_PROMPTS)]


class Run:
    """One engine, and what it generated."""

    def __init__(
        self,
        model: LoadedModel,
        *,
        num_pages: int = 2048,
        prefix_cache: bool = True,
        max_num_batched_tokens: int = 512,
    ):
        config = SchedulerConfig(32, max_num_batched_tokens, 8192, frozenset())
        cache = PrefixCache(num_pages, PAGE_SIZE, enabled=prefix_cache)
        self.scheduler = Scheduler(config, cache)
        ops = get_ops("cpu")
        pages = allocate_kv_pages(model.config, num_pages, PAGE_SIZE, torch.float32, "cpu")
        pages.k.fill_(torch.nan)
        pages.v.fill_(torch.nan)
        runner = ModelRunner(model.decoder, pages, ops, eos_token_ids=frozenset())
        self.core = EngineCore(self.scheduler, runner, Tokenizer.from_json(model.tokenizer_json))
        self.outputs: dict[str, list[int]] = {}

    def generate(self, prompts: list[list[int]]) -> list[list[int]]:
        """Run prompts together and return the tokens of each."""
        sampling = SamplingParams(max_tokens=NUM_TOKENS, seed=0, temperature=0.0, ignore_eos=True)
        names = [RequestId(f"r{len(self.outputs) + i}") for i in range(len(prompts))]
        self.outputs.update({name: [] for name in names})
        for name, prompt in zip(names, prompts, strict=True):
            assert self.core.add(GenerationRequest(name, "m", tuple(prompt), sampling)) is None
        while self.core.has_work:
            self.core.begin_step()
            for output in self.core.finish_step():
                self.outputs[output.request_id] += output.token_ids
        self.scheduler.check_invariants()
        return [self.outputs[name] for name in names]


@pytest.fixture(scope="module")
def alone(model: LoadedModel, prompts: list[list[int]]) -> list[list[int]]:
    """Each prompt by itself, nothing cached."""
    run = Run(model, prefix_cache=False)
    return [run.generate([prompt])[0] for prompt in prompts]


def assert_same_as_reference(
    reference: LlamaForCausalLM, prompts: list[list[int]], outputs: list[list[int]], name: str
) -> None:
    divergences, total = [], 0
    for index, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        assert len(output) == NUM_TOKENS
        expected = top_two_margins(reference, prompt + output, len(prompt))
        total += len(output)
        for position, (token_id, (best, margin)) in enumerate(zip(output, expected, strict=True)):
            if token_id != best:
                divergences.append((index, position, margin))
    sys.stdout.write(f"{name}: {total} tokens, {len(divergences)} divergences within {MARGIN}\n")
    assert all(margin < MARGIN for _, _, margin in divergences), divergences


def test_alone_without_a_cache(
    model: LoadedModel,
    reference: LlamaForCausalLM,
    prompts: list[list[int]],
    alone: list[list[int]],
) -> None:
    assert len(prompts) >= 20

    assert_same_as_reference(reference, prompts, alone, "alone")


VARIANTS: dict[str, dict[str, int | bool]] = {
    "one batch": {"prefix_cache": False},
    "one batch, cache": {"prefix_cache": True},
    "preempted, small chunks, cache": {"num_pages": 60, "max_num_batched_tokens": 48},
    "preempted": {"num_pages": 60, "prefix_cache": False},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_however_they_are_run_the_tokens_are_the_same(
    name: str,
    model: LoadedModel,
    reference: LlamaForCausalLM,
    prompts: list[list[int]],
    alone: list[list[int]],
) -> None:
    run = Run(model, **VARIANTS[name])  # type: ignore[arg-type]
    outputs = run.generate(prompts)

    if outputs != alone:
        assert_same_as_reference(reference, prompts, outputs, name)
    assert (run.scheduler.num_preemptions > 0) == ("preempted" in name)
    assert (run.scheduler.num_hit_tokens > 0) == (name.endswith("cache"))


def test_a_warm_cache_changes_no_token(
    model: LoadedModel,
    reference: LlamaForCausalLM,
    prompts: list[list[int]],
    alone: list[list[int]],
) -> None:
    run = Run(model)
    run.generate(prompts[:8])
    hits = run.scheduler.num_hit_tokens

    outputs = run.generate(prompts[:8])

    assert run.scheduler.num_hit_tokens - hits == sum(len(prompt) - 1 for prompt in prompts[:8])
    if outputs != alone[:8]:
        assert_same_as_reference(reference, prompts[:8], outputs, "warm cache")
