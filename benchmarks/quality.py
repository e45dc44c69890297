"""What quantised weights cost in quality: perplexity on a text, and the error of logits.

The text is `quality_text.txt`, read by the default model through its decoder and ops, in chunks as
a prompt is; every token but the first is predicted from all before it. A model in bfloat16 is the
measure; the others have its weights in 8 or 4 bits. The command fails where perplexity rises by
more than the limit.

The default model's weights were rounded to 4 bits when its file was made, and so they say little of
what rounding does to weights that never were: `int4` takes them as they are. Random weights of the
same shape, drawn in bfloat16, are therefore compared as well, on the same text. Two numbers say how
far rounding moves them: the error of logits as a share of their spread; and how much higher the
rounded model's perplexity is on what the exact one would say next, whatever that is, than the exact
one's own, which is the exponential of their mean Kullback-Leibler divergence. Nothing damps errors
in such a model, and so there is no limit for it: the rows of float32, and of the same weights
rounded as GGUF files are, say what is to be expected.

    python -m benchmarks.quality [--cpu-level auto]
"""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import gguf
import torch
from gguf import GGMLQuantizationType
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from benchmarks.hugging_face import config_fields
from benchmarks.local_engine import DEVICE
from benchmarks.record import write_record
from chatserve.config import DEFAULT_MODEL
from chatserve.engine.kv_pool import allocate_kv_pages
from chatserve.environment import default_data_dir
from chatserve.kernels import get_ops
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.ops import AttentionBatch, Ops
from chatserve.model.catalog import resolve_model
from chatserve.model.checkpoint import ConvertedModel, TextAssets
from chatserve.model.config import ModelConfig
from chatserve.model.decoder import Decoder
from chatserve.model.dummy import make_dummy
from chatserve.model.peek import peek_config
from chatserve.model.precision import Quantization, summarize
from chatserve.model.weight_layout import EMBEDDING, HEAD
from chatserve.model.weights import load_weights
from chatserve.text.tokenizer import Tokenizer

TEXT = Path(__file__).with_name("quality_text.txt")
CHUNK_TOKENS = 256
PAGE_SIZE = 16
LIMITS = {"int8": 0.01, "int4": 0.06, "file": 0.06}
"""By how much perplexity may rise above that of bfloat16."""


@dataclass(frozen=True, slots=True)
class TextFigures:
    """The default model in one precision; `rise` is None for bfloat16, which is the measure."""

    quantization: str
    precision: str
    weight_mb: float
    perplexity: float
    rise: float | None

    @property
    def is_within_limit(self) -> bool:
        return self.rise is None or self.rise <= LIMITS[self.quantization]


@dataclass(frozen=True, slots=True)
class RandomFigures:
    """Random weights held in some way, beside the same in bfloat16.

    `logit_error` is the root mean square of the errors over that of the logits around their mean.
    """

    weights: str
    logit_error: float
    rise: float


