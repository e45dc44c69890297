"""What a client sent to the token ids of its prompt.

Owns the rules that need both template and tokenizer:

- A conversation goes through the model's chat template; without one through ChatML, if the
  vocabulary has its tokens; else chat is refused.
- A raw prompt is plain text: control tokens spelled out in it stay characters.
- A model that wants BOS gets exactly one, written by its template or else put in front.
- The ids of an earlier answer stand for its text only if they spell exactly that text; an answer
  that was cut may have ids for half a character behind it.
- To go on with an answer is to ask for it again, and to put its ids behind the prompt that it had.
"""

from collections.abc import Sequence
from dataclasses import replace

from chatserve.engine.api import ModelCard
from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest, ModelError
from chatserve.text.chat_template import (
    CHATML_TEMPLATE,
    CHATML_TOKENS,
    ChatMessage,
    ChatTemplate,
)
from chatserve.text.prompt_bound import PromptBound
from chatserve.text.segments import Plain, Segment
from chatserve.text.tokenizer import Tokenizer
from chatserve.text.turn_heads import turn_heads
from chatserve.text.turns import Turn, TurnReader


class PromptEncoder:
    """Makes the prompts of one model.

    Owns: its tokenizer, its template and the bound on what they are given. Immutable.
    Used from: any thread.
    """

    def __init__(self, card: ModelCard) -> None:
        self.tokenizer = Tokenizer.from_card(card)
        self.bound = PromptBound(card, self.tokenizer.longest_token)
        self._model = card.name
        self._bos_id = self._find_bos_id(card)
        self._template = self._make_template(card)
        self._turn_reader = self._make_turn_reader()

    def prompt_token_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """Return the prompt that asks for the next answer of a conversation.

        Raises:
            InvalidRequest: the model cannot chat, its template refuses the conversation, or that
                is longer than there is any use in knowing; see `PromptBound`.
        """
        if self._template is None:
            raise InvalidRequest(
                f"Model {self._model!r} has no chat template; use /v1/completions.",
                code=ErrorCode.CHAT_TEMPLATE_MISSING,
                param="model",
            )
        self.bound.check_length(sum(len(message.content) for message in messages))
        segments = self._template.render([self._with_proven_ids(each) for each in messages])
        return self._encoded(segments)

    def begun_token_ids(self, answer: ChatMessage) -> tuple[int, ...]:
        """Return what goes behind the prompt of an answer to go on where its text ends."""
        proven = self._with_proven_ids(answer).token_ids
        return proven or tuple(self.tokenizer.encode(answer.content))

    def completion_token_ids(self, prompt: str) -> tuple[int, ...]:
        """Return the prompt that continues a raw text, or raise InvalidRequest as above."""
        self.bound.check_length(len(prompt))
        return self._encoded([Plain(prompt)])

    def turns_in(self, before: Sequence[int], token_ids: Sequence[int]) -> list[Turn]:
        """Return who says what in a piece of a prompt; `before` are the tokens right before it."""
        return self._turn_reader.read(before, token_ids)

    def _encoded(self, segments: Sequence[Segment]) -> tuple[int, ...]:
        self.bound.check_tokens(segments, self.tokenizer.count)
        return self._with_bos(self.tokenizer.encode_segments(segments))

    def _find_bos_id(self, card: ModelCard) -> int | None:
        if not card.adds_bos:
            return None
        bos_id = None if card.bos_token is None else self.tokenizer.token_id(card.bos_token)
        if bos_id is None:
            raise ModelError(
                f"model {card.name!r} wants BOS, but its vocabulary has no {card.bos_token!r}"
            )
        return bos_id

    def _make_template(self, card: ModelCard) -> ChatTemplate | None:
        source = card.chat_template
        control_tokens = self.tokenizer.control_tokens
        if source is None:
            if not control_tokens.ids.keys() >= set(CHATML_TOKENS):
                return None
            source = CHATML_TEMPLATE
        return ChatTemplate(
            source,
            bos_token=card.bos_token,
            eos_token=card.eos_token,
            control_tokens=control_tokens,
        )

    def _make_turn_reader(self) -> TurnReader:
        template, control_tokens = self._template, self.tokenizer.control_tokens
        heads = {} if template is None else turn_heads(template, control_tokens)
        return TurnReader(self.tokenizer, heads)

    def _with_bos(self, token_ids: list[int]) -> tuple[int, ...]:
        if self._bos_id is None or token_ids[:1] == [self._bos_id]:
            return tuple(token_ids)
        return (self._bos_id, *token_ids)

    def _with_proven_ids(self, message: ChatMessage) -> ChatMessage:
        """Return the message with ids that spell its content and hold no control, or with none.

        The token that ended the answer is dropped: the template writes its own. An answer that was
        cut at a stop string keeps no ids, since they say more than its reader saw.
        """
        token_ids = list(message.token_ids)
        while token_ids and self.tokenizer.is_special(token_ids[-1]):
            token_ids.pop()
        is_proven = (
            message.role == "assistant"
            and not any(map(self.tokenizer.is_special, token_ids))
            and self.tokenizer.spells(token_ids, message.content)
        )
        return replace(message, token_ids=tuple(token_ids) if is_proven else ())
