"""How much of a conversation is read at once, and for whom.

Owns the bounds. A conversation may have 16 MiB, so nobody reads one whole: its outline comes
first, which says how large each message is, then of the messages those that are asked for, in
pieces. No user has so many pieces on their way that others wait, and between two pieces others have
their turn.

A page ends when its texts are large, before it has as many items as were asked for. The history of
a turn is not read when no prompt could hold it.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from chatserve.gateway.fair_turns import FairTurns
from chatserve.gateway.paging import PageQuery
from chatserve.identity import Owner
from chatserve.store.session_store import Sessions
from chatserve.store.sessions import Message, Outline
from chatserve.text.prompt_bound import PromptBound

PAGE_BYTES = 2**20
PIECE_BYTES = 2**18
PIECE_MESSAGES = 64

_READS_AT_ONCE = 8
_READS_OF_USER = 2


class ConversationReading:
    """Opens conversations.

    Owns: whose turn it is to read.
    Used from: the event loop.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._turns = FairTurns(_READS_AT_ONCE, num_of_party=_READS_OF_USER)

    async def open(self, owner: Owner, session_id: str) -> "OpenConversation":
        """Return a conversation of an owner; an empty one where there is none.

        Raises:
            TooManyInFlight: The owner reads too many already.
            StoreError: The store does not answer.
        """
        async with self._turns.turn(owner):
            outline = await self._sessions.outline(session_id)
        return OpenConversation(self._sessions, self._turns, owner, session_id, outline)


@dataclass(frozen=True, slots=True)
class OpenConversation:
    """A conversation as it stands in its outline; what is deleted meanwhile is left out.

    Owns: nothing beyond its values.
    Used from: the event loop, for one request.
    """

    sessions: Sessions
    turns: FairTurns
    owner: Owner
    session_id: str
    outline: Outline

    async def pieces(self, message_ids: Sequence[str]) -> AsyncIterator[Sequence[Message]]:
        """Yield messages in the order of their ids, a few at a time."""
        for piece in self._cut(message_ids, PIECE_BYTES, PIECE_MESSAGES):
            async with self.turns.turn(self.owner):
                messages = await self.sessions.read(self.session_id, self.outline, piece)
            yield messages

    async def messages(self, message_ids: Sequence[str]) -> list[Message]:
        """Return messages, of which the caller knows that they are not too many."""
        return [message async for piece in self.pieces(message_ids) for message in piece]

    async def history(self, message_ids: Sequence[str], bound: PromptBound) -> list[Message]:
        """Return what a turn goes on from, or raise InvalidRequest where no prompt can hold it."""
        bound.check_length(sum(map(self.outline.num_bytes, message_ids)), param="input")
        return await self.messages(message_ids)

    async def page(
        self, message_ids: Sequence[str], query: PageQuery
    ) -> tuple[list[Message], bool]:
        """Return a page of messages, one at least, and whether there are more."""
        found, has_more = query.cut(message_ids)
        page = next(self._cut(found, PAGE_BYTES, len(found)), [])
        return await self.messages(page), has_more or len(page) < len(found)

    def _cut(
        self, message_ids: Sequence[str], max_bytes: int, max_messages: int
    ) -> Iterator[list[str]]:
        """Cut ids into runs of so much text, or of one message that has more."""
        run: list[str] = []
        num_bytes = 0
        for message_id in message_ids:
            num_bytes += self.outline.num_bytes(message_id)
            if run and (num_bytes > max_bytes or len(run) == max_messages):
                yield run
                run, num_bytes = [], self.outline.num_bytes(message_id)
            run.append(message_id)
        if run:
            yield run
