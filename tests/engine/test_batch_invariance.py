"""The CPU kernels on the real model: the same logits, bit for bit, however they are computed.

Requests share prefixes of several lengths, so that steps hold groups of them; budgets cut prompts
at odd places; one pool is so small that requests are preempted and computed again. In all of these
a token's logits are those of its request alone, on one thread, with nothing cached.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.local_engine import EngineShape, LocalModel
from benchmarks.stepped_engine import SteppedEngine, Work
from chatserve.engine.api import RequestId
from chatserve.kernels.cpu import CpuOps, usable_levels
from chatserve.model.precision import Quantization
from chatserve.model.weights import load_model

NUM_TOKENS = 12
PAGE_SIZE = 16
SYSTEM = (
    "You answer for a small harbour museum. Opening hours, tickets, ships, knots and tides. " * 5
)
QUESTIONS = (
    "Hi",
    "When do you open on holidays, and what does a family ticket cost?",
    "日本語の案内はありますか。",
)
EXAMPLE = "<|im_start|>user\nWho are you?<|im_end|>\n<|im_start|>assistant\nA guide.<|im_end|>\n"

Logits = dict[str, list[str]]
"""By request: a digest of the logits behind each of its tokens."""


@pytest.fixture(scope="module", params=["none", "file", "int8"])
def local(
    request: pytest.FixtureRequest,
    default_model_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalModel]:
    """The default model in bfloat16, in its file's own 4 bits, and in 8."""
    if not usable_levels():
        pytest.skip("the CPU kernels are not built: make install")
    ops = CpuOps(usable_levels()[0])
    model = load_model(
        default_model_path,
        dtype=torch.bfloat16,
        device="cpu",
        cache_dir=tmp_path_factory.mktemp("weights"),
        ops=ops,
        quantization=Quantization(request.param),
    )
    yield LocalModel.around(model, ops)
    ops.use_threads(torch.get_num_threads())  # the library's threads are everybody's


@pytest.fixture(scope="module")
def works(local: LocalModel) -> list[Work]:
    system = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
    texts = [
        f"{head}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        for head in ("", system, system + EXAMPLE)
        for question in QUESTIONS
    ]
    return [
        Work(f"r{i}", local.tokenizer.encode_special(text), NUM_TOKENS)
        for i, text in enumerate(texts)
    ]


class Listener:
    """An engine, and digests of all logits that its tokens were chosen from."""

    def __init__(self, local: LocalModel, shape: EngineShape):
        self.logits: Logits = defaultdict(list)
        self.engine: SteppedEngine = local.engine(shape, self._listen)

    def _listen(self, request_id: RequestId, _token_id: int, logits: Tensor) -> None:
        self.logits[request_id].append(hashlib.sha256(logits.numpy().tobytes()).hexdigest())


@pytest.fixture(scope="module")
def alone(local: LocalModel, works: list[Work]) -> Logits:
    """Every request by itself, on one thread, nothing cached. All else runs on three."""
    assert isinstance(local.ops, CpuOps)
    local.ops.use_threads(1)
    listener = Listener(local, EngineShape(256, prefix_cache=False))
    for work in works:
        listener.engine.run(work)
    local.ops.use_threads(3)
    seen = {name: len(digests) for name, digests in listener.logits.items()}
    assert seen == {work.name: NUM_TOKENS for work in works}
    return listener.logits


@pytest.mark.parametrize(
    "shape",
    [
        EngineShape(1024, prefix_cache=False),
        EngineShape(1024),
        EngineShape(1024, max_num_batched_tokens=67),
        EngineShape(1024, max_num_seqs=3, max_num_batched_tokens=29),
    ],
    ids=["together", "with the cache", "in chunks", "three at a time in small chunks"],
)
def test_logits_do_not_depend_on_company(
    local: LocalModel, works: list[Work], alone: Logits, shape: EngineShape
) -> None:
    listener = Listener(local, shape)

    listener.engine.run(*works)

    assert listener.logits == alone


def test_logits_are_the_same_after_a_cache_hit(
    local: LocalModel, works: list[Work], alone: Logits
) -> None:
    listener = Listener(local, EngineShape(1024))
    for work in works:
        listener.engine.run(work)
    assert listener.engine.scheduler.num_hit_tokens > 0

    assert listener.logits == alone


def test_logits_are_the_same_after_a_preemption(
    local: LocalModel, works: list[Work], alone: Logits
) -> None:
    short = works[: len(QUESTIONS)]
    # Room for their prompts, and for the growth of one of them.
    num_pages = sum(-(-work.num_prompt_tokens // PAGE_SIZE) for work in short) + 1
    listener = Listener(local, EngineShape(num_pages, PAGE_SIZE, prefix_cache=False))

    listener.engine.run(*short)

    assert listener.engine.scheduler.num_preemptions > 0
    assert listener.logits == {work.name: alone[work.name] for work in short}
