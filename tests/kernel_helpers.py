"""Paged KV made from dense KV, and the dense attention that every backend is held to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import pytest
import torch
from torch import Tensor

from chatserve.kernels.cpu import CpuOps, usable_levels
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.ops import Ops
from chatserve.kernels.torch_ops import TorchOps

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _triton_ops() -> Ops:
    from chatserve.kernels.triton import TritonOps

    return TritonOps()


def cpu_ops(level: str) -> CpuOps:
    """Return the CPU kernels of one level; a test is skipped where they cannot run."""
    if level not in usable_levels():
        pytest.skip(f"no CPU kernels for {level}: not built (make install), or not this processor")
    return CpuOps(level)


BACKENDS: dict[str, Callable[[], Ops]] = {
    "torch": TorchOps,
    "triton": _triton_ops,
    **{f"cpu-{level}": partial(cpu_ops, level) for level in LEVELS},
}


@dataclass(frozen=True, slots=True)
class HeadShape:
    """Attention sizes; `num_heads` over `num_kv_heads` query heads share a KV head."""

    num_heads: int
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class PagedCase:
    """The same KV twice: dense per request, and scattered over the pages of a poisoned pool."""

    k: list[Tensor]  # per request, [seq_len, num_kv_heads, head_dim]
    v: list[Tensor]  # per request, [seq_len, num_kv_heads, head_dim]
    k_pages: Tensor  # [num_pages, page_size, num_kv_heads, head_dim], NaN where nothing was written
    v_pages: Tensor
    page_table: Tensor  # [num_requests, max_pages], int32
    seq_lens: Tensor  # [num_requests], int32


def make_paged(
    seq_lens: Sequence[int], heads: HeadShape, *, page_size: int = 16, dtype: torch.dtype
) -> PagedCase:
    """Return random KV of the given lengths, in pages shuffled over a pool with room to spare."""
    generator = torch.Generator().manual_seed(sum(seq_lens))
    num_pages_of = [-(-seq_len // page_size) for seq_len in seq_lens]
    num_pages = sum(num_pages_of) + 3
    shuffled = torch.randperm(num_pages, generator=generator)
    starts = [0, *accumulate(num_pages_of)]
    shape = (num_pages, page_size, heads.num_kv_heads, heads.head_dim)
    k_pages = torch.full(shape, float("nan"), dtype=dtype)
    v_pages = k_pages.clone()
    # What follows a row's last page must not be read, so it names a page of nothing but NaN.
    page_table = torch.full((len(seq_lens), max(num_pages_of)), int(shuffled[-1]))
    k: list[Tensor] = []
    v: list[Tensor] = []
    for row, seq_len in enumerate(seq_lens):
        own_pages = shuffled[starts[row] : starts[row + 1]]
        page_table[row, : len(own_pages)] = own_pages
        positions = torch.arange(seq_len)
        slots = own_pages[positions // page_size] * page_size + positions % page_size
        for paged, dense in zip((k_pages, v_pages), (k, v), strict=True):
            values = torch.randn(seq_len, *shape[2:], generator=generator).to(dtype)
            paged.view(-1, *shape[2:])[slots] = values
            dense.append(values.to(DEVICE))
    return PagedCase(
        k=k,
        v=v,
        k_pages=k_pages.to(DEVICE),
        v_pages=v_pages.to(DEVICE),
        page_table=page_table.to(DEVICE, torch.int32),
        seq_lens=torch.tensor(seq_lens, dtype=torch.int32, device=DEVICE),
    )


def make_queries(num_tokens: int, heads: HeadShape, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(num_tokens)
    shape = (num_tokens, heads.num_heads, heads.head_dim)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype)


def dense_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Attend the last queries of one sequence causally, step by step in the dtype of the inputs.

    Args:
        q: [num_queries, num_heads, head_dim]
        k, v: [seq_len, num_kv_heads, head_dim]
        scale: What scores are multiplied by.
    """
    num_queries, num_heads, _ = q.shape
    seq_len, num_kv_heads, _ = k.shape
    k = k.repeat_interleave(num_heads // num_kv_heads, dim=1)
    v = v.repeat_interleave(num_heads // num_kv_heads, dim=1)
    scores = torch.einsum("qhd,khd->hqk", q, k) * scale
    query_positions = torch.arange(seq_len - num_queries, seq_len, device=q.device)
    is_later = torch.arange(seq_len, device=q.device)[None, :] > query_positions[:, None]
    weights = scores.masked_fill(is_later, float("-inf")).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, v)


def assert_as_exact_as_torch(result: Tensor, q: Tensor, k: Tensor, v: Tensor, scale: float) -> None:
    """Assert that the error is at most twice that of plain torch in the same dtype.

    The tolerance calibrates itself: both errors are taken against float32.
    """
    exact = dense_attention(q.float(), k.float(), v.float(), scale)
    plain_error = (dense_attention(q, k, v, scale).float() - exact).abs().max().item()
    error = (result.float() - exact).abs().max().item()
    assert error <= 2 * plain_error + 1e-5, f"error {error}, plain torch {plain_error}"
