"""Which workers hold a prefix, for all workers at once.

Owns the digests of the workers, cut across: for each bit of the filters one number whose bits say
in which workers' filters it is set. A prefix is looked up by combining four such numbers, however
many workers there are; a worker that publishes a new digest costs what has changed in it. This is
the bit-sliced signature file of text retrieval (Faloutsos and Christodoulakis, Signature Files,
1984), with a worker for a document.

Knows neither load nor prompts. A worker is a slot here, a bit of a mask.
"""

import struct
from collections.abc import Callable, Iterator

from chatserve.prefix_digest import NUM_PARTS, PrefixDigest, Shape, bit_positions

_WORD_BITS = 64


class PrefixIndex:
    """The digests of workers, by slot.

    Owns: the rows of each shape of digest. Used from: the event loop.
    """

    def __init__(self) -> None:
        self._digests: dict[int, PrefixDigest] = {}
        self._rows: dict[Shape, list[int]] = {}
        self._members: dict[Shape, int] = {}

    @property
    def shapes(self) -> dict[Shape, int]:
        """The shapes of digest that there are, each with the mask of its workers."""
        return self._members

    def put(self, slot: int, digest: PrefixDigest) -> None:
        """Take in the digest of a worker, in the place of its last one."""
        old = self._digests.get(slot)
        if old is not None and old.shape != digest.shape:
            self.remove(slot)
            old = None
        size = NUM_PARTS * digest.shape.part_bits
        rows = self._rows.setdefault(digest.shape, [0] * size)
        self._flip(rows, slot, old.bits if old else bytes(size // 8), digest.bits)
        self._members[digest.shape] = self._members.get(digest.shape, 0) | 1 << slot
        self._digests[slot] = digest

    def remove(self, slot: int) -> None:
        """Forget a worker. Idempotent."""
        digest = self._digests.pop(slot, None)
        if digest is None:
            return
        shape = digest.shape
        self._members[shape] ^= 1 << slot
        if self._members[shape]:
            self._flip(self._rows[shape], slot, digest.bits, bytes(len(digest.bits)))
        else:
            del self._members[shape], self._rows[shape]

    def lookup(self, shape: Shape) -> Callable[[int], int]:
        """Return what gives the mask of the workers whose digests affirm a salted name."""
        rows, part_bits = self._rows[shape], shape.part_bits

        def holders(entry: int) -> int:
            first, second, third, fourth = bit_positions(entry, part_bits)
            return rows[first] & rows[second] & rows[third] & rows[fourth]

        return holders

    def _flip(self, rows: list[int], slot: int, old: bytes, new: bytes) -> None:
        bit = 1 << slot
        for at in _differences(old, new):
            rows[at] ^= bit


def _differences(old: bytes, new: bytes) -> Iterator[int]:
    """Yield the positions of the bits that differ."""
    layout = f"<{len(old) * 8 // _WORD_BITS}Q"
    words = zip(struct.unpack(layout, old), struct.unpack(layout, new), strict=True)
    for index, (before, after) in enumerate(words):
        changed = before ^ after
        while changed:
            lowest = changed & -changed
            yield index * _WORD_BITS + lowest.bit_length() - 1
            changed ^= lowest
