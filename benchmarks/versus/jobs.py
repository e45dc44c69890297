"""What a contender can be asked to measure, and how much of it.

Owns the sizes of every job. The four loads go through a server, the others are the engine alone.
"""

from dataclasses import dataclass
from enum import StrEnum

from benchmarks.chat_load.scenario import Load, Scenario

PREFILL_TOKENS = 512
DECODE_PROMPT_TOKENS = 256
DECODE_OUTPUT_TOKENS = 64


class Job(StrEnum):
    """One measurement."""

    SHARED_SYSTEM = "shared-system"
    WARM_TTFT = "warm-ttft"
    BURST = "burst"
    SINGLE = "single"
    PREFILL_512 = "prefill-512"
    DECODE_8 = "decode-8"
    DECODE_32 = "decode-32"
    STEP_1 = "step-1"
    STEP_16 = "step-16"

    @property
    def num_streams(self) -> int:
        """How many requests decode at once; of jobs whose names end with it."""
        return int(self.rpartition("-")[2])


DECODES = (Job.DECODE_8, Job.DECODE_32)
STEPS = (Job.STEP_1, Job.STEP_16)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a measurement takes: the seed of its prompts, and whether half must do."""

    seed: str
    is_light: bool = False

    @property
    def repetitions(self) -> int:
        """Of what an engine repeats by itself within a round."""
        return 2 if self.is_light else 3

    def load(self, job: Job) -> Load:
        """Return the load of a job that goes through a server."""
        match job:
            case Job.SHARED_SYSTEM:
                return Load(Scenario.SHARED_SYSTEM, self.seed, 8 if self.is_light else 16)
            case Job.WARM_TTFT:
                return Load(Scenario.WARM_TTFT, self.seed, 12, max_tokens=4)
            case Job.BURST:
                return Load(Scenario.BURST, self.seed, 8, max_tokens=16)
            case Job.SINGLE:
                return Load(Scenario.SINGLE, self.seed, 2 if self.is_light else 4, max_tokens=128)
            case _:
                raise AssertionError(f"{job} goes through no server")
