"""Texts that are too long for the model: found out without the cost of their tokens."""

import pytest
from unit.tokenizer_helpers import byte_level_definition, make_card, sentencepiece_definition

from chatserve.errors import InvalidRequest
from chatserve.text import prompt_bound
from chatserve.text.chat_template import ChatMessage
from chatserve.text.prompt import PromptEncoder
from chatserve.text.prompt_bound import PIECE_CHARS
from chatserve.text.tokenizer import Tokenizer

LIMIT = 8191
CARD = make_card(byte_level_definition(), max_model_len=LIMIT + 1, max_prompt_tokens=2**20)


class Lexed:
    """How many characters each call of the tokenizer was given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lengths: list[int] = []
        encode = Tokenizer._encode_joined

        def recorded(tokenizer: Tokenizer, text: str) -> list[int]:
            self.lengths.append(len(text))
            return encode(tokenizer, text)

        monkeypatch.setattr(Tokenizer, "_encode_joined", recorded)


@pytest.fixture
def encoder() -> PromptEncoder:
    return PromptEncoder(CARD)


@pytest.fixture
def lexed(encoder: PromptEncoder, monkeypatch: pytest.MonkeyPatch) -> Lexed:
    return Lexed(monkeypatch)


def refusal(encoder: PromptEncoder, text: str) -> str:
    with pytest.raises(InvalidRequest) as refused:
        encoder.completion_token_ids(text)
    assert refused.value.code == "context_length_exceeded"
    return refused.value.message


def test_longest_token_is_that_of_the_vocabulary(encoder: PromptEncoder) -> None:
    vocabulary = Tokenizer.from_card(CARD)._bytes

    longest = max(len(vocabulary[token_id]) for token_id in range(encoder.tokenizer.vocab_size))

    assert encoder.tokenizer.longest_token == longest
    assert PromptEncoder(make_card(sentencepiece_definition())).tokenizer.longest_token >= 3


def test_text_that_no_tokens_can_hold_is_refused_unseen(
    encoder: PromptEncoder, lexed: Lexed
) -> None:
    """Fifteen megabytes were tokenised, for 33 seconds and 5 GB, to say that they are too many."""
    message = refusal(encoder, "x" * (encoder.bound.max_bytes + 1))

    assert f"at least {LIMIT + 1} tokens, the limit is {LIMIT}" in message
    assert lexed.lengths == []


def test_conversation_that_no_tokens_can_hold_is_refused_unseen(
    encoder: PromptEncoder, lexed: Lexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [ChatMessage("user", "x" * 3000)] * (encoder.bound.max_bytes // 3000 + 1)
    monkeypatch.setattr(encoder, "_template", object())

    with pytest.raises(InvalidRequest, match="at least"):
        encoder.prompt_token_ids(said)

    assert lexed.lengths == []


def test_text_that_might_fit_is_tokenised_only_until_it_does_not(
    encoder: PromptEncoder, lexed: Lexed
) -> None:
    message = refusal(encoder, "1 " * (encoder.bound.max_bytes // 2))

    assert f"more than {LIMIT} tokens" in message
    assert max(lexed.lengths) == PIECE_CHARS
    assert sum(lexed.lengths) <= 2 * LIMIT + PIECE_CHARS


@pytest.mark.parametrize(
    "text", ["1", "The quick brown fox. ", "  \n", "漢字と", "👨‍👩‍👧‍👦", "aaaa"]
)
def test_whatever_fits_is_tokenised_as_by_itself(encoder: PromptEncoder, text: str) -> None:
    most = encoder.bound.max_bytes // len(text.encode())
    while len(token_ids := encoder.tokenizer.encode(text * most)) > LIMIT:
        most = most * LIMIT // len(token_ids)

    assert encoder.completion_token_ids(text * most) == tuple(token_ids)


def test_token_ids_of_answers_count_by_their_number(
    encoder: PromptEncoder, lexed: Lexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_bound, "_USUAL_BYTES", 0)
    said = "The quick brown fox. " * 500
    ids = tuple(encoder.tokenizer.encode(said))
    answer = ChatMessage("assistant", said, ids)
    turns = [ChatMessage("user", "?"), answer] * (2 * LIMIT // len(ids) + 1)
    lexed.lengths.clear()

    with pytest.raises(InvalidRequest, match=f"more than {LIMIT} tokens"):
        encoder.prompt_token_ids([*turns, ChatMessage("user", "?")])

    assert sum(lexed.lengths) < 1000
