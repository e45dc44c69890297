"""What was sent to workers lately, and is not in their digests yet.

Owns how long that takes. Workers are slots, sets of them the bits of one number.
"""

from chatserve.gateway.routed_prompt import RoutedPrompt

SETTLE_S = 2.0
"""After so long, heartbeats and digests show what was sent: two beats, or one and its reading."""


class SentPrefixes:
    """Who will hold what was sent lately, by salted name.

    Owns: two generations, of which the older one is forgotten. Used from: the event loop.
    """

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._since_s = 0.0

    def holders(self, entry: int) -> int:
        return self._new.get(entry, 0) | self._old.get(entry, 0)

    def note(self, slot: int, prompt: RoutedPrompt, page_size: int) -> None:
        """Count a prompt as held by a worker."""
        hashes, bit = prompt.hashes(page_size), 1 << slot
        for page in range(hashes.num_pages):
            entry = hashes[page] ^ prompt.salt
            self._new[entry] = self._new.get(entry, 0) | bit

    def age(self, now_s: float) -> None:
        if now_s - self._since_s >= SETTLE_S:
            self._old, self._new, self._since_s = self._new, {}, now_s

    def remove(self, slot: int) -> None:
        """Forget a worker, whose slot will be another one's."""
        for generation in (self._new, self._old):
            for entry in generation:
                generation[entry] &= ~(1 << slot)
