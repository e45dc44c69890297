"""Text to token ids and back, for one model.

Owns the `tokenizers` backend of a model and the rule that text is text: `encode` never returns the
id of a control token, whatever the text spells. Only a `Control` segment becomes one. Knows nothing
of templates, of BOS, or of what a prompt is.

A whole prompt is one string for one call of the backend, with aliases in place of its control
tokens (`aliases`): merges, whitespace rules and the space before a first word then come out as in
the model's own encoding of the whole prompt.
"""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import tokenizers

from chatserve.engine.api import ModelCard
from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest, ModelError
from chatserve.text.aliases import Aliases
from chatserve.text.control_tokens import ControlTokens
from chatserve.text.segments import Plain, Segment
from chatserve.text.token_bytes import Spelling, TokenBytes


class Tokenizer:
    """The tokenizer of one model.

    Owns: the backend, never changed once made, and the aliases.
    Used from: any thread.
    """

    def __init__(self, definition: Mapping[str, Any]) -> None:
        """Take over the parsed content of a `tokenizer.json`."""
        added = definition["added_tokens"]
        self.control_tokens = ControlTokens.from_added_tokens(added)
        spelling = Spelling.from_decoder(definition["decoder"])
        self.drops_leading_space = spelling.drops_leading_space
        self._backend = _without_control(definition, self.control_tokens)
        vocabulary = self._backend.get_vocab(with_added_tokens=True)
        self.vocab_size = len(vocabulary)
        self.longest_token = max(map(spelling.num_bytes, vocabulary))
        self._special_ids = frozenset(token["id"] for token in added if token["special"])
        self._spellings = self._spell_control_tokens(_unk_token(definition["model"]))
        self._aliases = Aliases(self._backend, added, self.control_tokens.ids)
        self._bytes = TokenBytes(
            spelling,
            added_tokens={token["id"]: token["content"] for token in added},
            id_to_token=self._backend.id_to_token,
        )

    @classmethod
    def from_json(cls, tokenizer_json: str) -> "Tokenizer":
        """Read the content of a `tokenizer.json`.

        Raises:
            ModelError: it is damaged, or of a kind that isn't supported.
        """
        try:
            return cls(orjson.loads(tokenizer_json))
        except (ValueError, LookupError, TypeError) as error:
            raise ModelError(f"the tokenizer cannot be read: {error!r}") from error

    @classmethod
    def from_card(cls, card: ModelCard) -> "Tokenizer":
        return cls.from_json(card.tokenizer_json)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text` as plain text, without BOS and without control tokens."""
        return self.encode_segments([Plain(text)])

    def count(self, text: str) -> int:
        """Return how many tokens a plain text has by itself."""
        return len(self.encode(text))

    def encode_special(self, text: str) -> list[int]:
        """Return the ids of trusted text, in which the strings of control tokens become them."""
        return self.encode_segments(list(self.control_tokens.split(text)))

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Return the ids of a prompt.

        Raises:
            InvalidRequest: the text contains half of a surrogate pair.
        """
        token_ids = self._encode_joined(self._aliases.spell(segments))
        return list(self._aliases.resolve(token_ids, segments))

    def decode(self, token_ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Return the text of a whole answer; what isn't UTF-8 in it becomes U+FFFD."""
        answer = self.decode_bytes(token_ids, skip_special=skip_special)
        if self.drops_leading_space:
            answer = answer.removeprefix(b" ")
        return answer.decode(errors="replace")

    def spells(self, token_ids: Sequence[int], text: str) -> bool:
        """Say whether an answer of these ids shows this text, whole or cut within a character."""
        spelled = self.decode_bytes(token_ids, skip_special=True)
        if self.drops_leading_space:
            spelled = spelled.removeprefix(b" ")
        cut = codecs.getincrementaldecoder("utf-8")(errors="replace").decode(spelled)
        return text in (cut, spelled.decode(errors="replace"))

    def decode_bytes(self, token_ids: Iterable[int], *, skip_special: bool) -> bytes:
        """Return the bytes of a piece of an answer, with the leading space it may drop."""
        if skip_special:
            token_ids = (each for each in token_ids if each not in self._special_ids)
        return b"".join(self._bytes[each] for each in token_ids if each not in self._aliases.ids)

    def token_id(self, token: str) -> int | None:
        """Return the id of one token by its string; None if the vocabulary lacks it."""
        return self._backend.token_to_id(token)

    def is_special(self, token_id: int) -> bool:
        """Say whether a token is never part of an answer's text."""
        return token_id in self._special_ids

    def _encode_joined(self, text: str) -> list[int]:
        """Encode text with aliases; its plain parts give no control token."""
        _require_unicode(text)
        # The call for a batch lets other threads run meanwhile; the one for a single text doesn't.
        [encoding] = self._backend.encode_batch_fast([text], add_special_tokens=False)
        token_ids: list[int] = encoding.ids
        if self._spellings.keys().isdisjoint(token_ids):
            return token_ids
        return [part for each in token_ids for part in self._spellings.get(each, (each,))]

    def _spell_control_tokens(self, unk_token: str | None) -> dict[int, tuple[int, ...]]:
        """Return what stands for each control token that ordinary pieces of a text come to.

        That happens where a vocabulary lists them among its pieces, as Unigram models do with
        `</s>`: they are then spelled by their characters. What the vocabulary cannot spell may
        become a token for the unknown, but is left out where `<|endoftext|>` or the like is that.
        """
        ids = self.control_tokens.ids
        spellings: dict[int, tuple[int, ...]] = {}
        for token, token_id in ids.items():
            characters = map(self._backend.token_to_id, token)
            spellings[token_id] = tuple(each for each in characters if each is not None)
        if unk_token is not None and unk_token in ids:
            spellings[ids[unk_token]] = (ids[unk_token],) if "unk" in unk_token.lower() else ()
        return spellings


def _without_control(
    definition: Mapping[str, Any], control_tokens: ControlTokens
) -> tokenizers.Tokenizer:
    """Build the backend of a definition such that it finds no control token in a text.

    The backend can be told to overlook the tokens that are flagged special, so all are flagged.
    What it would add, cut or pad on its own is left out.
    """
    added = [
        {**token, "special": token["special"] or token["content"] in control_tokens.ids}
        for token in definition["added_tokens"]
    ]
    bare = {"added_tokens": added, "post_processor": None, "truncation": None, "padding": None}
    try:
        backend = tokenizers.Tokenizer.from_str(orjson.dumps({**definition, **bare}).decode())
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"the tokenizer cannot be read: {error}") from error
    backend.encode_special_tokens = True
    return backend


def _unk_token(model: Mapping[str, Any]) -> str | None:
    """Return the token that a model has for text that its vocabulary cannot spell."""
    if model.get("unk_id") is not None:
        return str(model["vocab"][model["unk_id"]][0])
    return model.get("unk_token")


def _require_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"The text contains U+{ord(text[error.start]):04X}, half of a surrogate pair, "
            "which is no character.",
            code=ErrorCode.INVALID_UNICODE,
        ) from error
