"""What the set-up of the peers writes, and when it takes a step for done."""

import json
from pathlib import Path

import pytest
import torch
from gguf import GGUFReader, GGUFValueType
from safetensors.torch import load_file

from benchmarks.peers import sweep
from benchmarks.peers.install import text_requirements
from benchmarks.peers.layout import PeerFolder, PeerModel, Precision
from benchmarks.peers.random_model import VOCAB_SIZE, filled_up
from benchmarks.peers.servers import LlamaFlags
from benchmarks.peers.weights import (
    GGUFField,
    header_fields,
    hf_name,
    write_gguf,
    write_safetensors,
)


def test_matrices_are_written_in_bfloat16_and_vectors_in_float32(tmp_path: Path) -> None:
    matrix = torch.arange(8, dtype=torch.bfloat16).view(2, 4)
    path = tmp_path / "tiny.gguf"
    name = GGUFField("general.name", "tiny", (GGUFValueType.STRING,))

    write_gguf(path, "llama", [name], {"token_embd.weight": matrix, "norm": torch.ones(3)})

    matrix_read, vector_read = GGUFReader(str(path)).tensors
    read = torch.from_numpy(matrix_read.data.copy()).view(torch.bfloat16)
    assert torch.equal(read, matrix)
    assert matrix_read.shape.tolist() == [4, 2]
    assert vector_read.data.tolist() == [1.0, 1.0, 1.0]
    assert not path.with_suffix(".partial").exists()


def test_a_header_is_copied_apart_from_what_its_writer_sets(tmp_path: Path) -> None:
    tokens = GGUFField(
        "tokenizer.ggml.tokens", ["a", "b"], (GGUFValueType.ARRAY, GGUFValueType.STRING)
    )
    file_type = GGUFField("general.file_type", 3, (GGUFValueType.UINT32,))
    write_gguf(tmp_path / "source.gguf", "llama", [tokens, file_type], {"norm": torch.ones(3)})

    fields = {f.key: f.value for f in header_fields(GGUFReader(str(tmp_path / "source.gguf")))}

    assert fields == {"tokenizer.ggml.tokens": ["a", "b"], "general.file_type": 32}


def test_names_of_tensors_become_those_of_a_hugging_face_folder(tmp_path: Path) -> None:
    tensors = {"blk.3.attn_q.bias": torch.ones(2), "output_norm.weight": torch.ones(3)}

    write_safetensors(tmp_path, tensors)

    written = load_file(tmp_path / "model.safetensors")
    assert set(written) == {"model.layers.3.self_attn.q_proj.bias", "model.norm.weight"}
    assert {tensor.dtype for tensor in written.values()} == {torch.bfloat16}
    assert hf_name("blk.0.ffn_down.weight") == "model.layers.0.mlp.down_proj.weight"


def test_a_vocabulary_is_filled_up_with_tokens_that_can_be_seen() -> None:
    tokens = filled_up(["a", "b"])

    assert len(tokens) == len(set(tokens)) == VOCAB_SIZE
    assert tokens[:3] == ["a", "b", "<unused2>"]


def test_what_serves_no_text_is_not_installed() -> None:
    requirements = [
        "torch==2.13.0+cpu; platform_machine == 'x86_64'",
        "torchaudio; platform_machine != 's390x'",
        "tokenizers>=0.21",
        "fastapi[standard]>=0.115",
        "librosa; extra == 'audio'",
        "setuptools==78.1.1",
    ]

    assert text_requirements(requirements) == ["tokenizers>=0.21", "fastapi[standard]>=0.115"]


def test_weights_are_there_when_every_file_is(tmp_path: Path) -> None:
    folder = PeerFolder(tmp_path)
    folder.hf_folder(PeerModel.DEFAULT).mkdir()
    for file in (folder.hf_weights(PeerModel.DEFAULT), *folder.ggufs(PeerModel.DEFAULT)):
        file.touch()

    assert folder.has_weights(PeerModel.DEFAULT)
    assert not folder.has_weights(PeerModel.QWEN_SHAPE)

    folder.gguf(PeerModel.DEFAULT, Precision.Q4_0).unlink()

    assert not folder.has_weights(PeerModel.DEFAULT)


def test_the_newest_sweep_says_how_llama_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "RESULTS", tmp_path)
    assert sweep.recorded_best() == LlamaFlags()

    for day, slots in ((1, 4), (2, 16)):
        best = {"num_slots": slots, "batch": 512, "micro_batch": 128, "context": 32768}
        record = tmp_path / f"llama-sweep-2026-01-0{day}.json"
        record.write_text(json.dumps({"best": best}))

    assert sweep.recorded_best() == LlamaFlags(num_slots=16, batch=512, micro_batch=128)
