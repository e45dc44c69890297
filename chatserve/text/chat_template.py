"""A conversation to the segments of a prompt, by the model's own chat template.

Owns the meeting of template and messages, and with it the answer to two questions. *Which control
tokens are the template's?* Contents go through it guarded (`content_guard`), so those that are
whole in its output are. *Where may the ids of an earlier answer stand for its text?* Where the
template passes the content on untouched, right after what it writes to prompt for an answer, and
right before a control token: there the ids are a continuation the model has really made.

Knows the strings of control tokens, not how text is encoded.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import jinja2

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest
from chatserve.text.content_guard import ContentGuard, fresh_mark
from chatserve.text.control_tokens import ControlTokens
from chatserve.text.segments import Plain, Segment, Verbatim
from chatserve.text.template_environment import compile_template

CHATML_TOKENS = ("<|im_start|>", "<|im_end|>")
CHATML_TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

ROLES = frozenset({"system", "developer", "user", "assistant"})


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation.

    `token_ids` are those that the model produced, of an answer that came from here; empty else.
    """

    role: str
    content: str
    token_ids: tuple[int, ...] = ()


class ChatTemplate:
    """The chat template of one model.

    Owns: the compiled template and what was learned of it by trying it once. Immutable.
    Used from: any thread.
    """

    def __init__(
        self,
        template: str,
        *,
        bos_token: str | None,
        eos_token: str | None,
        control_tokens: ControlTokens,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._compiled = compile_template(template, now)
        self._variables = {"bos_token": bos_token or "", "eos_token": eos_token or ""}
        self._knows_developer = "developer" in template
        self._control_tokens = control_tokens
        self._guard = ContentGuard(control_tokens.ids)
        # A template reads markup such as <think> in answers, so there it must stay readable.
        self._answer_guard = ContentGuard(control_tokens.special)
        self._generation_prompt = self._find_generation_prompt()

    def render(self, messages: Sequence[ChatMessage]) -> list[Segment]:
        """Return the prompt that asks for the next answer.

        Raises:
            InvalidRequest: a role is unknown, or the template refuses the conversation.
        """
        mark = fresh_mark([message.content for message in messages])
        guarded = [self._guarded(message, mark) for message in messages]
        text = self._fill(messages, guarded)
        for slots in _slot_choices(messages):
            slotted = self._fill_slots(messages, guarded, slots, mark)
            if slotted is not None and _without_slots(slotted, guarded, mark) == text:
                return self._place(slotted, messages, guarded, mark)
        return list(self._split(text, mark))

    def _guarded(self, message: ChatMessage, mark: str) -> str:
        guard = self._answer_guard if message.role == "assistant" else self._guard
        return guard.guard(message.content, mark)

    def _fill(self, messages: Sequence[ChatMessage], contents: Sequence[str]) -> str:
        """Run the template over the roles of `messages` with `contents`."""
        filled = [
            {"role": self._role(message.role), "content": content}
            for message, content in zip(messages, contents, strict=True)
        ]
        try:
            return self._compiled.render(
                messages=filled,
                add_generation_prompt=True,
                tools=None,
                documents=None,
                **self._variables,
            )
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise InvalidRequest(
                f"The chat template of this model refuses the conversation: {error}",
                code=ErrorCode.CHAT_TEMPLATE_REFUSED,
                param="messages",
            ) from error

    def _role(self, role: str) -> str:
        if role not in ROLES:
            raise InvalidRequest(
                f"Role {role!r} is unknown; known are {', '.join(sorted(ROLES))}.", param="messages"
            )
        return "system" if role == "developer" and not self._knows_developer else role

    def _find_generation_prompt(self) -> str | None:
        """Return what the template writes between a question and its answer; None if unclear."""
        probe = ChatMessage("user", fresh_mark([]))
        try:
            rendered = self._fill([probe], [probe.content])
        except InvalidRequest:
            return None
        _, found, generation_prompt = rendered.rpartition(probe.content)
        return generation_prompt if found else None

    def _fill_slots(
        self,
        messages: Sequence[ChatMessage],
        guarded: Sequence[str],
        slots: frozenset[int],
        mark: str,
    ) -> str | None:
        """Run the template with a placeholder for each message in `slots`; None if it refuses."""
        contents = [
            f"{mark}{index}{mark}" if index in slots else content
            for index, content in enumerate(guarded)
        ]
        try:
            return self._fill(messages, contents)
        except InvalidRequest:
            return None

    def _place(
        self,
        slotted: str,
        messages: Sequence[ChatMessage],
        guarded: Sequence[str],
        mark: str,
    ) -> list[Segment]:
        """Put ids where they may stand, and the guarded text into the other slots."""
        pieces = _slot_pattern(mark).split(slotted)
        segments: list[Segment] = []
        pending = pieces[0]
        for slot, after in zip(pieces[1::2], pieces[2::2], strict=True):
            index = int(slot)
            if self._continues_prompt(pending) and self._control_tokens.stands_first_in(after):
                segments.extend(self._split(pending, mark))
                segments.append(Verbatim(messages[index].token_ids))
                pending = after
            else:
                pending += guarded[index] + after
        segments.extend(self._split(pending, mark))
        return segments

    def _continues_prompt(self, before: str) -> bool:
        return self._generation_prompt is not None and before.endswith(self._generation_prompt)

    def _split(self, text: str, mark: str) -> Iterator[Segment]:
        """Split at the template's control tokens and take the marks out of what is between."""
        for segment in self._control_tokens.split(text):
            yield Plain(segment.text.replace(mark, "")) if isinstance(segment, Plain) else segment


def _slot_choices(messages: Sequence[ChatMessage]) -> Iterator[frozenset[int]]:
    """Yield which answers to try with their ids: all, then those a trimming template keeps."""
    with_ids = frozenset(i for i, message in enumerate(messages) if message.token_ids)
    trimmed = frozenset(i for i in with_ids if messages[i].content == messages[i].content.strip())
    yield from dict.fromkeys(choice for choice in (with_ids, trimmed) if choice)


def _slot_pattern(mark: str) -> re.Pattern[str]:
    return re.compile(f"{mark}([0-9]+){mark}")


def _without_slots(slotted: str, guarded: Sequence[str], mark: str) -> str:
    return _slot_pattern(mark).sub(lambda slot: guarded[int(slot[1])], slotted)
