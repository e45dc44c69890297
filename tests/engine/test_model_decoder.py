"""The decoder against transformers on tiny seeded models, one per switch of its configuration."""

from pathlib import Path

import pytest
import torch
from engine.model_helpers import (
    DecoderRig,
    hf_configs,
    load,
    make_hf_model,
    write_gguf,
    write_hf_folder,
)
from torch import Tensor

PROMPT = [1, 17, 250, 3, 99, 42, 7, 311, 64, 128, 5, 200, 33]
CONFIGS = hf_configs()


@torch.inference_mode()
def reference_logits(name: str, token_ids: list[int]) -> Tensor:
    model = make_hf_model(CONFIGS[name])
    logits: Tensor = model(torch.tensor([token_ids])).logits[0]
    return logits


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_of_a_hugging_face_folder_equal_transformers(name: str, tmp_path: Path) -> None:
    folder = write_hf_folder(make_hf_model(CONFIGS[name]), tmp_path / "model")

    logits = DecoderRig(load(folder, tmp_path / "cache")).step({0: PROMPT})[0]

    torch.testing.assert_close(logits, reference_logits(name, PROMPT), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_of_a_gguf_file_equal_transformers(name: str, tmp_path: Path) -> None:
    file = write_gguf(make_hf_model(CONFIGS[name]), tmp_path / "model.gguf")

    logits = DecoderRig(load(file, tmp_path / "cache")).step({0: PROMPT})[0]

    torch.testing.assert_close(logits, reference_logits(name, PROMPT), rtol=1e-4, atol=1e-4)


def test_scaled_rotary_frequencies_matter_at_all() -> None:
    plain, scaled = (reference_logits(name, PROMPT) for name in ("plain", "llama3-rope"))

    assert (plain - scaled).abs().max() > 0.01


def test_chunks_and_single_tokens_give_the_logits_of_one_pass(tmp_path: Path) -> None:
    model = load(write_hf_folder(make_hf_model(CONFIGS["plain"]), tmp_path / "m"), tmp_path / "c")
    whole = DecoderRig(model).step({0: PROMPT})[0]
    rig = DecoderRig(model)

    pieces = [
        rig.step({0: piece})[0] for piece in (PROMPT[:5], PROMPT[5:6], PROMPT[6:7], PROMPT[7:])
    ]

    torch.testing.assert_close(torch.cat(pieces), whole, rtol=1e-4, atol=1e-4)


def test_sequences_of_a_mixed_step_do_not_see_each_other(tmp_path: Path) -> None:
    model = load(write_hf_folder(make_hf_model(CONFIGS["plain"]), tmp_path / "m"), tmp_path / "c")
    other = [9, 300, 12, 77, 1, 1, 250]
    alone = [DecoderRig(model).step({0: token_ids})[0] for token_ids in (PROMPT, other)]
    rig = DecoderRig(model, num_sequences=2)
    rig.step({0: PROMPT[:-1]})

    mixed = rig.step({0: PROMPT[-1:], 1: other})

    torch.testing.assert_close(mixed[0][-1], alone[0][-1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(mixed[1], alone[1], rtol=1e-4, atol=1e-4)


def test_bfloat16_weights_give_nearly_the_logits_of_float32(tmp_path: Path) -> None:
    folder = write_hf_folder(make_hf_model(CONFIGS["tied"]), tmp_path / "model")

    logits = DecoderRig(load(folder, tmp_path / "c", torch.bfloat16)).step({0: PROMPT})[0]

    exact = reference_logits("tied", PROMPT)
    assert logits.dtype == torch.float32
    assert torch.cosine_similarity(logits, exact, dim=-1).min() > 0.99


def test_kv_bytes_per_token_counts_keys_and_values_of_all_layers(tmp_path: Path) -> None:
    folder = write_hf_folder(make_hf_model(CONFIGS["plain"]), tmp_path / "model")

    config = load(folder, tmp_path / "cache").config

    assert config.kv_bytes_per_token(torch.bfloat16.itemsize) == 2 * 3 * 2 * 8 * 2
