"""Loading and the weight cache: converted once, never stale, never trusted when damaged."""

from pathlib import Path

import pytest
import torch
from engine.model_helpers import hf_configs, load, make_hf_model, write_gguf
from torch import Tensor

from chatserve.errors import ConfigError, ModelError
from chatserve.model import weight_cache
from chatserve.model.weights import resolve_dtype


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_gguf(make_hf_model(hf_configs()["tied"]), tmp_path / "tiny.gguf")


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def weights_of(source: Path, cache_dir: Path) -> dict[str, Tensor]:
    return {
        key: value.clone() for key, value in load(source, cache_dir).decoder.state_dict().items()
    }


def assert_same(received: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert received.keys() == expected.keys()
    assert all(torch.equal(received[key], expected[key]) for key in expected)


def test_a_second_load_takes_everything_from_the_cache(source: Path, cache_dir: Path) -> None:
    first = load(source, cache_dir)
    (cached,) = cache_dir.iterdir()
    inode = cached.stat().st_ino

    second = load(source, cache_dir)

    assert cached.stat().st_ino == inode
    assert_same(second.decoder.state_dict(), first.decoder.state_dict())
    for field in set(first.__slots__) - {"decoder"}:
        assert getattr(second, field) == getattr(first, field)


def test_each_dtype_has_its_own_cache_file(source: Path, cache_dir: Path) -> None:
    load(source, cache_dir, torch.float32)

    in_half = load(source, cache_dir, torch.bfloat16)

    assert len(list(cache_dir.iterdir())) == 2
    assert in_half.decoder.embed_tokens.weight.dtype == torch.bfloat16


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
    expected = weights_of(source, cache_dir)
    (cached,) = cache_dir.iterdir()
    whole = cached.read_bytes()
    cached.unlink()  # a new file: the old one is still mapped
    cached.write_bytes(whole[:kept_bytes])

    received = weights_of(source, cache_dir)

    assert_same(received, expected)
    assert cached.read_bytes() == whole
    assert "damaged weight cache" in caplog.text


def test_a_cache_folder_that_cannot_be_written_costs_only_time(
    source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = weights_of(source, tmp_path / "cache")
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where the folder should be")

    received = weights_of(source, occupied / "cache")

    assert_same(received, expected)
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


def test_loaded_weights_need_no_gradient_and_tables_stay_exact(
    source: Path, cache_dir: Path
) -> None:
    decoder = load(source, cache_dir, torch.bfloat16).decoder

    assert not any(parameter.requires_grad for parameter in decoder.parameters())
    assert decoder.cos.dtype == torch.float32
    assert decoder.cos.device.type == "cpu"


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_a_named_dtype_is_taken_as_it_is(name: str) -> None:
    assert resolve_dtype(name, "cpu") == getattr(torch, name)


def test_the_automatic_dtype_is_one_the_cpu_computes_in() -> None:
    assert resolve_dtype("auto", "cpu") in (torch.bfloat16, torch.float32)


def test_an_unknown_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="auto, float32, bfloat16, float16, received 'int3'"):
        resolve_dtype("int3", "cpu")
