"""What a worker's prefix cache holds, in a few kilobytes: for gateways that choose a worker.

Owns the names of prefixes and the filter that a worker publishes of them. Knows no tree, no store
and no routing. Standard library only, since the cache, the worker and the gateway all use it.

A prefix that ends with a page is named by a chain of hashes: that of its last page's tokens behind
the hash of the prefix before. So prompts that begin alike have the same names up to where they
part. A name is combined with a salt made of the tenant whose pages these are, the empty one for
public pages: else a digest would tell a tenant which of its prompts another one has asked as well.

The filter is that of Bloom (Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970), cut
into four parts with one bit of each entry in each part. It never denies what it was given, and
affirms about one in eighty of what it was not. That costs somebody a cold start and nobody a wrong
token: digests are hints, and the cache compares tokens.
"""

import base64
import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

HASH_BYTES = 8
MAX_ENTRIES = 12_800
"""What one digest names at most: 16 KiB at ten bits for each entry."""

NUM_PARTS = 4
_MIN_PART_BITS = 512
_PART_BITS_PER_ENTRY = 2.5
_FIRST = bytes(HASH_BYTES)


class PageHashes:
    """The names of one prompt's prefixes, computed as far as somebody asks.

    Owns: the hashes so far. Used from: whoever made it.
    """

    def __init__(self, token_ids: Sequence[int], page_size: int):
        self.num_pages = len(token_ids) // page_size
        self._page_bytes = 4 * page_size
        self._packed = _pack(token_ids[: self.num_pages * page_size])
        self._hashes: list[int] = []
        self._state = _FIRST

    def __getitem__(self, index: int) -> int:
        """Return the hash of the prefix that ends with page `index`."""
        while len(self._hashes) <= index:
            start = len(self._hashes) * self._page_bytes
            self._state = _next_hash(self._state, self._packed[start : start + self._page_bytes])
            self._hashes.append(int.from_bytes(self._state, "little"))
        return self._hashes[index]


def continue_hashes(before: bytes, token_ids: Sequence[int], page_size: int) -> bytes:
    """Return the hashes of whole pages of tokens, one after the other.

    Args:
        before: The hash of the prefix that they continue; empty at the beginning of a prompt.
    """
    packed, state, page_bytes = _pack(token_ids), before or _FIRST, 4 * page_size
    hashes = []
    for start in range(0, len(packed), page_bytes):
        state = _next_hash(state, packed[start : start + page_bytes])
        hashes.append(state)
    return b"".join(hashes)


def _pack(token_ids: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(token_ids)}I", *token_ids)


def _next_hash(before: bytes, page: bytes) -> bytes:
    return hashlib.blake2b(before + page, digest_size=HASH_BYTES).digest()


@lru_cache(maxsize=4096)
def tenant_salt(tenant: str) -> int:
    """Return what makes a prefix's name that of one tenant's pages; empty for public ones."""
    digest = hashlib.blake2b(tenant.encode(), digest_size=HASH_BYTES, person=b"tenant")
    return int.from_bytes(digest.digest(), "little")


def bit_positions(entry: int, part_bits: int) -> tuple[int, int, int, int]:
    """Return where an entry's bits are: each sixteen of its bits say which one of one part."""
    low = part_bits - 1
    return (
        entry & low,
        part_bits + (entry >> 16 & low),
        2 * part_bits + (entry >> 32 & low),
        3 * part_bits + (entry >> 48 & low),
    )


@dataclass(frozen=True, slots=True)
class HeldPrefixes:
    """The hashes of the prefixes that a cache holds, by tenant; empty for what is public.

    Of the pages of each prompt every `stride`-th is named, so that any cache fits into a digest.
    """

    page_size: int
    stride: int
    hashes: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Shape:
    """What two digests must have in common to be read with the same hashes and bit positions."""

    page_size: int
    stride: int
    part_bits: int


@dataclass(frozen=True, slots=True)
class PrefixDigest:
    """A filter over names of prefixes."""

    shape: Shape
    bits: bytes

    @classmethod
    def of(cls, held: HeldPrefixes) -> "PrefixDigest":
        """Return a filter as large as what is held needs."""
        num_entries = sum(map(len, held.hashes.values())) // HASH_BYTES
        part_bits = _MIN_PART_BITS
        while part_bits < num_entries * _PART_BITS_PER_ENTRY:
            part_bits *= 2
        parts = [bytearray(part_bits // 8) for _ in range(NUM_PARTS)]
        for tenant, hashes in held.hashes.items():
            words = struct.unpack(f"<{len(hashes) // 2}H", _salted(hashes, tenant))
            for part, filled in enumerate(parts):
                _fill(filled, words[part::NUM_PARTS], part_bits)
        return cls(Shape(held.page_size, held.stride, part_bits), b"".join(parts))

    def holds(self, entry: int) -> bool:
        """Tell whether a salted hash may be among those of this digest."""
        positions = bit_positions(entry, self.shape.part_bits)
        return all(self.bits[at >> 3] >> (at & 7) & 1 for at in positions)

    def pack(self) -> str:
        """Return the digest as text, for the store."""
        shape = self.shape
        numbers = f"{shape.page_size}:{shape.stride}:{shape.part_bits}"
        return f"{numbers}:{base64.b64encode(self.bits).decode()}"

    @classmethod
    def unpack(cls, packed: str) -> "PrefixDigest":
        *numbers, bits = packed.split(":")
        return cls(Shape(*map(int, numbers)), base64.b64decode(bits))


def _salted(hashes: bytes, tenant: str) -> bytes:
    """Combine every hash with a tenant's salt, all at once as one large number."""
    salt = tenant_salt(tenant).to_bytes(HASH_BYTES, "little") * (len(hashes) // HASH_BYTES)
    combined = int.from_bytes(hashes, "little") ^ int.from_bytes(salt, "little")
    return combined.to_bytes(len(hashes), "little")


def _fill(part: bytearray, words: Iterable[int], part_bits: int) -> None:
    for word in words:
        at = word % part_bits
        part[at >> 3] |= 1 << (at & 7)
