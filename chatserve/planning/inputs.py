"""What a plan is made from.

Owns the records of the inputs. Where their values come from is `sources`' business.
"""

from dataclasses import dataclass

from chatserve.planning.step_time import MachineSpeed, ModelCost


@dataclass(frozen=True, slots=True)
class Workload:
    """What is expected of the service.

    `target_itl_ms` is the longest step that running requests should see. A typical session is
    `session_tokens` long, and begins with `shared_tokens` that it has in common with the others.
    """

    target_itl_ms: float
    session_tokens: int
    shared_tokens: int

    @property
    def mean_context(self) -> int:
        """The length of a session on average: anywhere between what it shares and its end."""
        return (self.shared_tokens + self.session_tokens) // 2


@dataclass(frozen=True, slots=True)
class Given:
    """What the user has fixed; None leaves it to the plan."""

    num_pages: int | None = None
    kv_memory_bytes: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    shared_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Everything that a plan depends on.

    `pool_share_bytes` is the memory that the pool may take where its size is not given. `speed` is
    None where nothing depends on it: both limits of a step are given.
    """

    model: str
    cost: ModelCost
    page_size: int
    prefix_cache: bool
    workload: Workload
    given: Given
    pool_share_bytes: int
    speed: MachineSpeed | None

    def pages_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.page_size)
