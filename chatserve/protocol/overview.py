"""What an operator sees of the whole service at one moment.

Owns the shape. Knows no store: the objects are made from plain values by whoever read them.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

_REPLY = ConfigDict(frozen=True)


class LimitUse(BaseModel):
    """A limit, and what of it is used: in the current minute, or right now; None is not known.

    Owns: nothing beyond its values.
    Used from: `TenantOverview`.
    """

    model_config = _REPLY

    limit: int
    used: int | None


class DayUsage(BaseModel):
    """What ended today, by UTC. Of the input, `cached_tokens` were not computed.

    Owns: nothing beyond its values.
    Used from: `TenantOverview`.
    """

    model_config = _REPLY

    requests: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int


class TenantOverview(BaseModel):
    """One tenant. Its connections are counted where they are limited, and None elsewhere.

    Owns: nothing beyond its values.
    Used from: `Overview`.
    """

    model_config = _REPLY

    name: str
    requests_running: int
    requests_queued: int
    connections: int | None
    usage_today: DayUsage
    limits: dict[str, LimitUse]


class WorkerOverview(BaseModel):
    """One worker, as its last sign of life says. The age of that is None once it has run out.

    Owns: nothing beyond its values.
    Used from: `Overview`.
    """

    model_config = _REPLY

    id: str
    model: str
    version: str
    is_draining: bool
    beat_age_ms: int | None
    requests_running: int
    requests_waiting: int
    num_pages: int
    pages_free: int
    pages_used: int
    pages_cached: int
    pages_shared: int
    pages_pinned: int
    query_tokens: int
    hit_tokens: int


class QueueOverview(BaseModel):
    """The queue of one model.

    Owns: nothing beyond its values.
    Used from: `Overview`.
    """

    model_config = _REPLY

    model: str
    length: int
    max_length: int


class GatewayOverview(BaseModel):
    """The gateway that answers; the others tell of themselves.

    Owns: nothing beyond its values.
    Used from: `Overview`.
    """

    model_config = _REPLY

    version: str
    connections: int
    is_draining: bool


class Overview(BaseModel):
    """A page of tenants, and all workers and queues.

    Owns: nothing beyond its values.
    Used from: the overview endpoint.
    """

    model_config = _REPLY

    object: Literal["chatserve.overview"] = "chatserve.overview"
    gateway: GatewayOverview
    workers: list[WorkerOverview]
    queues: list[QueueOverview]
    tenants: list[TenantOverview]
    has_more: bool
