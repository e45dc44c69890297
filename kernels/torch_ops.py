"""The reference backend: every op in plain torch, for any device.

Written to be read first and to be quick second. It defines what the other backends must compute;
it knows nothing of them.

The one idea in attention: a request's pages are gathered into one contiguous run, and dense
attention does the rest. Slots after a request's end are cut off or zeroed before any arithmetic, so
whatever they hold (NaN included) cannot reach a result; a mask alone would not do, because
0 * NaN is NaN.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from chatserve.kernels.layer_stack import OpByOpStack
from chatserve.kernels.ops import KVPages, LayerStack, PackedLinear, StackWeights
from chatserve.kernels.quantized import QuantizedWeight, Weight

_MAX_PADDED_TOKENS = 1 << 14


class TorchOps:
    """Plain torch implementation of `Ops`.

    Owns: nothing; every call is a function of its arguments.
    Used from: the engine thread.
    """

    def stack_layers(self, weights: StackWeights) -> LayerStack:
        return OpByOpStack(self, weights)

    def pack_linear(
        self, weight: Weight, bias: Tensor | None, out_dtype: torch.dtype
    ) -> PackedLinear:
        if isinstance(weight, QuantizedWeight):
            weight = weight.dequantize(weight.dtype)
        return TorchLinear(weight, bias, out_dtype)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        return functional.rms_norm(x, (x.shape[-1],), weight, eps)

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        residual = x + residual
        return self.rms_norm(residual, weight, eps), residual

    def rotary_kv_write(
        self,
        qkv: Tensor,
        cos: Tensor,
        sin: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        slot_mapping: Tensor,
    ) -> Tensor:
        num_kv_heads = k_pages.shape[2]
        qk, v = qkv[:, :-num_kv_heads], qkv[:, -num_kv_heads:]
        qk = _rotate(qk, cos, sin)
        q, k = qk[:, :-num_kv_heads], qk[:, -num_kv_heads:]
        # view, never reshape: a silent copy of the pool would swallow the write
        k_pages.view(-1, *k_pages.shape[2:]).index_copy_(0, slot_mapping, k)
        v_pages.view(-1, *v_pages.shape[2:]).index_copy_(0, slot_mapping, v)
        return q.contiguous()

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return functional.silu(gate) * up

    def page_copy(self, kv: KVPages, sources: Tensor, destinations: Tensor) -> None:
        for pages in (kv.k, kv.v):
            pages.index_copy_(1, destinations, pages.index_select(1, sources))

    def paged_decode(
        self,
        q: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        page_table: Tensor,
        seq_lens: Tensor,
        scale: float,
    ) -> Tensor:
        _, num_heads, head_dim = q.shape
        num_kv_heads = k_pages.shape[2]
        # The query heads that share a KV head become that head's rows: its KV is read once.
        grouped = q.view(-1, num_kv_heads, num_heads // num_kv_heads, head_dim)
        out = torch.empty_like(grouped)
        for rows in _rows_of_similar_length(seq_lens.tolist()):
            lengths = seq_lens[rows]
            num_pages = -(-int(lengths.max()) // k_pages.shape[1])
            table = page_table[rows, :num_pages]
            out[rows] = functional.scaled_dot_product_attention(
                grouped[rows],
                _gather_padded(k_pages, table, lengths),
                _gather_padded(v_pages, table, lengths),
                attn_mask=_length_mask(lengths, num_pages * k_pages.shape[1]),
                scale=scale,
            )
        return out.view_as(q)

    def paged_prefill(
        self,
        q: Tensor,
        k_pages: Tensor,
        v_pages: Tensor,
        page_table: Tensor,
        seq_lens: Tensor,
        cu_seqlens_q: Tensor,
        scale: float,
    ) -> Tensor:
        out = torch.empty_like(q)
        starts = cu_seqlens_q.tolist()
        for i, seq_len in enumerate(seq_lens.tolist()):
            rows = slice(starts[i], starts[i + 1])
            num_queries = starts[i + 1] - starts[i]
            is_whole = num_queries == seq_len  # nothing was cached: torch needs no mask for that
            attended = functional.scaled_dot_product_attention(
                q[rows].transpose(0, 1).unsqueeze(0),  # [1, num_heads, num_queries, head_dim]
                _gather_kv(k_pages, page_table[i], seq_len),
                _gather_kv(v_pages, page_table[i], seq_len),
                attn_mask=None if is_whole else _causal_mask(num_queries, seq_len, q.device),
                is_causal=is_whole,
                scale=scale,
                enable_gqa=True,
            )
            out[rows] = attended[0].transpose(0, 1)
        return out


class TorchLinear(nn.Module):
    """A linear layer as torch computes it, over the weight as it was loaded.

    Owns: weight and bias, so that they belong to the state of the module it is part of.
    Used from: the engine thread.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, out_dtype: torch.dtype):
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        self.out_dtype = out_dtype

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias).to(self.out_dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + head_dim // 2]) of a head by its angle."""
    first, second = x.chunk(2, dim=-1)  # each [num_tokens, num_heads, head_dim // 2]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return rotated.to(x.dtype)


def _rows_of_similar_length(seq_lens: list[int]) -> list[list[int]]:
    """Return groups of rows that are attended together, padded to the longest of each.

    Lengths of one group have as many binary digits, so at most half of what is gathered is
    padding; and no group is padded to more than a fixed number of tokens. One by one would take
    a dozen small parallel operations for each request, and every one of them waits for the
    slowest thread.
    """
    by_digits: dict[int, list[int]] = {}
    for row, seq_len in enumerate(seq_lens):
        by_digits.setdefault(seq_len.bit_length(), []).append(row)
    groups = []
    for digits, rows in by_digits.items():
        size = max(1, _MAX_PADDED_TOKENS >> digits)
        groups += [rows[start : start + size] for start in range(0, len(rows), size)]
    return groups


def _gather_padded(pages: Tensor, page_table: Tensor, seq_lens: Tensor) -> Tensor:
    """Return the keys or values of several requests, [num_rows, num_kv_heads, max_len, head_dim].

    What follows a request's end is zero.
    """
    # index_select is several times faster here than indexing with a tensor
    gathered = pages.index_select(0, page_table.flatten())
    runs = gathered.view(len(page_table), -1, *pages.shape[2:])
    for run, seq_len in zip(runs, seq_lens.tolist(), strict=True):
        run[seq_len:] = 0
    return runs.transpose(1, 2)


def _length_mask(seq_lens: Tensor, max_len: int) -> Tensor:
    """Return [num_rows, 1, 1, max_len], True within each request."""
    positions = torch.arange(max_len, device=seq_lens.device)
    return (positions < seq_lens[:, None])[:, None, None]


def _gather_kv(pages: Tensor, page_row: Tensor, seq_len: int) -> Tensor:
    """Return one request's keys or values, [1, num_kv_heads, seq_len, head_dim]."""
    page_size = pages.shape[1]
    num_pages = -(-seq_len // page_size)
    run = pages.index_select(0, page_row[:num_pages]).flatten(0, 1)[:seq_len]
    return run.transpose(0, 1).unsqueeze(0)


def _causal_mask(num_queries: int, seq_len: int, device: torch.device) -> Tensor:
    """Return [num_queries, seq_len], True where a query may look.

    The queries are the last ones of the sequence, so the triangle ends in the lower right corner:
    for three queries over five tokens

        1 1 1 0 0
        1 1 1 1 0
        1 1 1 1 1
    """
    ones = torch.ones(num_queries, seq_len, dtype=torch.bool, device=device)
    return ones.tril(seq_len - num_queries)
