"""Copies whole pages in every layer at once: the execution of copy-on-write.

One program copies one tile of one page in one layer, keys and values together, so a step's copies
are one launch however many there are.

Bytes moved per call: 4 * num_copies * num_layers * page_size * num_kv_heads * head_dim * itemsize
(keys and values, each read and written once).
"""

import triton
import triton.language as tl
from torch import Tensor

from chatserve.kernels.ops import KVPages

_TILE = 1024


def copy_pages(kv: KVPages, sources: Tensor, destinations: Tensor) -> None:
    """Copy pages `sources` [num_copies] over `destinations` [num_copies], both int64."""
    num_copies = sources.numel()
    if not num_copies:
        return
    assert kv.k.is_contiguous(), "the keys of the pool must be contiguous"
    assert kv.v.is_contiguous(), "the values of the pool must be contiguous"
    assert kv.k.shape == kv.v.shape, f"keys {kv.k.shape} and values {kv.v.shape} differ"
    assert sources.is_contiguous(), "sources must be contiguous"
    assert destinations.is_contiguous(), "destinations must be contiguous"
    num_layers, num_pages = kv.k.shape[:2]
    page_numel = kv.k[0, 0].numel()
    grid = (num_copies, num_layers, triton.cdiv(page_numel, _TILE))
    page_copy_kernel[grid](
        kv.k,
        kv.v,
        sources,
        destinations,
        num_pages,
        PAGE_NUMEL=page_numel,
        BLOCK_E=_TILE,
        enable_fp_fusion=True,
    )


@triton.jit  # type: ignore[untyped-decorator]
def page_copy_kernel(
    k_ptr: tl.tensor,  # [num_layers, num_pages, PAGE_NUMEL]
    v_ptr: tl.tensor,  # [num_layers, num_pages, PAGE_NUMEL]
    sources_ptr: tl.tensor,  # [num_copies], int64
    destinations_ptr: tl.tensor,  # [num_copies], int64
    num_pages: int,
    PAGE_NUMEL: tl.constexpr,
    BLOCK_E: tl.constexpr,
) -> None:
    copy = tl.program_id(0)
    # int64 from here on: a pool may have more than 2^31 elements
    first_page = tl.program_id(1).to(tl.int64) * num_pages
    element = tl.program_id(2) * BLOCK_E + tl.arange(0, BLOCK_E)  # (BLOCK_E)
    # The last tile of a page must not run into the next page.
    is_element = element < PAGE_NUMEL
    source = (first_page + tl.load(sources_ptr + copy)) * PAGE_NUMEL + element
    destination = (first_page + tl.load(destinations_ptr + copy)) * PAGE_NUMEL + element
    tl.store(k_ptr + destination, tl.load(k_ptr + source, mask=is_element), mask=is_element)
    tl.store(v_ptr + destination, tl.load(v_ptr + source, mask=is_element), mask=is_element)
