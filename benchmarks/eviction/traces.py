"""Synthetic traffic of many tenants, as token ids.

Owns the shape of the traffic: who asks when, and how long prompts, questions and answers are. Knows
no cache. The same workload gives the same trace, on any machine.

Each tenant has a system prompt; which tenant a session belongs to follows Zipf's law. A session has
several turns, and a turn's prompt is the whole conversation before it and a new question. Sessions
begin at random and people think between turns, so the turns of some forty sessions interleave:

    tenant A  session 1   [A q1 → a1]        [A q1 a1 q2 → a2]                     ...
    tenant B  session 2        [B q3 → a3]                      [B q3 a3 q4 → a4]  ...
    tenant A  session 3                [A q5 → a5]                                 ...
    tenant S  scans         [S d1 → a6]     [S d2 → a7]    [S d3 → a8]    [S d4 → a9]

One tenant may scan on top of that: a stream of long documents that each come once, behind a system
prompt of their own or with nothing in common.
"""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from math import log

SESSION_GAP_S = 4.0
SCAN_GAP_S = 8.0
THINK_MEDIAN_S, THINK_SIGMA = 30.0, 1.2
ANOTHER_TURN = 0.75
MAX_CONVERSATION = 4_096

Text = Callable[[float], list[int]]


class Scan(StrEnum):
    """Whether one tenant scans, and what its documents begin with."""

    NONE = "no scan"
    PROMPT = "behind a prompt"
    BARE = "bare"


@dataclass(frozen=True, slots=True)
class Workload:
    """What a trace is made from."""

    zipf: float
    scan: Scan
    seed: int
    num_tenants: int = 60
    num_sessions: int = 400


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """One request: its prompt, and the answer that it will get."""

    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True, slots=True, order=True)
class _Turn:
    """A turn that is due: `history` is everything before its question. Ordered by time."""

    time_s: float
    number: int
    history: list[int]
    is_scan: bool = False


def make_trace(workload: Workload) -> list[TracedRequest]:
    """Return the requests of a workload in the order in which they are made."""
    rng = random.Random(f"{workload.seed} {workload.zipf} {workload.scan}")
    token_ids, numbers = count(), count()

    def text(length: float) -> list[int]:
        """Return tokens that occur nowhere else, so that only repeated text can match."""
        return [next(token_ids) for _ in range(int(length))]

    due = _first_turns(workload, rng, text, numbers)
    due += _documents(workload, rng, text, numbers)
    heapq.heapify(due)
    trace: list[TracedRequest] = []
    while due:
        turn = heapq.heappop(due)
        request = _ask(turn, rng, text)
        trace.append(request)
        conversation = request.prompt + request.answer
        may_go_on = not turn.is_scan and len(conversation) < MAX_CONVERSATION
        if may_go_on and rng.random() < ANOTHER_TURN:
            think_s = rng.lognormvariate(log(THINK_MEDIAN_S), THINK_SIGMA)
            heapq.heappush(due, _Turn(turn.time_s + think_s, next(numbers), conversation))
    return trace


def _first_turns(
    workload: Workload, rng: random.Random, text: Text, numbers: "count[int]"
) -> list[_Turn]:
    tenants = range(workload.num_tenants)
    prompts = [text(min(2_500, max(300, rng.lognormvariate(log(900), 0.6)))) for _ in tenants]
    weights = [(rank + 1) ** -workload.zipf for rank in tenants]
    turns, time_s = [], 0.0
    for tenant in rng.choices(tenants, weights, k=workload.num_sessions):
        time_s += rng.expovariate(1 / SESSION_GAP_S)
        turns.append(_Turn(time_s, next(numbers), prompts[tenant]))
    return turns


def _documents(
    workload: Workload, rng: random.Random, text: Text, numbers: "count[int]"
) -> list[_Turn]:
    """Return a scanning tenant's requests, for as long as sessions begin."""
    if workload.scan is Scan.NONE:
        return []
    prompt = text(320) if workload.scan is Scan.PROMPT else []
    turns, time_s = [], rng.expovariate(1 / SCAN_GAP_S)
    while time_s < workload.num_sessions * SESSION_GAP_S:
        turns.append(_Turn(time_s, next(numbers), prompt, is_scan=True))
        time_s += rng.expovariate(1 / SCAN_GAP_S)
    return turns


def _ask(turn: _Turn, rng: random.Random, text: Text) -> TracedRequest:
    if turn.is_scan:
        return TracedRequest(turn.history + text(rng.uniform(600, 2_400)), text(60))
    question = min(400, 8 + rng.lognormvariate(log(40), 0.9))
    answer = min(600, 10 + rng.lognormvariate(log(120), 0.8))
    return TracedRequest(turn.history + text(question), text(answer))
