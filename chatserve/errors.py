"""The errors of the service, all of them below one base class.

    ChatServeError
    ├── ClientError            the caller's fault; carries code, HTTP status and the field at fault
    │   ├── InvalidRequest     400
    │   ├── Unauthenticated    401, no credential or one that is not valid
    │   ├── Forbidden          403
    │   ├── NotFound           404
    │   ├── BodyTimeout        408, a body that does not arrive
    │   ├── Conflict           409
    │   ├── TooLarge           413
    │   ├── TooManyInFlight    429, on one connection or of one caller
    │   ├── QueueFull          429, with the time after which a retry makes sense
    │   ├── RateLimited        429, a tenant's or a key's limit, with that time
    │   ├── Unavailable        503, nobody serves this right now
    │   └── AnswerFailed       500, an answer that ended by no fault of the caller
    ├── ConfigError            a setting that cannot work; the CLI exits with 2
    ├── ModelError             weights, tokenizer or template that cannot be loaded
    ├── StoreError             the store is full, refuses or answers nonsense
    │   ├── StoreAway          nobody answers there
    │   └── StoreFault         the store answered that a command makes no sense
    ├── EngineError            the engine thread died
    └── ServiceError           a process that the supervisor cannot keep running

Scarcity is no error (`None` says it), and a broken invariant is an `assert`, never one of these.
"""

import logging
from collections.abc import Mapping

from chatserve.error_codes import ErrorCode


class ChatServeError(Exception):
    """Whatever chatserve raises on purpose."""


class ClientError(ChatServeError):
    """A request that cannot be served as it was sent.

    Attributes:
        message: One sentence naming the thing, the value and the limit.
        code: Stable and machine-readable, for instance `context_length_exceeded`.
        param: The field at fault, as the client spelled it, or None.
        status: The HTTP status.
        type: The error family of the OpenAI error object.
        retry_after_s: The time after which a retry makes sense, where there is one.
    """

    status = 400
    type = "invalid_request_error"
    retry_after_s: int | None = None

    def __init__(
        self, message: str, *, code: str = ErrorCode.INVALID_VALUE, param: str | None = None
    ):
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param

    @property
    def headers(self) -> dict[str, str]:
        """What a client is told beside the body, over HTTP and in error frames."""
        return {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}


class InvalidRequest(ClientError):
    """The body, a field or a combination of fields makes no sense."""


class Unauthenticated(ClientError):
    """A caller who shows no credential, or one that is not valid."""

    status = 401
    type = "authentication_error"

    @property
    def headers(self) -> dict[str, str]:
        return {"www-authenticate": "Bearer"}


class Forbidden(ClientError):
    """A Host or Origin that is not allowed here, or a role that may not do this."""

    status = 403


class NotFound(ClientError):
    """No such model, session, response or path."""

    status = 404


class BodyTimeout(ClientError):
    """The body of a request took too long to arrive."""

    status = 408


class Conflict(ClientError):
    """The thing exists, but its state does not allow this now."""

    status = 409


class TooLarge(ClientError):
    """A body or message over the size limit."""

    status = 413


class TooManyInFlight(ClientError):
    """A connection or a caller has as much under way as it may have."""

    status = 429
    type = "rate_limit_error"


class QueueFull(ClientError):
    """The queue has no room; retry after `retry_after_s` seconds."""

    status = 429
    type = "rate_limit_error"

    def __init__(self, message: str, *, retry_after_s: int):
        super().__init__(message, code=ErrorCode.QUEUE_FULL)
        self.retry_after_s = retry_after_s


class RateLimited(ClientError):
    """A tenant or a key uses as much as it may; `limits` are the headers that tell what is left."""

    status = 429
    type = "rate_limit_error"

    def __init__(
        self, message: str, *, retry_after_s: int, limits: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, code=ErrorCode.RATE_LIMITED)
        self.retry_after_s = retry_after_s
        self._limits = dict(limits or {})

    @property
    def headers(self) -> dict[str, str]:
        return {"retry-after": str(self.retry_after_s), **self._limits}


class Unavailable(ClientError):
    """Nobody can serve this right now: no worker lives, or the store is away."""

    status = 503
    type = "server_error"

    def __init__(self, message: str, *, code: str, retry_after_s: int = 1):
        super().__init__(message, code=code)
        self.retry_after_s = retry_after_s


class AnswerFailed(ClientError):
    """An answer that the service could not finish, told to the caller who waited for it."""

    status = 500
    type = "server_error"


class ConfigError(ChatServeError):
    """A setting that cannot work; the message names flag, value and what is allowed."""


class ModelError(ChatServeError):
    """A model that cannot be found, read or run by this build."""


class StoreError(ChatServeError):
    """The store cannot be reached or does not do what the service needs.

    Attributes:
        log_level: How serious it is to a part that will try again by itself.
    """

    log_level = logging.WARNING


class StoreAway(StoreError):
    """Nobody answers. `store/outage.py` tells that once for all who notice it."""

    log_level = logging.DEBUG


class StoreFault(StoreError):
    """The store is there and takes a command for nonsense: a fault of ours, no outage."""


class EngineError(ChatServeError):
    """The engine thread has ended and took its requests with it."""


class ServiceError(ChatServeError):
    """A process of the service died so often that starting it again is no use."""
