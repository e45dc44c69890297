"""From the bytes of a JSON object to validated fields, with nothing silently dropped.

Owns the three fates of a field. It is known and takes effect; it is known and its value is not
served, which is refused with the reason; or nobody knows it. Then a chat client, which may speak of
more than is served here, is told that it was ignored, and an operator, who would have changed
something else than was meant, is refused. Knows no particular field.

The one idea: a body is read by several small models, each of which takes its own names out of it,
and what is left at the end is what nobody knew. A field that is null counts as not sent.

A body is bounded in what it takes to look at it, which its bytes say little about: a text of a
megabyte is one value, and as many bytes of brackets are half a million.
"""

import hashlib
import re
from collections.abc import Collection, Container, Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError, PydanticKnownError

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.protocol.errors import describe, invalid_request

MAX_NAMES = 1000
"""Names that a body itself may have, far more than anybody knows."""

MAX_VALUES = 2**16
"""Objects, lists and names within a body: as many messages as there may be, each with a part."""

MAX_IGNORED_NAMES = 32
MAX_NAME_CHARS = 64

# Deep enough for the deepest known field: body, list, message, list, part.
MAX_FIELD_DEPTH = 5

_FINGERPRINT_BYTES = 16

# A string of JSON, also one that never ends.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)

_CONTAINERS = {dict, list}

# Every wire model has this config. Extra fields of nested objects are kept so that they can be
# reported; those of the body itself never reach a model.
WIRE = ConfigDict(strict=True, frozen=True, extra="allow", allow_inf_nan=False)

M = TypeVar("M", bound=BaseModel)


def parse_object(raw: bytes | str, *, max_values: int = MAX_VALUES) -> dict[str, Any]:
    """Parse a JSON object; NaN, lone surrogates and absurd nesting are no JSON."""
    as_bytes = raw.encode(errors="surrogatepass") if isinstance(raw, str) else raw
    _check_values(as_bytes, max_values)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(
            f"the body is not valid JSON: {error.msg} at position {error.pos}",
            code=ErrorCode.INVALID_JSON,
        ) from None
    if not isinstance(value, dict):
        raise InvalidRequest(
            f"the body must be a JSON object, received {describe(value)}",
            code=ErrorCode.INVALID_TYPE,
        )
    return value


class Body:
    """A JSON object on its way to being understood.

    Owns: the fields, and which of them a model has taken.
    Used from: the parse functions of this package.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        """Take over parsed JSON, or raise InvalidRequest where it has too many names."""
        if len(fields) > MAX_NAMES:
            raise InvalidRequest(f"the body has {len(fields)} names, the limit is {MAX_NAMES}")
        self._fields: dict[str, Any] = _without_nulls(fields, MAX_FIELD_DEPTH)
        self._unknown = dict.fromkeys(self._fields)
        self._unknown_nested: dict[str, Collection[str]] = {}

    def take(self, model: type[M]) -> M:
        """Validate the fields that `model` declares, or raise InvalidRequest."""
        names = _names_of(model)
        own = {name: self._fields[name] for name in names if name in self._fields}
        try:
            taken = model.model_validate(own)
        except ValidationError as failure:
            raise invalid_request(failure) from None
        for name in own:
            self._unknown.pop(name, None)
        for name, beside in _extra_names(taken, ""):
            if len(self._unknown_nested) == MAX_IGNORED_NAMES:
                break
            self._unknown_nested[name] = beside
        return taken

    def take_whole(self, model: type[M]) -> M:
        """Validate all fields by one model, or raise InvalidRequest, also for an unknown name."""
        known = _names_of(model)
        for name in self._fields:
            if name not in known:
                raise unknown_name(name, known)
        taken = self.take(model)
        for path, beside in self._unknown_nested.items():
            raise unknown_name(path, beside)
        return taken

    def has(self, name: str) -> bool:
        """Return whether a field was sent."""
        return name in self._fields

    def fingerprint(self, *, without: Container[str]) -> str:
        """Return a digest of what was sent, but for these fields; the order of names is no matter.

        Two bodies have the same one exactly if they say the same.
        """
        said = {name: value for name, value in self._fields.items() if name not in without}
        try:
            canonical = orjson.dumps(said, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:  # it reads deeper nesting than it writes
            raise InvalidRequest(
                "the body is nested too deeply", code=ErrorCode.INVALID_JSON
            ) from None
        return hashlib.blake2b(canonical, digest_size=_FINGERPRINT_BYTES).hexdigest()

    def ignored(self) -> tuple[str, ...]:
        """Return the names that no model knew, printable and bounded in number and length."""
        names = [*self._unknown, *self._unknown_nested]
        return printable_names(names)


def printable_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that may stand in a header, bounded in number and length."""
    return tuple(_printable(name) for name in names[:MAX_IGNORED_NAMES])


