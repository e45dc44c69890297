"""Two runs of the same requests held against each other, token by token.

Owns what counts as a difference. Knows neither modes nor engines: it is told each token with the
logits that it was chosen from.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from chatserve.engine.api import RequestId

NUM_RIVALS = 20
"""How many of the reference's best tokens are watched for changes of their margins."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a request first took another token, and by how much the reference preferred its own.

    `margin` is at least that between the reference's two best.
    """

    request: str
    position: int
    margin: float


@dataclass(slots=True)
class Outcome:
    """How one pass over all requests compared with the reference.

    `largest_difference` is that of any two logits after the same history. Most tokens are out of
    the question; `largest_margin_change` says how far one of the best came towards the very best,
    or went from it. No larger margin can have been lost.
    """

    mode: str
    num_requests: int
    tolerance: float
    must_preempt: bool
    divergences: list[Divergence] = field(default_factory=list)
    largest_difference: float = 0.0
    largest_margin_change: float = 0.0
    num_compared: int = 0
    num_hit_tokens: int = 0
    num_preemptions: int = 0
    seconds: float = 0.0

    @property
    def num_identical(self) -> int:
        return self.num_requests - len(self.divergences)

    @property
    def num_beyond(self) -> int:
        return sum(each.margin >= self.tolerance for each in self.divergences)

    @property
    def failure(self) -> str | None:
        if self.num_beyond:
            return f"{self.mode}: {self.num_beyond} requests diverged beyond {self.tolerance:g}"
        if self.must_preempt and not self.num_preemptions:
            return f"{self.mode}: nothing was preempted, so nothing was shown"
        return None


class Recording:
    """The tokens of the reference and the logits that they were chosen from.

    Owns: the logits, in the model's own dtype, which they came from.
    """

    def __init__(self, dtype: torch.dtype):
        self._dtype = dtype
        self._steps: dict[RequestId, list[tuple[int, Tensor]]] = {}

    def observe(self, request_id: RequestId, token_id: int, logits: Tensor) -> None:
        steps = self._steps.setdefault(request_id, [])
        steps.append((token_id, logits.to(self._dtype, copy=True)))

    def at(self, request_id: RequestId, position: int) -> tuple[int, Tensor]:
        """Return an output token and its logits [vocab_size], float32."""
        token_id, logits = self._steps[request_id][position]
        return token_id, logits.float()


class Comparison:
    """Holds the tokens of one engine against a recording, each request up to its first difference.

    Owns: how far each request of the present pass got.
    """

    def __init__(self, recording: Recording):
        self._recording = recording
        self._outcome: Outcome | None = None
        self._positions: dict[RequestId, int] = {}
        self._diverged: set[RequestId] = set()

    def begin(self, outcome: Outcome) -> None:
        """Start a pass whose result goes into `outcome`."""
        self._outcome, self._positions, self._diverged = outcome, {}, set()

    def observe(self, request_id: RequestId, token_id: int, logits: Tensor) -> None:
        assert self._outcome is not None, "no pass has begun"
        if request_id in self._diverged:
            return
        position = self._positions.get(request_id, 0)
        self._positions[request_id] = position + 1
        expected_id, expected = self._recording.at(request_id, position)
        self._note_change(self._outcome, logits - expected, expected.topk(NUM_RIVALS).indices)
        if token_id != expected_id:
            self._diverged.add(request_id)
            margin = float(expected[expected_id] - expected[token_id])
            self._outcome.divergences.append(Divergence(request_id, position, margin))

    @staticmethod
    def _note_change(outcome: Outcome, change: Tensor, rivals: Tensor) -> None:
        """Take in how logits [vocab_size] changed; `rivals` are the best tokens, falling."""
        margin_changes = change[rivals] - change[rivals[0]]
        difference, margin_change = float(change.abs().max()), float(margin_changes.abs().max())
        outcome.largest_difference = max(outcome.largest_difference, difference)
        outcome.largest_margin_change = max(outcome.largest_margin_change, margin_change)
        outcome.num_compared += 1
