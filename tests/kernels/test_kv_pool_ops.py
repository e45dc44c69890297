"""What writes into the KV pool: only the named slots and pages change, in every backend."""

import pytest
import torch
from kernel_helpers import BACKENDS, DEVICE
from torch import Tensor

from chatserve.kernels.ops import KVPages, Ops


@pytest.fixture(params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    return BACKENDS[request.param]()


def make_pool(dtype: torch.dtype, *shape: int) -> KVPages:
    numbers = torch.arange(torch.Size(shape).numel(), device=DEVICE).view(shape).to(dtype)
    return KVPages(k=numbers, v=-numbers)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("head_dim", [8, 10, 64])
def test_rotary_kv_write_fills_exactly_the_mapped_slots(
    ops: Ops, dtype: torch.dtype, head_dim: int
) -> None:
    num_pages, page_size, num_heads, num_kv_heads = 5, 4, 3, 2
    k_pages = torch.full((num_pages, page_size, num_kv_heads, head_dim), 7.0).to(DEVICE, dtype)
    v_pages = k_pages.clone()
    slots = torch.tensor([13, 0, 19], device=DEVICE)
    qkv = torch.randn(3, num_heads + 2 * num_kv_heads, head_dim).to(DEVICE, dtype)
    angles = torch.randn(3, head_dim // 2, device=DEVICE)

    q = ops.rotary_kv_write(qkv, angles.cos(), angles.sin(), k_pages, v_pages, slots)

    turned = turn(qkv, angles)
    k_slots, v_slots = (pages.view(-1, num_kv_heads, head_dim) for pages in (k_pages, v_pages))
    assert_close(q, turned[:, :num_heads])
    assert_close(k_slots[slots], turned[:, num_heads:-num_kv_heads])
    assert torch.equal(v_slots[slots], qkv[:, -num_kv_heads:])
    for pages in (k_slots, v_slots):
        assert (pages[[1, 2, 12, 14, 18]] == 7.0).all()


def turn(heads: Tensor, angles: Tensor) -> Tensor:
    """Rotate in float64, with each pair of halves as one complex number."""
    half = heads.shape[-1] // 2
    pairs = torch.complex(heads[..., :half].double(), heads[..., half:].double())
    turned = pairs * torch.polar(torch.ones_like(angles).double(), angles.double())[:, None]
    return torch.cat((turned.real, turned.imag), dim=-1)


def assert_close(result: Tensor, exact: Tensor) -> None:
    tolerance = 2**-7 if result.dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("page_shape", [(16, 3, 64), (4, 1, 5)], ids=["several-tiles", "odd"])
def test_page_copy_copies_whole_pages_in_every_layer(
    ops: Ops, page_shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    pool = make_pool(dtype, 3, 7, *page_shape)
    before = KVPages(k=pool.k.clone(), v=pool.v.clone())
    sources = torch.tensor([2, 6, 2], device=DEVICE)
    destinations = torch.tensor([0, 5, 4], device=DEVICE)

    ops.page_copy(pool, sources, destinations)

    for pages, old in ((pool.k, before.k), (pool.v, before.v)):
        assert torch.equal(pages[:, [0, 5, 4]], old[:, [2, 6, 2]])
        assert torch.equal(pages[:, [1, 2, 3, 6]], old[:, [1, 2, 3, 6]])


def test_page_copy_reads_every_source_before_it_writes(ops: Ops) -> None:
    pool = make_pool(torch.float32, 2, 4, 4, 1, 8)
    before = pool.k.clone()

    ops.page_copy(pool, torch.tensor([0, 1], device=DEVICE), torch.tensor([1, 2], device=DEVICE))

    assert torch.equal(pool.k[:, [1, 2]], before[:, [0, 1]])


def test_page_copy_of_nothing_changes_nothing(ops: Ops) -> None:
    pool = make_pool(torch.float32, 2, 3, 4, 1, 8)
    before = pool.k.clone()
    none = torch.empty(0, dtype=torch.int64, device=DEVICE)

    ops.page_copy(pool, none, none)

    assert torch.equal(pool.k, before)
