"""Tiny seeded models in both source formats, and a plain way to run a decoder over one prompt."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import gguf
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from chatserve.kernels.ops import AttentionBatch, KVPages
from chatserve.kernels.torch_ops import TorchOps
from chatserve.model.precision import Quantization
from chatserve.model.weights import LoadedModel, load_model, load_weights

HfConfig = LlamaConfig | MistralConfig | Qwen2Config

PAGE_SIZE = 4
_F32 = gguf.GGMLQuantizationType.F32
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}<|im_end|>{% endfor %}"
_CORPUS = ("the cat sat on the mat", "many pages hold the tokens of many requests", "naïve café 42")

_SIZES: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def hf_configs() -> dict[str, HfConfig]:
    """Return one configuration per switch of the decoder, by the name of the switch."""
    return {
        "plain": LlamaConfig(**_SIZES, tie_word_embeddings=False),
        "tied": LlamaConfig(**_SIZES, tie_word_embeddings=True),
        "wide-heads": LlamaConfig(**_SIZES, head_dim=16),
        "attention-bias": LlamaConfig(**_SIZES, attention_bias=True),
        "llama3-rope": LlamaConfig(**_SIZES, rope_parameters=_LLAMA3_ROPE),
        "mistral": MistralConfig(**_SIZES, sliding_window=None),
        "qwen2": Qwen2Config(**_SIZES),
    }


def make_hf_model(config: HfConfig) -> Any:
    """Return a transformers model of random weights, large enough that logits differ clearly."""
    torch.manual_seed(0)
    model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def make_tokenizer() -> Tokenizer:
    """Return a byte-level BPE tokenizer of at most the models' vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_SIZES["vocab_size"],
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    return tokenizer


def write_hf_folder(model: Any, folder: Path, **save_options: Any) -> Path:
    """Save a model with its tokenizer the way Hugging Face lays a folder out."""
    model.save_pretrained(folder, **save_options)
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=make_tokenizer(),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        chat_template=CHAT_TEMPLATE,
    )
    tokenizer.save_pretrained(folder)
    return folder


def load(path: Path, cache_dir: Path, dtype: torch.dtype = torch.float32) -> LoadedModel:
    return load_model(path, dtype=dtype, device="cpu", cache_dir=cache_dir, ops=TorchOps())


def load_tensors(
    path: Path,
    cache_dir: Path,
    dtype: torch.dtype = torch.float32,
    quantization: Quantization = Quantization.NONE,
) -> dict[str, Tensor]:
    """Return what a decoder would be built from; quantised weights as their parts."""
    model = load_weights(path, dtype=dtype, cache_dir=cache_dir, quantization=quantization)
    tensors: dict[str, Tensor] = {}
    for name, weight in model.weights.items():
        if isinstance(weight, Tensor):
            tensors[name] = weight
            continue
        tensors |= {f"{name}.codes": weight.codes, f"{name}.scales": weight.scales}
        if weight.mins is not None:
            tensors[f"{name}.mins"] = weight.mins
    return tensors


def assert_same_tensors(received: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert received.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(received[name], expected[name])] == []


