"""Loading and the weight cache: converted once, never stale, never trusted when damaged."""

from pathlib import Path

import pytest
import torch
from engine.model_helpers import (
    assert_same_tensors,
    hf_configs,
    load,
    load_tensors,
    make_hf_model,
    write_gguf,
)

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
