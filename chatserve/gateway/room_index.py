"""Which workers have room, for all workers at once.

Owns how many pages are free in each. Like `prefix_index.py`, it answers with sets of workers that
are the bits of one number, and knows neither load nor prompts.
"""

import functools
import operator


class RoomIndex:
    """Which workers have pages free, by powers of two.

    Owns: the free pages of each slot. Used from: the event loop.
    """

    def __init__(self) -> None:
        self._free: dict[int, int] = {}
        self._of_length: dict[int, int] = {}  # masks, by the bit length of the number

    def put(self, slot: int, free_pages: int) -> None:
        self.remove(slot)
        self._free[slot] = free_pages
        length = free_pages.bit_length()
        self._of_length[length] = self._of_length.get(length, 0) | 1 << slot

    def take(self, slot: int, num_pages: int) -> None:
        """Count pages as used, until the worker says what is free."""
        self.put(slot, max(0, self._free[slot] - num_pages))

    def remove(self, slot: int) -> None:
        old = self._free.pop(slot, None)
        if old is not None:
            self._of_length[old.bit_length()] ^= 1 << slot

    def at_least(self, num_pages: int) -> int:
        """Return the mask of workers with so many pages free, and of none that has fewer."""
        length = (num_pages - 1).bit_length() + 1
        masks = (mask for each, mask in self._of_length.items() if each >= length)
        return functools.reduce(operator.or_, masks, 0)
