"""The codes with which a WebSocket is closed.

Owns their meaning; a code once published keeps it. The reason beside a code is written where the
end is decided.
"""

from enum import IntEnum


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
