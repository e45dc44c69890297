"""Quantised GGUF matrices: the file's own numbers, stacked and reordered without rounding."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from engine.model_helpers import DecoderRig, hf_configs, load_tensors, make_hf_model, write_gguf

from chatserve.kernels.quantized import GROUP_SIZE, QuantizedWeight
from chatserve.kernels.torch_ops import TorchOps
from chatserve.model import precision
from chatserve.model.gguf import open_gguf
from chatserve.model.gguf_blocks import quantized_from_blocks
from chatserve.model.peek import peek_model
from chatserve.model.precision import Form, Quantization
from chatserve.model.weights import load_model, load_weights

KINDS = ["Q8_0", "Q4_0", "Q4_1"]
QKV = "layers.1.attention.qkv_proj.weight"
CONFIGS = hf_configs()


def write_quantised(tmp_path: Path, name: str, **kinds: str) -> Path:
    """Write a tiny model; matrices whose name has this part are stored like this."""
    quantise = {part: gguf.GGMLQuantizationType[kind] for part, kind in kinds.items()}
    return write_gguf(make_hf_model(CONFIGS[name]), tmp_path / "file.gguf", quantise=quantise)


def dequantised_by_gguf(file: Path, name: str) -> np.ndarray:
    (stored,) = (each for each in gguf.GGUFReader(file).tensors if each.name == name)
    return np.array(gguf.dequantize(stored.data, stored.tensor_type))


@pytest.mark.parametrize("kind", KINDS)
def test_codes_stand_for_the_numbers_that_gguf_reads(kind: str, tmp_path: Path) -> None:
    file = write_quantised(tmp_path, "qwen2", ffn_up=kind)

    weight = open_gguf(file).read_tensor("model.layers.1.mlp.up_proj.weight")

    assert isinstance(weight, QuantizedWeight)
    assert weight.bits == (8 if kind == "Q8_0" else 4)
    expected = torch.from_numpy(dequantised_by_gguf(file, "blk.1.ffn_up.weight"))
    assert torch.equal(weight.dequantize(torch.float32), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_every_code_and_extreme_scales_survive(kind: str, tmp_path: Path) -> None:
    ggml_type = gguf.GGMLQuantizationType[kind]
    _, block_bytes = gguf.GGML_QUANT_SIZES[ggml_type]
    blocks = np.random.default_rng(0).integers(0, 256, (64, 3, block_bytes), dtype=np.uint8)
    blocks[..., [1, 3]] &= 0xBB  # no exponent of all ones: scales and mins are finite

    weight = quantized_from_blocks(blocks, Form(kind))

    expected = gguf.dequantize(blocks.reshape(64, -1), ggml_type)
    assert torch.equal(weight.dequantize(torch.float32), torch.from_numpy(expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["plain", "qwen2"])
def test_fused_weights_are_the_stacked_and_reordered_rows_of_the_file(
    kind: str, name: str, tmp_path: Path
) -> None:
    file = write_quantised(tmp_path, name, attn_=kind)
    dense = write_gguf(make_hf_model(CONFIGS[name]), tmp_path / "dense.gguf")

    kept = load_weights(
        file, dtype=torch.float32, cache_dir=tmp_path / "c", quantization=Quantization.FILE
    ).weights[QKV]
    dequantised = load_tensors(file, tmp_path / "c")[QKV]
    original = load_tensors(dense, tmp_path / "c")[QKV]

    assert isinstance(kept, QuantizedWeight)
    assert torch.equal(kept.dequantize(torch.float32), dequantised)
    assert (dequantised - original).abs().max() < 0.1


def test_parts_of_several_types_are_stacked_in_8_bits(tmp_path: Path) -> None:
    file = write_quantised(tmp_path, "plain", attn_v="Q8_0", attn_q="Q4_1", attn_k="Q4_1")

    kept = load_weights(
        file, dtype=torch.float32, cache_dir=tmp_path / "c", quantization=Quantization.FILE
    ).weights[QKV]

    assert isinstance(kept, QuantizedWeight)
    assert kept.bits == 8
    dequantised = load_tensors(file, tmp_path / "c")[QKV]
    torch.testing.assert_close(kept.dequantize(torch.float32), dequantised, rtol=0, atol=0.005)


@pytest.mark.parametrize("name", ["plain", "tied"])
def test_a_quantised_embedding_is_a_dense_table_and_a_tied_one_also_a_quantised_head(
    name: str, tmp_path: Path
) -> None:
    file = write_quantised(tmp_path, name, token_embd="Q8_0")

    weights = load_weights(
        file, dtype=torch.bfloat16, cache_dir=tmp_path / "c", quantization=Quantization.FILE
    ).weights

    table, head = weights["embed_tokens.weight"], weights["lm_head.weight"]
    assert isinstance(table, torch.Tensor)
    assert table.dtype == torch.bfloat16
    assert isinstance(head, QuantizedWeight) == (name == "tied")
    if isinstance(head, QuantizedWeight):
        assert torch.equal(head.dequantize(torch.bfloat16), table)


@pytest.mark.parametrize("quantization", Quantization)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cached_is_what_was_converted(
    kind: str, quantization: Quantization, tmp_path: Path
) -> None:
    file = write_quantised(tmp_path, "tied", attn_=kind, ffn_=kind, token_embd="Q8_0")

    converted = load_tensors(file, tmp_path / "c", torch.bfloat16, quantization)
    cached = load_tensors(file, tmp_path / "c", torch.bfloat16, quantization)

    assert len(list((tmp_path / "c").iterdir())) == 1
    assert cached.keys() == converted.keys()
    assert all(torch.equal(cached[name], converted[name]) for name in converted)


def test_the_decoder_computes_with_quantised_weights_as_with_their_values(tmp_path: Path) -> None:
    file = write_quantised(tmp_path, "tied", attn_="Q4_1", ffn_="Q4_0", token_embd="Q8_0")
    token_ids = [1, 17, 250, 3, 99, 42]

    kept, dense = (
        load_model(
            file,
            dtype=torch.float32,
            device="cpu",
            cache_dir=tmp_path / "c",
            ops=TorchOps(),
            quantization=quantization,
        )
        for quantization in (Quantization.FILE, Quantization.NONE)
    )

    logits = DecoderRig(kept).step({0: token_ids})[0]
    torch.testing.assert_close(logits, DecoderRig(dense).step({0: token_ids})[0])
    assert kept.fingerprint != dense.fingerprint
    assert (kept.precision, dense.precision) == ("Q4_0", "f32")


@pytest.mark.parametrize("quantization", Quantization)
@pytest.mark.parametrize("kind", [*KINDS, "F16", "Q5_0"])
def test_a_peek_counts_the_very_bytes_that_loading_reads(
    kind: str, quantization: Quantization, tmp_path: Path
) -> None:
    file = write_quantised(tmp_path, "tied", attn_=kind, ffn_down=kind)

    expected = peek_model(file).summarize(quantization, "bfloat16")

    tensors = load_tensors(file, tmp_path / "c", torch.bfloat16, quantization)
    if any(name.startswith("lm_head.weight") for name in tensors):
        del tensors["embed_tokens.weight"]
    assert expected.weight_bytes == sum(tensor.nbytes for tensor in tensors.values())


def test_groups_are_as_large_for_the_rule_as_for_the_weights() -> None:
    assert precision.GROUP_SIZE == GROUP_SIZE
