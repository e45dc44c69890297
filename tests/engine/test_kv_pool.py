"""The memory of the KV pool: laid out as the ops expect, and taken only as far as it is touched."""

import mmap
from pathlib import Path

import pytest
import torch

from chatserve.engine.kv_pool import allocate_kv_pages
from chatserve.kernels.cpu.memory import map_memory
from chatserve.model.config import ModelConfig

CONFIG = ModelConfig(
    architecture="llama",
    vocab_size=320,
    hidden_size=48,
    intermediate_size=80,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=12,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
    rope_theta=10_000.0,
)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="only Linux tells how much memory is in use"
)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keys_and_values_have_a_page_for_every_layer_and_id(dtype: torch.dtype) -> None:
    pages = allocate_kv_pages(CONFIG, 5, 16, dtype, "cpu")

    assert pages.k.shape == pages.v.shape == (3, 5, 16, 2, 12)
    assert pages.k.dtype == pages.v.dtype == dtype
    assert pages.k.is_contiguous()


def test_keys_and_values_do_not_overlap() -> None:
    pages = allocate_kv_pages(CONFIG, 5, 16, torch.float32, "cpu")

    pages.k.fill_(1)
    pages.v.fill_(2)

    assert pages.k.eq(1).all()


@needs_proc
def test_memory_is_taken_only_as_far_as_it_is_touched() -> None:
    before = resident_bytes()

    memory = map_memory(8 << 30)
    mapped = resident_bytes()
    memory[0] = 1
    touched = resident_bytes()

    assert mapped - before < 64 << 20
    assert touched - mapped < 64 << 20


def test_a_system_without_huge_pages_gives_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)

    assert map_memory(4096).fill_(7).eq(7).all()


def test_a_system_that_refuses_huge_pages_gives_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice that a kernel does not know is an error, and used to be raised."""
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 9999, raising=False)

    assert map_memory(4096).fill_(7).eq(7).all()


def test_memory_outlives_the_mapping_that_made_it() -> None:
    piece = map_memory(1 << 20)[1000:1010].fill_(3)

    map_memory(1 << 20).fill_(4)

    assert piece.eq(3).all()