@dataclass(frozen=True, slots=True)
class Reader:
    """A decoder that reads the text, each time in a pool of its own."""

    config: ModelConfig
    decoder: Decoder

    @classmethod
    def of(cls, model: ConvertedModel, ops: Ops) -> "Reader":
        return cls(model.config, Decoder(model.config, dict(model.weights), ops))

    @torch.inference_mode()
    def read(self, token_ids: Sequence[int]) -> Iterator[Tensor]:
        """Yield the logits behind each chunk of the text, [num_tokens, vocab_size]."""
        num_pages = -(-len(token_ids) // PAGE_SIZE)
        kv = allocate_kv_pages(self.config, num_pages, PAGE_SIZE, self.decoder.dtype, DEVICE)
        pages = torch.arange(num_pages, dtype=torch.int32).unsqueeze(0)
        for start in range(0, len(token_ids), CHUNK_TOKENS):
            input_ids = torch.tensor(token_ids[start : start + CHUNK_TOKENS])
            num_tokens, end = len(input_ids), start + len(input_ids)
            positions = torch.arange(start, end)
            batch = AttentionBatch(
                slot_mapping=positions,
                num_decodes=0,
                decode_page_table=pages[:0],
                decode_seq_lens=torch.empty(0, dtype=torch.int32),
                prefill_page_table=pages,
                prefill_seq_lens=torch.tensor([end], dtype=torch.int32),
                cu_seqlens_q=torch.tensor([0, num_tokens], dtype=torch.int32),
            )
            hidden = self.decoder(input_ids, positions, batch, kv, torch.arange(num_tokens))
            yield self.decoder.compute_logits(hidden)

    def perplexity(self, token_ids: Sequence[int]) -> float:
        logits = torch.cat(list(self.read(token_ids)))[:-1]
        return math.exp(cross_entropy(logits, torch.tensor(token_ids[1:])))


def measure_text(ops: Ops) -> Iterator[TextFigures]:
    """Measure the default model in bfloat16, then in the other precisions."""
    reference = None
    for quantization in Quantization.NONE, Quantization.FILE, Quantization.INT8, Quantization.INT4:
        model = _load(quantization)
        summary = summarize(model.config, model.forms, quantization, "bfloat16")
        own = Reader.of(model, ops).perplexity(_token_ids(model.text))
        yield TextFigures(
            quantization=quantization.value,
            precision=summary.precision,
            weight_mb=summary.weight_bytes / 1e6,
            perplexity=own,
            rise=None if reference is None else own / reference - 1,
        )
        reference = reference or own


def measure_random(ops: Ops) -> Iterator[RandomFigures]:
    """Compare random weights of the default model's shape with what rounding makes of them."""
    drawn = _draw(Quantization.NONE, torch.bfloat16)
    exact, token_ids = Reader.of(drawn, ops), _token_ids(drawn.text)
    others: dict[str, Callable[[], ConvertedModel]] = {
        "float32": partial(_draw, Quantization.NONE, torch.float32),
        "int8": partial(_draw, Quantization.INT8, torch.bfloat16),
        "GGUF's Q8_0": partial(_rounded_by_gguf, drawn, GGMLQuantizationType.Q8_0),
        "int4": partial(_draw, Quantization.INT4, torch.bfloat16),
        "GGUF's Q4_0": partial(_rounded_by_gguf, drawn, GGMLQuantizationType.Q4_0),
    }
    for name, make in others.items():
        yield RandomFigures(name, *compare_logits(exact, Reader.of(make(), ops), token_ids))


def compare_logits(exact: Reader, rounded: Reader, token_ids: Sequence[int]) -> tuple[float, float]:
    """Return the error of the logits over their spread, and by how much perplexity rises."""
    error = spread = divergence = 0.0
    for wanted, received in zip(exact.read(token_ids), rounded.read(token_ids), strict=True):
        error += float((received - wanted).square().sum())
        spread += float((wanted - wanted.mean(1, keepdim=True)).square().sum())
        logs = received.log_softmax(1), wanted.log_softmax(1)
        divergence += float(kl_div(*logs, reduction="sum", log_target=True))
    return math.sqrt(error / spread), math.expm1(divergence / len(token_ids))


def _token_ids(text: TextAssets) -> list[int]:
    return Tokenizer.from_json(text.tokenizer_json).encode(TEXT.read_text())


def _load(quantization: Quantization) -> ConvertedModel:
    data_dir = default_data_dir()
    return load_weights(
        resolve_model(DEFAULT_MODEL, data_dir),
        dtype=torch.bfloat16,
        cache_dir=data_dir / "weights",
        quantization=quantization,
    )


def _draw(quantization: Quantization, dtype: torch.dtype) -> ConvertedModel:
    default_model = resolve_model(DEFAULT_MODEL, default_data_dir())
    with tempfile.TemporaryDirectory() as folder:
        fields = config_fields(peek_config(default_model))
        (Path(folder) / "config.json").write_text(json.dumps(fields))
        return make_dummy(Path(folder), quantization, dtype, default_model)


def _rounded_by_gguf(model: ConvertedModel, kind: GGMLQuantizationType) -> ConvertedModel:
    """Return the model with matrices rounded as converters for llama.cpp do, the head in 8 bits."""
    weights = dict(model.weights)
    weights[HEAD] = weights[EMBEDDING]
    for name, weight in weights.items():
        assert isinstance(weight, Tensor), name
        if name == EMBEDDING or weight.ndim == 1:
            continue
        own_kind = GGMLQuantizationType.Q8_0 if name == HEAD else kind
        values = weight.float().numpy()
        rounded = gguf.dequantize(gguf.quantize(values, own_kind), own_kind)
        weights[name] = torch.from_numpy(rounded).to(model.dtype)
    return replace(model, weights=weights)


# ── Report ───────────────────────────────────────────────────────────────────────────────────


def print_text_figures(figures: TextFigures) -> None:
    is_measured = figures.rise is not None
    cells = (
        f"{figures.quantization} ({figures.precision})",
        f"{figures.weight_mb:.0f}",
        f"{figures.perplexity:.3f}",
        f"{figures.rise:+.2%}" if is_measured else "",
        f"{LIMITS[figures.quantization]:.0%}" if is_measured else "",
    )
    print(f"| {' | '.join(cells)} |", flush=True)


def print_random_figures(figures: RandomFigures) -> None:
    print(f"| {figures.weights} | {figures.logit_error:.2%} | {figures.rise:+.2%} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    levels = ("auto", *LEVELS, "torch")
    parser.add_argument("--cpu-level", default="auto", choices=levels, help="as the engine's")
    ops = get_ops(DEVICE, parser.parse_args().cpu_level)
    text_figures, random_figures = [], []
    print("| default model | read, MB | perplexity | rise | limit |\n|---|---:|---:|---:|---:|")
    for of_text in measure_text(ops):
        text_figures.append(of_text)
        print_text_figures(of_text)
    print("\n| random weights | logit error | perplexity rise |\n|---|---:|---:|")
    for of_random in measure_random(ops):
        random_figures.append(of_random)
        print_random_figures(of_random)
    record = {
        "backend": type(ops).__name__,
        "limits": LIMITS,
        "default_model": [asdict(each) for each in text_figures],
        "random_weights": [asdict(each) for each in random_figures],
    }
    print(f"\nraw figures: {write_record('quality', record)}")
    beyond = [each.quantization for each in text_figures if not each.is_within_limit]
    sys.exit(f"beyond the limit: {', '.join(beyond)}" if beyond else 0)


if __name__ == "__main__":
    main()
