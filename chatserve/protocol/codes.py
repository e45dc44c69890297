"""The error and close codes of the service, all in one place.

Owns the names that clients may compare with; a code once published keeps its meaning. Knows no
messages: those are written where the problem is noticed.
"""

from enum import IntEnum, StrEnum


class ErrorCode(StrEnum):
    """The `code` of an error object, over HTTP and in error frames."""

    INVALID_JSON = "invalid_json"
    INVALID_TYPE = "invalid_type"
    INVALID_VALUE = "invalid_value"
    MISSING = "missing_required_parameter"
    UNSUPPORTED = "unsupported"
    UNKNOWN_EVENT = "unknown_event"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_FOUND = "not_found"
    WEBSOCKET_ONLY = "websocket_only"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONVERSATION_NOT_FOUND = "conversation_not_found"
    RESPONSE_NOT_FOUND = "response_not_found"
    PREVIOUS_RESPONSE_NOT_FOUND = "previous_response_not_found"
    PREVIOUS_RESPONSE_IN_FLIGHT = "previous_response_in_flight"
    INVALID_STREAM_ID = "invalid_stream_id"
    SOCKET_QUEUE_FULL = "websocket_queue_full"
    BODY_TOO_LARGE = "body_too_large"
    HOST_NOT_ALLOWED = "host_not_allowed"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    NO_WORKER = "no_worker"
    STORE_UNAVAILABLE = "store_unavailable"
    CANCELLED = "cancelled"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    SERVER_ERROR = "server_error"


class CloseCode(IntEnum):
    """Why this side ends a WebSocket.

    The server below the application sends 1001 or 1012 when it stops, 1007 for text that is not
    UTF-8, 1009 for a message over the limit and 1011 for a peer that no longer answers pings.
    Official clients reconnect by themselves after 1011 and 1013, and not after 1003.
    """

    BINARY_FRAME = 1003
    INTERNAL_ERROR = 1011
    TRY_AGAIN_LATER = 1013