def unknown_name(path: str, known: Collection[str]) -> InvalidRequest:
    """Return the error for a name that means nothing where it stands, with the likeliest one."""
    shown = _printable(path)
    near = get_close_matches(path.rpartition(".")[2], known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(known)) or 'none'}"
    return InvalidRequest(
        f"{shown}: there is nothing of this name here; {hint}",
        code=ErrorCode.UNKNOWN_PARAMETER,
        param=shown,
    )


def only(*neutral: Any, reason: str) -> AfterValidator:
    """Return a validator that refuses every value but the neutral ones, and says why."""

    def check(value: Any) -> Any:
        if any(_is_same(value, allowed) for allowed in neutral):
            return value
        raise PydanticCustomError(ErrorCode.UNSUPPORTED.value, "{reason}", {"reason": reason})

    return AfterValidator(check)


def at_most(limit: int) -> BeforeValidator:
    """Return a validator that refuses an object of more members before it looks at any of them."""

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > limit:
            length = {"max_length": limit, "actual_length": len(value)}
            raise PydanticKnownError("too_long", {"field_type": "Dictionary", **length})
        return value

    return BeforeValidator(check)


NoTools = Annotated[Any, only([], reason="tool calls are not served")]


def _is_same(value: Any, allowed: Any) -> bool:
    """Compare without taking true for 1 or false for 0."""
    return isinstance(value, bool) is isinstance(allowed, bool) and bool(value == allowed)


def _check_values(raw: bytes, max_values: int) -> None:
    """Raise InvalidRequest for JSON of too many objects, lists and names, before any is made."""
    if _num_values(raw) <= max_values or _num_values(_STRING.sub(b"", raw)) <= max_values:
        return
    raise InvalidRequest(
        f"the body has more than {max_values} objects, lists and names, which is the limit"
    )


def _num_values(raw: bytes) -> int:
    return sum(map(raw.count, (b"{", b"[", b":")))


def _without_nulls(value: Any, depth: int) -> Any:
    """Return a value whose objects have lost their null members, down to a depth."""
    if depth and isinstance(value, dict):
        return {
            name: _without_nulls(member, depth - 1)
            for name, member in value.items()
            if member is not None
        }
    if depth and isinstance(value, list) and not _CONTAINERS.isdisjoint(map(type, value)):
        return [_without_nulls(entry, depth - 1) for entry in value]
    return value


def _names_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def _extra_names(model: BaseModel, prefix: str) -> Iterator[tuple[str, Collection[str]]]:
    """Yield the names that nobody knew in nested objects, and those known at the same place."""
    known = _names_of(type(model))
    for name, value in (model.model_extra or {}).items():
        if value is not None:
            yield prefix + name, known
    for field, value in model:
        if isinstance(value, BaseModel):
            yield from _extra_names(value, f"{prefix}{field}.")
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            for item in value:
                yield from _extra_names(item, f"{prefix}{field}[].")


def _printable(name: str) -> str:
    """Return a name that may stand in a header: percent-encoded, and cut when it is long."""
    return quote(name[:MAX_NAME_CHARS], safe="[]:.") or '""'
