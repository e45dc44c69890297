"""Who asks what and when: the scenarios, and the words of their prompts.

Owns every number of a load. Pure, so that two servers can be asked exactly the same. Prompts follow
from a seed: the same seed again measures a server that has seen them, a new one a server that has
not.
"""

import random
from dataclasses import dataclass, replace
from enum import StrEnum

Message = dict[str, str]

# Common words, about one token each in any vocabulary.
_VOCABULARY = (
    "account address apple autumn basket bridge button circle coffee corner dinner doctor earth "
    "evening family finger flower friend garden ground heart island kitchen letter market minute "
    "moment morning mother mountain music number office orange paper people picture river school "
    "season silver spring station stone street summer table ticket valley village water window"
)


class Scenario(StrEnum):
    """What a load is about.

    SHARED_SYSTEM: tenants with a long system prompt each, and conversations of several turns that
    resend all that was said. WARM_TTFT: new sessions, one after another, on system prompts that
    were asked once before. BURST: sessions that ask all at once under one system prompt that is
    new. SINGLE: one answer at a time after a short prompt.
    """

    SHARED_SYSTEM = "shared-system"
    WARM_TTFT = "warm-ttft"
    BURST = "burst"
    SINGLE = "single"


@dataclass(frozen=True, slots=True)
class Load:
    """One run of a scenario. Session i is of tenant i modulo `num_tenants`."""

    scenario: Scenario
    seed: str
    num_sessions: int = 16
    concurrency: int = 8  # sessions that are open at once
    num_turns: int = 3
    max_tokens: int = 48  # of each answer, which always gets them all
    num_tenants: int = 4
    system_words: int = 800
    question_words: int = 24

    @property
    def is_primed(self) -> bool:
        """Whether every tenant's system prompt is asked once before the clock runs."""
        return self.scenario is Scenario.WARM_TTFT

    def system_message(self, tenant: int) -> Message:
        text = random_words(f"{self.seed}/system/{tenant}", self.system_words)
        return {"role": "system", "content": f"You are assistant number {tenant}. {text}"}

    def question(self, session: int, turn: int) -> Message:
        seed = f"{self.seed}/question/{session}/{turn}"
        return {"role": "user", "content": random_words(seed, self.question_words)}


def plan_load(load: Load) -> Load:
    """Return the load with what its scenario fixes put in place of what was asked for."""
    match load.scenario:
        case Scenario.SHARED_SYSTEM:
            return load
        case Scenario.WARM_TTFT:
            return replace(load, concurrency=1, num_turns=1)
        case Scenario.BURST:
            return replace(load, concurrency=load.num_sessions, num_turns=1, num_tenants=1)
        case Scenario.SINGLE:
            return replace(load, concurrency=1, num_turns=1, num_tenants=1, system_words=8)


def random_words(seed: str, count: int) -> str:
    return " ".join(random.Random(seed).choices(_VOCABULARY.split(), k=count))