def write_gguf(
    model: Any,
    path: Path,
    *,
    customise: Callable[[gguf.GGUFWriter], None] = lambda writer: None,
    quantise: gguf.GGMLQuantizationType | Mapping[str, gguf.GGMLQuantizationType] = _F32,
) -> Path:
    """Write a model as converters for llama.cpp do: q and k rows of llama models permuted.

    `customise` may add or replace metadata. Matrices are stored as `quantise` says, which may be
    by a part of their GGUF name.
    """
    config = model.config
    writer = gguf.GGUFWriter(path, _gguf_architecture(config))
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_key_length(_head_dim(config))
    _add_tokenizer(writer, config.vocab_size)
    customise(writer)
    _add_tensors(writer, model, quantise)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class DecoderRig:
    """Runs a decoder over several sequences, step by step, in a pool poisoned with NaN.

    Owns: the KV pool, the pages of each sequence and how far it has been computed.
    """

    def __init__(self, model: LoadedModel, num_sequences: int = 1):
        config = model.config
        self._decoder = model.decoder
        self._max_pages = -(-config.max_position_embeddings // PAGE_SIZE)
        num_pages = num_sequences * self._max_pages
        shape = (config.num_layers, num_pages, PAGE_SIZE, config.num_kv_heads, config.head_dim)
        dtype = model.decoder.dtype
        self._kv = KVPages(*(torch.full(shape, math.nan, dtype=dtype) for _ in range(2)))
        shuffled = torch.randperm(num_pages, generator=torch.Generator().manual_seed(0))
        self._pages = shuffled.view(num_sequences, self._max_pages)
        self._num_computed = [0] * num_sequences

    @torch.inference_mode()
    def step(self, new_token_ids: dict[int, Sequence[int]]) -> dict[int, Tensor]:
        """Compute new tokens of some sequences in one pass; return their logits [n, vocab]."""
        decodes = [row for row, ids in new_token_ids.items() if len(ids) == 1]
        prefills = [row for row, ids in new_token_ids.items() if len(ids) > 1]
        rows = decodes + prefills
        lengths = [len(new_token_ids[row]) for row in rows]
        positions = torch.cat([self._advance(row, len(new_token_ids[row])) for row in rows])
        pages = torch.cat(
            [self._pages[row].expand(n, -1) for row, n in zip(rows, lengths, strict=True)]
        )
        page_of_token = pages.gather(1, (positions // PAGE_SIZE)[:, None])[:, 0]
        batch = AttentionBatch(
            slot_mapping=page_of_token * PAGE_SIZE + positions % PAGE_SIZE,
            num_decodes=len(decodes),
            decode_page_table=self._pages[decodes].int(),
            decode_seq_lens=self._seq_lens(decodes),
            prefill_page_table=self._pages[prefills].int(),
            prefill_seq_lens=self._seq_lens(prefills),
            cu_seqlens_q=torch.tensor([0, *accumulate(lengths[len(decodes) :])], dtype=torch.int32),
        )
        input_ids = torch.tensor([token for row in rows for token in new_token_ids[row]])
        every_row = torch.arange(len(input_ids))
        hidden = self._decoder(input_ids, positions, batch, self._kv, every_row)
        logits = torch.split(self._decoder.compute_logits(hidden), lengths)
        return dict(zip(rows, logits, strict=True))

    def greedy(self, prompt: Sequence[int], num_tokens: int) -> list[int]:
        """Continue a prompt in the first sequence."""
        output: list[int] = []
        new: Sequence[int] = prompt
        while len(output) < num_tokens:
            output.append(int(self.step({0: new})[0][-1].argmax()))
            new = output[-1:]
        return output

    def _advance(self, row: int, count: int) -> Tensor:
        start = self._num_computed[row]
        self._num_computed[row] += count
        return torch.arange(start, start + count)

    def _seq_lens(self, rows: Sequence[int]) -> Tensor:
        return torch.tensor([self._num_computed[row] for row in rows], dtype=torch.int32)


def _gguf_architecture(config: Any) -> str:
    """Return GGUF's name; the format knows Mistral's models as llama."""
    return "llama" if config.model_type == "mistral" else str(config.model_type)


def _head_dim(config: Any) -> int:
    own = getattr(config, "head_dim", None)
    return int(own or config.hidden_size // config.num_attention_heads)


def _add_tokenizer(writer: gguf.GGUFWriter, vocab_size: int) -> None:
    """Add the tokenizer, its vocabulary padded to the size of the embedding."""
    trained = json.loads(make_tokenizer().to_str())["model"]
    tokens = sorted(trained["vocab"], key=trained["vocab"].__getitem__)
    num_unused = vocab_size - len(tokens)
    types = [
        gguf.TokenType.CONTROL if t in SPECIAL_TOKENS else gguf.TokenType.NORMAL for t in tokens
    ]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*tokens, *(f"[PAD{i}]" for i in range(num_unused))])
    writer.add_token_types([*types, *[gguf.TokenType.UNUSED] * num_unused])
    writer.add_token_merges([" ".join(merge) for merge in trained["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHAT_TEMPLATE)


def _add_tensors(
    writer: gguf.GGUFWriter,
    model: Any,
    quantise: gguf.GGMLQuantizationType | Mapping[str, gguf.GGMLQuantizationType],
) -> None:
    config: Any = model.config
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    state = model.state_dict()
    if config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for hf_name, tensor in state.items():
        values = tensor.numpy()
        if _gguf_architecture(config) == "llama":
            values = _permuted(hf_name, values, config)
        name = names.get_name(hf_name, try_suffixes=(".weight", ".bias"))
        assert name is not None, hf_name
        kind = _kind_of(name, quantise) if values.ndim == 2 else _F32
        if kind == _F32:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    if config.rope_parameters["rope_type"] == "llama3":
        scaled = model.model.rotary_emb.inv_freq
        pairs = torch.arange(0, _head_dim(config), 2) / _head_dim(config)
        plain = config.rope_parameters["rope_theta"] ** -pairs
        writer.add_tensor("rope_freqs.weight", (plain / scaled).float().numpy())


def _kind_of(
    name: str, quantise: gguf.GGMLQuantizationType | Mapping[str, gguf.GGMLQuantizationType]
) -> gguf.GGMLQuantizationType:
    if not isinstance(quantise, Mapping):
        return quantise
    return next((kind for part, kind in quantise.items() if part in name), _F32)


def _permuted(hf_name: str, values: Any, config: Any) -> Any:
    """Interleave the two rotary halves of each head's rows."""
    num_heads = {
        "q_proj": config.num_attention_heads,
        "k_proj": config.num_key_value_heads,
    }.get(hf_name.split(".")[-2])
    if num_heads is None:
        return values
    rows = values.reshape(num_heads, 2, -1, *values.shape[1:])
    return rows.swapaxes(1, 2).reshape(values.shape).copy()
