"""How long a prompt may be, and how a longer one is found out for less than its tokens would cost.

Owns the limit of a model, the error that names it, and what may be tokenised. Tokens take time and
memory in proportion to the text, so that one of many times the context would cost far more than any
that can be served. Hence:

1. A text of no more than `_USUAL_BYTES` for each token that there may be is tokenised as it is.
2. One of more bytes than the longest token of the vocabulary has, for each, is refused unseen. This
   is a rule: a template may leave most of a conversation out, a normaliser shorten a text, and it
   holds all the same.
3. What lies between is tokenised in pieces first, until they have twice as many tokens as there may
   be. A cut changes the tokens beside it but never doubles their number, so nothing is refused here
   that fits; and what passes is tokenised as a whole for no more than that.
"""

from collections.abc import Callable, Sequence

from chatserve.engine.api import ModelCard
from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.text.segments import Plain, Segment, Verbatim

PIECE_CHARS = 2**14

_USUAL_BYTES = 4
_SURELY_TOO_MANY = 2


class PromptBound:
    """What may be tokenised for one model.

    Owns: nothing that changes. Used from: any thread.
    """

    def __init__(self, card: ModelCard, longest_token: int) -> None:
        self._card = card
        self._longest_token = longest_token
        self._max_tokens = max_prompt_tokens(card)

    @property
    def max_bytes(self) -> int:
        """How much text a prompt may be made of."""
        return self._max_tokens * self._longest_token

    def check_length(self, num_bytes: int, *, param: str | None = None) -> None:
        """Raise InvalidRequest for a prompt out of so many bytes of text, or more (2)."""
        if num_bytes > self.max_bytes:
            at_least = -(-num_bytes // self._longest_token)
            raise prompt_too_long(self._card, f"at least {at_least}", param=param)

    def check_tokens(self, segments: Sequence[Segment], count: Callable[[str], int]) -> None:
        """Raise InvalidRequest for a prompt with too many tokens, after a bounded number (1, 3)."""
        texts = [segment.text for segment in segments if isinstance(segment, Plain)]
        if sum(map(len, texts)) <= _USUAL_BYTES * self._max_tokens:
            return
        num_tokens = sum(len(each.token_ids) for each in segments if isinstance(each, Verbatim))
        for text in texts:
            for start in range(0, len(text), PIECE_CHARS):
                num_tokens += count(text[start : start + PIECE_CHARS])
                if num_tokens > _SURELY_TOO_MANY * self._max_tokens:
                    raise prompt_too_long(self._card, f"more than {self._max_tokens}")


def max_prompt_tokens(card: ModelCard) -> int:
    """Return how many tokens a prompt may have: one of the context is left for the answer."""
    return min(card.max_model_len - 1, card.max_prompt_tokens)


def prompt_too_long(card: ModelCard, how_many: str, *, param: str | None = None) -> InvalidRequest:
    """Return the error of a prompt with more tokens than the model can be given."""
    return InvalidRequest(
        f"the prompt has {how_many} tokens, the limit is {max_prompt_tokens(card)}: the context of "
        f"model {card.name} holds {card.max_model_len} tokens, prompt and answer together",
        code=ErrorCode.CONTEXT_LENGTH_EXCEEDED,
        param=param,
    )
