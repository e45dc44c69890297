"""The search over a user's conversations, titles and messages alike.

Owns how much one call looks at. Where it stopped is in its cursor, so that a long history costs
many short calls and never a long one; a long conversation that spans calls may be found by each.
"""

from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.gateway.conversations import conversation_object
from chatserve.gateway.identity import identity_of
from chatserve.gateway.operations import LIMIT, Operation, flag, text
from chatserve.gateway.paging import page_limit
from chatserve.gateway.query import flag_of
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services
from chatserve.identity import Owner
from chatserve.protocol.conversation_objects import Hit, HitList, Match, excerpt_of
from chatserve.protocol.errors import describe
from chatserve.store.session_store import ListPlace, Sessions
from chatserve.store.sessions import Message, Session

_PATH = "/v1/chatserve/conversations/search"

MAX_MESSAGES_PER_CALL = 500
_MAX_CHARS_PER_CALL = 1_000_000
_MAX_SESSIONS_PER_CALL = 50
_PLACES = 50
_PIECE = 4
"""Messages read at a time: one may be as large as a whole call may look at."""

_MAX_MATCHES = 3
_MAX_QUERY_CHARS = 200
_CHARS_BEFORE = 40


async def search_conversations(request: Request) -> Response:
    """Serve `GET /v1/chatserve/conversations/search`: titles and messages, the newest first."""
    services: Services = request.app.state.services
    owner = identity_of(request).owner
    search = _Search(services.store.sessions, owner, _wanted(request), page_limit(request))
    place, entry_id = _parse_cursor(request.query_params.get("cursor"))
    archived = flag_of(request, "archived")
    if place is not None and entry_id is not None:
        await search.look_into(place, entry_id)
    while not search.is_over:
        places = await services.store.sessions.places(owner, _PLACES, place, archived=archived)
        for place in places:
            await search.look_into(place)
            if search.is_over:
                break
        if len(places) < _PLACES and not search.is_over:
            return json_response(search.found(None).to_wire())
    return json_response(search.found(search.stopped_at).to_wire())


@dataclass
class _Search:
    """One call of a search: what it found so far, and what it may still look at.

    Owns: its budget, its hits.
    Used from: the endpoint, for one request.
    """

    sessions: Sessions
    owner: Owner
    words: str
    limit: int
    stopped_at: str | None = None
    hits: list[Hit] = field(default_factory=list)
    messages_left: int = MAX_MESSAGES_PER_CALL
    chars_left: int = _MAX_CHARS_PER_CALL
    sessions_left: int = _MAX_SESSIONS_PER_CALL

    @property
    def is_over(self) -> bool:
        """Whether this call has found or looked at enough."""
        return self._is_spent or self.sessions_left <= 0 or len(self.hits) >= self.limit

    @property
    def _is_spent(self) -> bool:
        """Whether this call has read as many messages as it may."""
        return self.messages_left <= 0 or self.chars_left <= 0

    async def look_into(self, place: ListPlace, before: str | None = None) -> None:
        """Search a session, title first; or what of its messages is older than an entry."""
        self.sessions_left -= 1
        self.stopped_at = _cursor(place)
        session = await self.sessions.get(place.session_id)
        # A cursor comes from the client, who may have written another's session into it.
        if session is None or session.owner != self.owner:
            return
        matches = [] if before else self._in_title(session)
        while len(matches) < _MAX_MATCHES:
            if self._is_spent:
                self.stopped_at = _cursor(place, before)
                break
            piece = await self.sessions.newest_messages(place.session_id, _PIECE, before)
            for entry_id, message in piece:
                before = entry_id
                matches += self._in_message(message)
                if self._is_spent:
                    break
            else:
                if len(piece) < _PIECE:
                    break
        if matches:
            found = matches[:_MAX_MATCHES]
            self.hits.append(Hit(conversation=conversation_object(session), matches=found))

    def found(self, cursor: str | None) -> HitList:
        """Return the hits, and from where the next call goes on."""
        return HitList(object="list", data=self.hits, has_more=cursor is not None, cursor=cursor)

    def _in_title(self, session: Session) -> list[Match]:
        excerpt = _excerpt(session.title, self.words)
        return [Match(item_id=None, role=None, excerpt=excerpt)] if excerpt else []

    def _in_message(self, message: Message) -> list[Match]:
        self.messages_left -= 1
        self.chars_left -= len(message.content)
        excerpt = _excerpt(message.content, self.words)
        if not excerpt:
            return []
        return [Match(item_id=message.message_id, role=message.role, excerpt=excerpt)]


def _wanted(request: Request) -> str:
    words = request.query_params.get("q", "").strip()
    if not 1 <= len(words) <= _MAX_QUERY_CHARS:
        raise InvalidRequest(
            f"q: must have 1 to {_MAX_QUERY_CHARS} characters, received {describe(words)}",
            code=ErrorCode.INVALID_VALUE if words else ErrorCode.MISSING,
            param="q",
        )
    return words.casefold()


def _excerpt(content: str, words: str) -> str:
    """Return the text around the first place where casefolded words are, empty for none."""
    folded = content.casefold()
    found = folded.find(words)
    if found < 0:
        return ""
    # Folding can make a text longer, which moves the place; an excerpt need not be exact.
    start = max(0, min(found, len(content)) - _CHARS_BEFORE)
    start = _word_start(content, start, found)
    return ("…" if start else "") + excerpt_of(content, start)


def _word_start(content: str, start: int, end: int) -> int:
    """Return where the first whole word begins between two places; the first one if none does."""
    if start == 0 or content[start - 1].isspace():
        return start
    spaces = (place for place in range(start, end) if content[place].isspace())
    return next(spaces, start)


def _cursor(place: ListPlace, entry_id: str | None = None) -> str:
    return f"{place.updated_ms}.{entry_id or ''}.{place.session_id}"


def _parse_cursor(cursor: str | None) -> tuple[ListPlace | None, str | None]:
    """Return the session that a cursor stopped at, and the entry if it stopped inside."""
    if cursor is None:
        return None, None
    updated_ms, _, rest = cursor.partition(".")
    entry_id, _, session_id = rest.partition(".")
    if not (_is_number(updated_ms) and (_is_entry(entry_id) or not entry_id) and session_id):
        raise InvalidRequest(
            f"cursor: must be what an earlier reply named, received {describe(cursor)}",
            param="cursor",
        )
    return ListPlace(int(updated_ms), session_id), entry_id or None


def _is_entry(entry_id: str) -> bool:
    """Say whether this can be the id of an entry; that of the first one is above 0-0."""
    parts = entry_id.split("-", 1)
    return all(map(_is_number, parts)) and any(map(int, parts))


def _is_number(digits: str) -> bool:
    return 0 < len(digits) <= 15 and digits.isascii() and digits.isdigit()


OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        "Search titles and messages",
        query=(text("q", is_required=True), LIMIT, text("cursor"), flag("archived")),
        reply=HitList,
    ),
)


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [Route(_PATH, search_conversations, methods=["GET"])]
