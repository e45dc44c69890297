"""What writes into the KV pool: only the named slots and pages change, in every backend."""

import pytest
import torch
from kernel_helpers import BACKENDS, DEVICE

from chatserve.kernels.ops import KVPages, Ops


@pytest.fixture(params=BACKENDS)
def ops(request: pytest.FixtureRequest) -> Ops:
    return BACKENDS[request.param]()


def make_pool(dtype: torch.dtype, *shape: int) -> KVPages:
    numbers = torch.arange(torch.Size(shape).numel(), device=DEVICE).view(shape).to(dtype)
    return KVPages(k=numbers, v=-numbers)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_kv_write_fills_exactly_the_mapped_slots(ops: Ops, dtype: torch.dtype) -> None:
    num_pages, page_size, num_kv_heads, head_dim = 5, 4, 2, 8
    pool = torch.full((num_pages, page_size, num_kv_heads, head_dim), 7.0, device=DEVICE).to(dtype)
    k_pages, v_pages = pool.clone(), pool.clone()
    slots = torch.tensor([13, 0, 19], device=DEVICE)
    k = torch.randn(3, num_kv_heads, head_dim, device=DEVICE).to(dtype)

    ops.kv_write(k, -k, k_pages, v_pages, slots)

    for token, slot in enumerate(slots.tolist()):
        assert torch.equal(k_pages[slot // page_size, slot % page_size], k[token])
        assert torch.equal(v_pages[slot // page_size, slot % page_size], -k[token])
    for pages in (k_pages, v_pages):
        untouched = pages.view(-1, num_kv_heads, head_dim)[[1, 2, 12, 14, 18]]
        assert (untouched == 7.0).all()


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
