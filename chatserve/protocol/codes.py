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
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONVERSATION_NOT_FOUND = "conversation_not_found"
    MESSAGE_NOT_FOUND = "message_not_found"
    VERSION_CONFLICT = "version_conflict"
    CONVERSATION_CHANGED = "conversation_changed"
    IMPORT_IN_PROGRESS = "import_in_progress"
    CONVERSATION_FULL = "conversation_full"
    TOO_MANY_CONVERSATIONS = "too_many_conversations"
    RESPONSE_ALREADY_IN_FLIGHT = "response_already_in_flight"
    PROMPT_NOT_FOUND = "prompt_not_found"
    RESPONSE_NOT_FOUND = "response_not_found"
    PREVIOUS_RESPONSE_NOT_FOUND = "previous_response_not_found"
    PREVIOUS_RESPONSE_IN_FLIGHT = "previous_response_in_flight"
    DUPLICATE_EVENT_ID = "duplicate_event_id"
    INVALID_STREAM_ID = "invalid_stream_id"
    RATE_LIMITED = "rate_limit_exceeded"
    OVER_LIMIT = "request_over_limit"
    SOCKET_QUEUE_FULL = "websocket_queue_full"
    SOCKET_LIFETIME_OVER = "websocket_connection_limit_reached"
    BODY_TOO_LARGE = "body_too_large"
    TOO_MANY_STREAMS = "too_many_streams"
    TOO_MANY_BODIES = "too_many_bodies"
    BODY_TIMEOUT = "body_timeout"
    DRAINING = "draining"
    UNAUTHENTICATED = "unauthenticated"
    INVALID_API_KEY = "invalid_api_key"
    OPERATOR_ONLY = "operator_only"
    HOST_NOT_ALLOWED = "host_not_allowed"
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    ORIGIN_REQUIRED = "origin_required"
    TENANT_NOT_FOUND = "tenant_not_found"
    KEY_NOT_FOUND = "key_not_found"
    NO_KEYS = "no_keys"
    NO_WORKER = "no_worker"
    STORE_UNAVAILABLE = "store_unavailable"
    CANCELLED = "cancelled"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    SERVER_ERROR = "server_error"


class CloseCode(IntEnum):
    """Why this side ends a WebSocket.

    The server below the application sends 1007 for text that is not UTF-8, 1009 for a message over
    the limit and 1011 for a peer that no longer answers pings. Official clients reconnect by
    themselves after 1001, 1011, 1012 and 1013, and not after 1003, 1008 and those from 4000 on.
    """

    GOING_AWAY = 1001
    BINARY_FRAME = 1003
    POLICY = 1008
    INTERNAL_ERROR = 1011
    SERVICE_RESTART = 1012
    TRY_AGAIN_LATER = 1013
    BAD_MESSAGES = 4400
    UNAUTHENTICATED = 4401
    AUTH_TIMEOUT = 4408
    TOO_MANY_CONNECTIONS = 4429
