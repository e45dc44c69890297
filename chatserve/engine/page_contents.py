"""KV outside of the pool: what is in some pages, as bytes.

Owns the description of a pool's layout, by which two pools can tell whether the bytes of one mean
the same in the other. Knows neither tensors nor files: a runner gives and takes these bytes, from
tensors or from integers, and whoever keeps them in between need not care which.
"""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class PoolLayout:
    """What two KV pools must agree in to exchange pages.

    `weights` is the fingerprint of the model that computes the KV; `element_bytes` belongs to
    `dtype`. Together they fix what every byte of a page means.
    """

    weights: str
    dtype: str
    element_bytes: int
    num_layers: int
    page_size: int
    num_kv_heads: int
    head_dim: int

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys in one layer; its values take as many."""
        return self.num_kv_heads * self.head_dim * self.element_bytes

    def layer_bytes(self, num_tokens: int) -> int:
        """Bytes of the keys of one layer, for whole pages that hold `num_tokens` tokens."""
        num_pages = -(-num_tokens // self.page_size)
        return num_pages * self.page_size * self.token_bytes


@dataclass(frozen=True, slots=True)
class PageContents:
    """The KV of whole pages in the order of their tokens, slots that nobody wrote included.

    Both are writable, contiguous bytes of [num_layers, num_pages, page_size, token_bytes].
    """

    k: memoryview
    v: memoryview

    @classmethod
    def zeros(cls, num_bytes: int) -> Self:
        """Return keys and values of `num_bytes` bytes each."""
        return cls(memoryview(bytearray(num_bytes)), memoryview(bytearray(num_bytes)))

    def pages_from(self, first: int, layout: PoolLayout) -> Self:
        """Return a copy of the pages behind the first `first`."""
        return type(self)(*(_pages_from(raw, first, layout) for raw in (self.k, self.v)))


def _pages_from(raw: memoryview, first: int, layout: PoolLayout) -> memoryview:
    layer_bytes = len(raw) // layout.num_layers
    skipped = layout.layer_bytes(first * layout.page_size)
    layers = range(0, len(raw), layer_bytes)
    return memoryview(bytearray().join(raw[at + skipped : at + layer_bytes] for at in layers))
