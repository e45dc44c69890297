"""The two ways in which a connection comes to its end.

They travel as exceptions through the connection's task group, so that the end of one task is the
end of all. Neither is a fault.
"""

from chatserve.errors import ChatServeError
from chatserve.protocol.codes import CloseCode


class PeerGone(ChatServeError):
    """The peer has closed, or cannot be reached any more; `code` is what it closed with."""

    def __init__(self, code: int):
        super().__init__(f"the peer is gone, code {code}")
        self.code = code


class Ending(ChatServeError):
    """This side ends the connection, with a close code and a reason that the peer will see."""

    def __init__(self, code: CloseCode, reason: str):
        super().__init__(reason)
        self.code = code
        self.reason = reason
