"""The default model in this process: loaded once, with as many engines around it as one asks for.

Owns the weights and how an engine is put together without gateway, store and thread. Whoever wants
to see logits hands in an observer; the engine is the one that serves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from benchmarks.stepped_engine import SteppedEngine
from chatserve.cache.prefix_cache import PrefixCache
from chatserve.config import DEFAULT_MODEL
from chatserve.engine.api import RequestId
from chatserve.engine.kv_pool import allocate_kv_pages
from chatserve.engine.model_runner import ModelRunner
from chatserve.engine.runner import Runner
from chatserve.engine.scheduler import Scheduler, SchedulerConfig, SchedulerOutput
from chatserve.environment import default_data_dir
from chatserve.kernels import get_ops
from chatserve.kernels.ops import AttentionBatch, KVPages, Ops
from chatserve.model.catalog import resolve_model
from chatserve.model.decoder import Decoder
from chatserve.model.weights import LoadedModel, load_model
from chatserve.planning.dtype import resolve_dtype
from chatserve.planning.machine import one_pool
from chatserve.text.tokenizer import Tokenizer

DEVICE = "cpu"
MAX_NUM_BATCHED_TOKENS = 512

OnLogits = Callable[[RequestId, int, Tensor], None]
"""Takes a request's next token and the logits [vocab_size], float32, that it was chosen from."""


@dataclass(frozen=True, slots=True)
class EngineShape:
    """What may differ between two engines on the same weights."""

    num_pages: int
    page_size: int = 16
    prefix_cache: bool = True
    max_num_seqs: int = 256
    max_num_batched_tokens: int = MAX_NUM_BATCHED_TOKENS


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A loaded model that engines are built around.

    Owns: weights, ops and tokenizer, shared by its engines, which must run one at a time.
    """

    model: LoadedModel
    ops: Ops
    tokenizer: Tokenizer

    @classmethod
    def around(cls, model: LoadedModel, ops: Ops) -> "LocalModel":
        return cls(model, ops, Tokenizer.from_json(model.tokenizer_json))

    @property
    def dtype(self) -> torch.dtype:
        return self.model.decoder.dtype

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def page_bytes(self, page_size: int) -> int:
        return page_size * self.model.config.kv_bytes_per_token(self.dtype.itemsize)

    def engine(self, shape: EngineShape, on_logits: OnLogits | None = None) -> SteppedEngine:
        """Return an engine with a pool and a cache of its own, both empty."""
        return SteppedEngine(self.scheduler(shape), self._runner(shape, on_logits), self.tokenizer)

    def scheduler(self, shape: EngineShape) -> Scheduler:
        """Return a scheduler with a cache of its own, for who brings a runner."""
        return Scheduler(
            SchedulerConfig(
                max_num_seqs=shape.max_num_seqs,
                max_num_batched_tokens=shape.max_num_batched_tokens,
                max_model_len=self.model.config.max_position_embeddings,
                eos_token_ids=frozenset(self.model.eos_token_ids),
            ),
            PrefixCache(shape.num_pages, shape.page_size, enabled=shape.prefix_cache),
        )

    def pages(self, shape: EngineShape) -> KVPages:
        config = self.model.config
        return allocate_kv_pages(config, shape.num_pages, shape.page_size, self.dtype, DEVICE)

    def _runner(self, shape: EngineShape, on_logits: OnLogits | None) -> Runner:
        eos, pages = frozenset(self.model.eos_token_ids), self.pages(shape)
        if on_logits is None:
            return ModelRunner(self.model.decoder, pages, self.ops, eos_token_ids=eos)
        # Who looks at logits wants them right: a slot that was never written must not pass.
        pages.k.fill_(torch.nan)
        pages.v.fill_(torch.nan)
        tap = _LogitsTap(self.model.decoder)
        runner = ModelRunner(cast(Decoder, tap), pages, self.ops, eos_token_ids=eos)
        return _ObservedRunner(runner, tap, on_logits)


def load_local_model(dtype: str) -> LocalModel:
    """Load the default model; `dtype` is one of the engine's setting, `auto` included.

    Raises:
        ConfigError: The model has not been fetched.
    """
    data_dir, ops = default_data_dir(), get_ops(DEVICE)
    torch_dtype = resolve_dtype(dtype, DEVICE, ops)
    model = load_model(
        resolve_model(DEFAULT_MODEL, data_dir),
        dtype=torch_dtype,
        device=DEVICE,
        cache_dir=data_dir / "weights",
        ops=ops,
    )
    one_pool(ops, torch_dtype)
    return LocalModel.around(model, ops)


class _LogitsTap:
    """Stands in front of a decoder and keeps the logits of its last step."""

    def __init__(self, decoder: Decoder):
        self.logits: Tensor | None = None  # [num_sampling_runs, vocab_size], float32
        self._decoder = decoder

    def __call__(
        self,
        input_ids: Tensor,
        positions: Tensor,
        attention: AttentionBatch,
        kv: KVPages,
        rows: Tensor,
    ) -> Tensor:
        self.logits = None
        return self._decoder(input_ids, positions, attention, kv, rows)

    def compute_logits(self, hidden: Tensor) -> Tensor:
        self.logits = self._decoder.compute_logits(hidden)
        return self.logits


class _ObservedRunner:
    """Shows an observer the logits behind every token."""

    def __init__(self, inner: Runner, tap: _LogitsTap, on_logits: OnLogits):
        self._inner = inner
        self._tap = tap
        self._on_logits = on_logits

    def execute(self, output: SchedulerOutput) -> Mapping[RequestId, int | None]:
        sampled = self._inner.execute(output)
        if self._tap.logits is not None:
            # A runner answers in the order of its rows.
            for (request_id, token_id), logits in zip(
                sampled.items(), self._tap.logits, strict=True
            ):
                assert token_id is not None, f"{request_id}: logits that are not finite"
                self._on_logits(request_id, token_id, logits)
        return sampled
