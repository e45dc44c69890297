"""What the gateway and an engine worker say to each other through the store.

Owns the records that cross that border: a request with its token ids, the numbered events of an
answer, and how an answer ended. Knows neither HTTP nor torch; the gateway may import this module
and nothing else of the engine.

An answer is a sequence of `LogEvent`s numbered from 0 without gaps. Its order is fixed:

    CREATED QUEUED IN_PROGRESS ITEM_ADDED PART_ADDED DELTA* TEXT_DONE PART_DONE ITEM_DONE terminal

where the terminal event is COMPLETED, INCOMPLETE or FAILED. An answer that ends before it began
(cancelled in the queue, say) goes to its terminal event directly from wherever it was; so does one
that was to have no text, from IN_PROGRESS.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NewType

RequestId = NewType("RequestId", str)

DEFAULT_TENANT = "default"
"""Whose requests are those that nobody authenticated."""

BEAT_TTL_MS = 4_000
"""How long a worker's heartbeat counts: so long a dead one is believed to live."""


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP = "stop"  # end-of-sequence token, stop token or stop string
    LENGTH = "length"  # max_tokens, or the end of the context
    ABORT = "abort"  # a client's will
    ERROR = "error"  # the service's fault


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to choose tokens. Validated where it is parsed; trusted from there on.

    `temperature` 0 is greedy. `top_k` 0 keeps the whole vocabulary. `seed` is always set: the
    gateway draws one where the client gave none, so that the token at position p of the answer is
    a function of (logits, seed, p) whoever computes it and in whatever batch.
    """

    max_tokens: int
    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One generation: the prompt as token ids, made once, and how to continue it.

    `tenant`, `user` and `key_id` come from whoever authenticated the request, never from its body:
    they say whose turn it is, whose cache it may see and whose limits hold. Among one tenant's
    requests a lower `priority` goes first. `timeout_ms` bounds the time from enqueue to the end of
    the answer. One that does not generate is computed for its prompt's KV alone: its answer ends
    without a token. The last `num_begun_tokens` of the prompt are the beginning of the answer, a
    character that they leave unfinished included.
    """

    request_id: RequestId
    model: str
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams
    tenant: str = DEFAULT_TENANT
    user: str = ""
    key_id: str = ""
    priority: int = 0
    timeout_ms: int | None = None
    generates: bool = True
    num_begun_tokens: int = 0

    @property
    def begun_token_ids(self) -> tuple[int, ...]:
        """The beginning of the answer, at the end of the prompt."""
        return self.prompt_token_ids[len(self.prompt_token_ids) - self.num_begun_tokens :]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "GenerationRequest":
        sampling = dict(fields["sampling"])
        sampling["stop"] = tuple(sampling["stop"])
        sampling["stop_token_ids"] = tuple(sampling["stop_token_ids"])
        return cls(
            request_id=RequestId(fields["request_id"]),
            model=fields["model"],
            prompt_token_ids=tuple(fields["prompt_token_ids"]),
            sampling=SamplingParams(**sampling),
            tenant=fields["tenant"],
            user=fields["user"],
            key_id=fields["key_id"],
            priority=fields["priority"],
            timeout_ms=fields["timeout_ms"],
            generates=fields["generates"],
            num_begun_tokens=fields["num_begun_tokens"],
        )


