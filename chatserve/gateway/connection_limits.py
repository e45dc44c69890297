"""What one socket may use up.

Owns the numbers, each with its reason; the first frame on a socket tells them to the client.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one connection.

    `max_in_flight` counts responses that are waiting in their lane, generated or resumed. Up to
    `outbox_high_bytes` of frames may wait for a slow reader; then no log is read until
    `outbox_low_bytes` are left. Replies to the client's own messages go above the mark, up to
    `outbox_max_bytes`, where the connection ends. It also ends when the peer takes nothing for
    `stall_s`, or when it has not shown who it is for `auth_timeout_s`.
    """

    max_in_flight: int = 16
    outbox_high_bytes: int = 256 * 1024
    outbox_low_bytes: int = 64 * 1024
    outbox_max_bytes: int = 1024 * 1024
    stall_s: float = 30.0
    close_timeout_s: float = 5.0
    auth_timeout_s: float = 5.0
