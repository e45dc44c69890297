"""Loading and the weight cache: converted once, never stale, never trusted when damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.model_helpers import (
    assert_same_tensors,
    hf_configs,
    load,
    load_tensors,
    make_hf_model,
    write_gguf,
    write_hf_folder,
)
from safetensors import safe_open
from safetensors.torch import save_file

from chatserve.errors import ModelError
from chatserve.model import weight_cache


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_gguf(make_hf_model(hf_configs()["tied"]), tmp_path / "tiny.gguf")


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_second_load_takes_everything_from_the_cache(source: Path, cache_dir: Path) -> None:
    first = load(source, cache_dir)
    (cached,) = cache_dir.iterdir()
    inode = cached.stat().st_ino

    second = load(source, cache_dir)

    assert cached.stat().st_ino == inode
    for field in set(first.__slots__) - {"decoder"}:
        assert getattr(second, field) == getattr(first, field)


def test_each_dtype_has_its_own_cache_file(source: Path, cache_dir: Path) -> None:
    load_tensors(source, cache_dir, torch.float32)

    in_half = load_tensors(source, cache_dir, torch.bfloat16)

    assert len(list(cache_dir.iterdir())) == 2
    assert {tensor.dtype for tensor in in_half.values()} == {torch.bfloat16}


def test_a_changed_source_is_converted_anew(source: Path, cache_dir: Path) -> None:
    before = load(source, cache_dir)

    write_gguf(make_hf_model(hf_configs()["plain"]), source)
    after = load(source, cache_dir)

    assert after.fingerprint != before.fingerprint
    assert not after.config.tie_word_embeddings


@pytest.mark.parametrize("kept_bytes", [0, 7, 300, -1])
def test_a_damaged_cache_file_is_reported_and_rebuilt(
    source: Path, cache_dir: Path, kept_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    expected = load_tensors(source, cache_dir)
    (cached,) = cache_dir.iterdir()
    whole = cached.read_bytes()
    cached.unlink()  # a new file: the old one is still mapped
    cached.write_bytes(whole[:kept_bytes])

    received = load_tensors(source, cache_dir)

    assert_same_tensors(received, expected)
    assert cached.read_bytes() == whole
    assert "damaged weight cache" in caplog.text


def test_a_cache_folder_that_cannot_be_written_costs_only_time(
    source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = load_tensors(source, tmp_path / "cache")
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where the folder should be")

    received = load_tensors(source, occupied / "cache")

    assert_same_tensors(received, expected)
    assert "cannot cache the converted weights" in caplog.text


def test_an_interrupted_conversion_leaves_no_file(
    source: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(tensors: object, file: Path, metadata: object) -> None:
        file.write_bytes(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr(weight_cache, "save_file", interrupted)

    with pytest.raises(KeyboardInterrupt):
        load(source, cache_dir)

    assert list(cache_dir.iterdir()) == []


def test_a_source_that_is_not_there_is_named(tmp_path: Path, cache_dir: Path) -> None:
    with pytest.raises(ModelError, match=r"there is no model at .*missing"):
        load(tmp_path / "missing", cache_dir)


@pytest.mark.parametrize(
    ("outdated", "stays"),
    [
        ("tiny-float32-v1-0123456789abcdef.safetensors", False),
        ("tiny-float32-none-v1-0123456789abcdef.safetensors", False),
        ("tiny-float32-none-v99-0123456789abcdef.safetensors", False),
        ("tiny-float32-int8-v2-0123456789abcdef.safetensors", True),
        ("tiny-bfloat16-none-v2-0123456789abcdef.safetensors", True),
        ("tiny-2-float32-none-v2-0123456789abcdef.safetensors", True),
        ("tiny-float32-none-v2-0123456789abcdef.safetensors.7.partial", True),
        ("tiny.safetensors", True),
    ],
)
def test_a_new_file_takes_the_place_of_outdated_ones_of_its_kind_only(
    source: Path, cache_dir: Path, outdated: str, stays: bool
) -> None:
    cache_dir.mkdir()
    (cache_dir / outdated).write_bytes(b"")

    load_tensors(source, cache_dir)

    assert (cache_dir / outdated).exists() == stays
    assert len(list(cache_dir.glob("tiny-float32-none-v2-*.safetensors"))) == 1


def test_a_changed_source_leaves_no_file_of_its_old_contents(source: Path, cache_dir: Path) -> None:
    load_tensors(source, cache_dir)

    write_gguf(make_hf_model(hf_configs()["plain"]), source)
    load_tensors(source, cache_dir)

    assert len(list(cache_dir.iterdir())) == 1


def rewrite_manifest(cached: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest in a cache file and leave its tensors as they are."""
    with safe_open(cached, framework="pt") as file:
        manifest = json.loads(file.metadata()["chatserve"])
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    change(manifest)
    cached.unlink()
    save_file(tensors, cached, metadata={"chatserve": json.dumps(manifest)})


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["config"].update(num_layers=0),
        lambda manifest: manifest["config"].update(num_layers=1),
        lambda manifest: manifest["config"].update(num_heads=4, num_kv_heads=3),
        lambda manifest: manifest["config"].update(architecture="x"),
        lambda manifest: manifest["forms"].update({"norm.weight": "Q8_0"}),
        lambda manifest: manifest["forms"].pop("norm.weight"),
        lambda manifest: manifest.update(forms=["norm.weight"]),
        lambda manifest: manifest.update(text=None),
    ],
)
def test_a_cache_file_that_says_something_else_is_reported_and_rebuilt(
    source: Path,
    cache_dir: Path,
    change: Callable[[dict[str, Any]], object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = load_tensors(source, cache_dir)
    (cached,) = cache_dir.iterdir()
    rewrite_manifest(cached, change)

    received = load_tensors(source, cache_dir)

    assert_same_tensors(received, expected)
    assert "damaged weight cache" in caplog.text


def test_a_cached_weight_of_another_dtype_is_reported_and_rebuilt(
    source: Path, cache_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = load_tensors(source, cache_dir)
    (cached,) = cache_dir.iterdir()
    with safe_open(cached, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    tensors["norm.weight"] = tensors["norm.weight"].half()
    cached.unlink()
    save_file(tensors, cached, metadata=metadata)

    received = load_tensors(source, cache_dir)

    assert_same_tensors(received, expected)
    assert "damaged weight cache" in caplog.text


def test_a_model_whose_file_name_has_a_line_break_is_cached(source: Path, cache_dir: Path) -> None:
    odd = source.rename(source.with_name("a\nb.gguf"))

    load(odd, cache_dir)

    assert len(list(cache_dir.iterdir())) == 1


def test_ends_of_sequence_outside_the_vocabulary_are_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_hf_folder(make_hf_model(hf_configs()["plain"]), tmp_path / "model")
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 70000, -1]}')

    model = load(folder, tmp_path / "cache")

    assert 70000 not in model.eos_token_ids
    assert -1 not in model.eos_token_ids
    assert 2 in model.eos_token_ids
    assert "ignoring ends of sequence outside the vocabulary" in caplog.text


def test_gate_and_up_of_different_heights_are_refused(tmp_path: Path) -> None:
    model = make_hf_model(hf_configs()["plain"])
    mlp = model.model.layers[1].mlp
    mlp.gate_proj.weight.data = mlp.gate_proj.weight.data[:-8]
    mlp.up_proj.weight.data = torch.cat([mlp.up_proj.weight.data, mlp.up_proj.weight.data[:8]])
    file = write_gguf(model, tmp_path / "uneven.gguf")

    with pytest.raises(ModelError, match=r"gate_up_proj\.weight have 56 and 72 rows, expected 64"):
        load(file, tmp_path / "cache")