class EventKind(StrEnum):
    """The events of an answer, by the names they have on the wire."""

    CREATED = "response.created"
    QUEUED = "response.queued"
    IN_PROGRESS = "response.in_progress"
    ITEM_ADDED = "response.output_item.added"
    PART_ADDED = "response.content_part.added"
    DELTA = "response.output_text.delta"
    TEXT_DONE = "response.output_text.done"
    PART_DONE = "response.content_part.done"
    ITEM_DONE = "response.output_item.done"
    COMPLETED = "response.completed"
    INCOMPLETE = "response.incomplete"
    FAILED = "response.failed"

    @property
    def is_terminal(self) -> bool:
        return self in (EventKind.COMPLETED, EventKind.INCOMPLETE, EventKind.FAILED)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request.

    Of the input, `cached_tokens` were found in the prefix cache and `cache_write_tokens` were
    computed and given to it.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """How long the stages of one request took for whoever waited for it.

    `queue_ms` from enqueue to the first admission, `prefill_ms` from there to the first token,
    `ttft_ms` their sum; `tok_s` tokens per second after the first. A worker that is lost on the way
    starts none of them anew: what its loss cost is part of the stage that it happened in. Of
    `itl_p50_ms`, the median gap between tokens, only the last worker knows. None where a stage was
    never reached.
    """

    queue_ms: float | None = None
    prefill_ms: float | None = None
    ttft_ms: float | None = None
    itl_p50_ms: float | None = None
    tok_s: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an answer ended: the payload of its terminal event."""

    finish_reason: FinishReason
    usage: Usage
    timings: Timings = Timings()
    error_code: str | None = None
    error_message: str | None = None

    @property
    def terminal_kind(self) -> EventKind:
        match self.finish_reason:
            case FinishReason.STOP:
                return EventKind.COMPLETED
            case FinishReason.ERROR:
                return EventKind.FAILED
            case _:
                return EventKind.INCOMPLETE

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Outcome":
        return cls(
            finish_reason=FinishReason(fields["finish_reason"]),
            usage=Usage(**fields["usage"]),
            timings=Timings(**fields["timings"]),
            error_code=fields["error_code"],
            error_message=fields["error_message"],
        )


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One event of an answer, before it has a number.

    `text` and `token_ids` belong to DELTA (the text may lag behind the ids: half a character or a
    possible stop string is held back), `input_tokens`, `cached_tokens` and `queue_ms` to
    IN_PROGRESS, `ttft_ms` to the first DELTA, `outcome` to ITEM_DONE and the terminal event. The
    DONE events carry no text: it is that of the deltas before them.
    """

    kind: EventKind
    text: str = ""
    token_ids: tuple[int, ...] = ()
    input_tokens: int = 0
    cached_tokens: int = 0
    queue_ms: float | None = None
    ttft_ms: float | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Prefill:
    """How far a prompt of `total_tokens` is computed; the cached ones need not be.

    What there is of the answer counts as prompt where it is computed again.
    """

    cached_tokens: int
    computed_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What one step did for one request.

    `admitted_cached_tokens` is set once, when the request is first admitted and before anything of
    it is computed. `num_computed_tokens`, the cached ones included, is set after a step that ended
    in the middle of the prompt. `text` is what may be shown now. `finish_reason` is set exactly
    once, in the request's last output.
    """

    request_id: RequestId
    token_ids: tuple[int, ...] = ()
    text: str = ""
    admitted_cached_tokens: int | None = None
    num_computed_tokens: int | None = None
    finish_reason: FinishReason | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class KeptPrefix:
    """A prompt's beginning that an engine is to have ready: a tenant's prompt, or the preamble.

    The tenant is empty for the operator's preamble, which everybody shares. A pinned one is
    computed ahead, saved, and never evicted. Any other is computed ahead too and then evicted after
    those of lower `priority`, or once it has not been used for `ttl_s` seconds. `tenant_pages` is
    how many pages its tenant may pin, where that is not as many as any other's.
    """

    tenant: str
    name: str
    token_ids: tuple[int, ...]
    is_pinned: bool = True
    priority: int = 0
    ttl_s: float | None = None
    tenant_pages: int | None = None


class PrefixState(StrEnum):
    """What became of a kept prefix."""

    WARMING = "warming"  # being computed
    PINNED = "pinned"
    CACHED = "cached"  # computed, and to be evicted like anything else
    REFUSED = "refused"  # the reason says why; prompts that begin with it work all the same


@dataclass(frozen=True, slots=True)
class PrefixReport:
    """News of a kept prefix.

    Its tokens take `num_pages` pages, those that it shares with others included. `is_restored` says
    that they came from disk and were not computed.
    """

    prefix: KeptPrefix
    state: PrefixState
    num_pages: int
    is_restored: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A consistent snapshot, taken between two steps.

    Pages: `free + used + cached == num_pages`; used is held by a request, cached by the tree only,
    shared by two or more requests, pinned for good.
    """

    num_steps: int = 0
    num_pages: int = 0
    pages_free: int = 0
    pages_used: int = 0
    pages_cached: int = 0
    pages_shared: int = 0
    pages_pinned: int = 0
    requests_running: int = 0
    requests_waiting: int = 0
    query_tokens: int = 0
    hit_tokens: int = 0
    preemptions: int = 0
    has_prefix_cache: bool = True


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a gateway must know of a model to serve it, published by its workers.

    `max_model_len` bounds prompt plus output, `max_prompt_tokens` what the worker's pool can hold.
    `tokenizer_json` is in the format of the `tokenizers` library. `bos_token` and `eos_token` are
    the strings that chat templates refer to.
    """

    name: str
    max_model_len: int
    max_prompt_tokens: int
    vocab_size: int
    tokenizer_json: str
    chat_template: str | None
    bos_token: str | None
    eos_token: str | None
    eos_token_ids: tuple[int, ...]
    adds_bos: bool
    default_temperature: float = 1.0
    default_top_p: float = 1.0
    default_top_k: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "ModelCard":
        return cls(**{**fields, "eos_token_ids": tuple(fields["eos_token_ids"])})
