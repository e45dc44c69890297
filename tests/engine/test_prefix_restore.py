"""Pages out of one runner's pool, through a file, into another's: the model cannot tell."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from engine.model_helpers import PAGE_SIZE, hf_configs, load, make_hf_model, write_gguf
from engine.prefix_helpers import NO_LIMIT
from torch import Tensor

from chatserve.cache.page_allocator import PageId
from chatserve.engine.api import GenerationRequest, RequestId, SamplingParams
from chatserve.engine.fake import FakeRunner
from chatserve.engine.model_runner import ModelRunner
from chatserve.engine.page_contents import PageContents, PoolLayout
from chatserve.engine.prefix_files import PrefixFiles
from chatserve.engine.prefix_format import PrefixKey
from chatserve.engine.request import Request
from chatserve.engine.scheduler import ScheduledRequest, SchedulerOutput
from chatserve.kernels import get_ops
from chatserve.kernels.ops import AttentionBatch, KVPages
from chatserve.model.decoder import Decoder
from chatserve.model.weights import LoadedModel

NUM_POOL_PAGES = 8
PREFIX = tuple(range(40, 50))
"""Ten tokens: two full pages and a half."""


def page_ids(*numbers: int) -> list[PageId]:
    return [PageId(number) for number in numbers]


def make_step(token_ids: Sequence[int], start: int, pages: list[PageId]) -> SchedulerOutput:
    """Return a step that computes `token_ids[start:]` of one request and samples."""
    sampling = SamplingParams(max_tokens=99, seed=0, temperature=0.0)
    request = Request.create(GenerationRequest(RequestId("r"), "m", tuple(token_ids), sampling))
    run = ScheduledRequest(request, start, list(token_ids[start:]), pages, samples=True)
    return SchedulerOutput(scheduled=[run], page_copies=[], admitted=[], preempted=[])


def through_a_file(folder: Path, layout: PoolLayout, contents: PageContents) -> PageContents:
    """Save the pages of `PREFIX` and load them as another process would."""
    key = PrefixKey("acme", "support", PREFIX)
    assert PrefixFiles(folder, layout, max_bytes=NO_LIMIT).save(key, contents)
    loaded = PrefixFiles(folder, layout, max_bytes=NO_LIMIT).load(key)
    assert loaded is not None
    return loaded


# ── Tensors ──────────────────────────────────────────────────────────────────────────────────


class ListeningDecoder:
    """The decoder, and the logits of every step."""

    def __init__(self, decoder: Decoder):
        self._decoder = decoder
        self.logits: list[Tensor] = []

    def __call__(
        self, ids: Tensor, positions: Tensor, batch: AttentionBatch, kv: KVPages, rows: Tensor
    ) -> Tensor:
        return self._decoder(ids, positions, batch, kv, rows)

    def compute_logits(self, hidden: Tensor) -> Tensor:
        self.logits.append(self._decoder.compute_logits(hidden).clone())
        return self.logits[-1].clone()


class Pool:
    """A runner on a tiny model, in a pool poisoned with NaN."""

    def __init__(self, model: LoadedModel):
        config = model.config
        shape = (config.num_layers, NUM_POOL_PAGES, PAGE_SIZE, config.num_kv_heads, config.head_dim)
        dtype = model.decoder.dtype
        self.kv = KVPages(*(torch.full(shape, torch.nan, dtype=dtype) for _ in range(2)))
        self.decoder = ListeningDecoder(model.decoder)
        self.runner = ModelRunner(
            self.decoder,  # type: ignore[arg-type]
            self.kv,
            get_ops("cpu"),
            eos_token_ids=frozenset(),
        )

    def continue_from(self, token_ids: Sequence[int], pages: list[PageId]) -> list[Tensor]:
        """Generate three tokens behind a prefix that is in `pages`; return the logits."""
        known, self.decoder.logits = list(token_ids), []
        for _ in range(3):
            known.append(5)
            self.runner.execute(make_step(known, len(known) - 1, pages))
        return self.decoder.logits


@pytest.fixture(params=[torch.float32, torch.bfloat16, torch.float16], ids=str)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> LoadedModel:
    source = write_gguf(make_hf_model(hf_configs()["plain"]), tmp_path / "tiny.gguf")
    return load(source, tmp_path / "weights", request.param)


def test_a_generation_goes_on_from_a_restored_prefix_as_if_nothing_had_happened(
    model: LoadedModel, tmp_path: Path
) -> None:
    before, after = Pool(model), Pool(model)
    before.runner.execute(make_step(PREFIX, 0, page_ids(6, 1, 3)))
    layout = before.runner.pool_layout(model.fingerprint)
    contents = through_a_file(tmp_path, layout, before.runner.read_pages(page_ids(6, 1, 3)))

    after.runner.write_pages(page_ids(2, 7, 0), contents)

    expected = before.continue_from(PREFIX, page_ids(6, 1, 3, 5))
    received = after.continue_from(PREFIX, page_ids(2, 7, 0, 4))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(received, expected, strict=True))
    assert all(logits.isfinite().all() for logits in received)


def test_only_the_named_pages_are_written(model: LoadedModel) -> None:
    source, target = Pool(model), Pool(model)
    source.runner.execute(make_step(PREFIX, 0, page_ids(6, 1, 3)))

    target.runner.write_pages(page_ids(2, 7), source.runner.read_pages(page_ids(6, 1)))

    assert torch.equal(target.kv.k[:, [2, 7]], source.kv.k[:, [6, 1]])
    assert torch.equal(target.kv.v[:, [2, 7]], source.kv.v[:, [6, 1]])
    assert target.kv.k[:, [0, 1, 3, 4, 5, 6]].isnan().all()


def test_leading_pages_can_be_left_out(model: LoadedModel) -> None:
    pool = Pool(model)
    pool.runner.execute(make_step(PREFIX, 0, page_ids(6, 1, 3)))
    layout = pool.runner.pool_layout("w")
    contents = pool.runner.read_pages(page_ids(6, 1, 3))

    rest = [contents.pages_from(first, layout) for first in range(3)]

    assert rest[0] == contents
    assert rest[1] == pool.runner.read_pages(page_ids(1, 3))
    assert rest[2] == pool.runner.read_pages(page_ids(3))


def test_what_was_read_does_not_change_with_the_pool(model: LoadedModel) -> None:
    pool = Pool(model)
    pool.runner.execute(make_step(PREFIX, 0, page_ids(0, 1, 2)))
    contents = pool.runner.read_pages(page_ids(0))
    before = bytes(contents.k)

    pool.kv.k.fill_(1.0)

    assert bytes(contents.k) == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_every_bit_pattern_survives_infinities_and_nans_included(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    patterns = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16)
    if dtype == torch.float32:  # every upper half: signs, exponents, infinities, quiet NaNs or not
        patterns = torch.stack([torch.ones_like(patterns), patterns], dim=1)
    pool = patterns.flatten().view(dtype).view(2, 4, 4, 1, -1)
    source, target = KVPages(pool, pool.flip(0)), KVPages(pool.clone(), torch.zeros_like(pool))
    runners = [
        ModelRunner(None, pages, get_ops("cpu"), eos_token_ids=frozenset())  # type: ignore[arg-type]
        for pages in (source, target)
    ]
    layout = runners[0].pool_layout("w")
    files = PrefixFiles(tmp_path, layout, max_bytes=NO_LIMIT)
    key = PrefixKey("", "all", tuple(range(16)))

    files.save(key, runners[0].read_pages(page_ids(0, 1, 2, 3)))
    loaded = files.load(key)
    assert loaded is not None
    runners[1].write_pages(page_ids(0, 1, 2, 3), loaded)

    for ours, theirs in ((target.k, source.k), (target.v, source.v)):
        assert torch.equal(ours.view(torch.int16), theirs.view(torch.int16))


def test_the_layout_describes_the_pool() -> None:
    pages = KVPages(*(torch.empty((3, 9, 16, 2, 64), dtype=torch.bfloat16) for _ in range(2)))
    runner = ModelRunner(None, pages, get_ops("cpu"), eos_token_ids=frozenset())  # type: ignore[arg-type]

    assert runner.pool_layout("w1") == PoolLayout("w1", "bfloat16", 2, 3, 16, 2, 64)


# ── Integers ─────────────────────────────────────────────────────────────────────────────────


def make_fake() -> FakeRunner:
    return FakeRunner(NUM_POOL_PAGES, PAGE_SIZE, next_token=sum)


def test_the_fake_engine_restores_a_prefix_too(tmp_path: Path) -> None:
    before, after = make_fake(), make_fake()
    before.execute(make_step(PREFIX, 0, page_ids(6, 1, 3)))
    contents = before.read_pages(page_ids(6, 1, 3))

    loaded = through_a_file(tmp_path, before.pool_layout("w"), contents)
    after.write_pages(page_ids(2, 7, 0), loaded)

    result = after.execute(make_step([*PREFIX, 1000], 10, page_ids(2, 7, 0)))
    assert result == {"r": sum(PREFIX) + 1000}


def test_the_fake_engine_still_notices_a_slot_that_nobody_wrote() -> None:
    before, after = make_fake(), make_fake()
    before.execute(make_step(PREFIX, 0, page_ids(6, 1, 3)))
    after.write_pages(page_ids(2, 7, 0), before.read_pages(page_ids(6, 1, 3)))

    with pytest.raises(AssertionError, match="nobody had written"):
        after.execute(make_step([*PREFIX, 5, 6], 11, page_ids(2, 7, 0)))
