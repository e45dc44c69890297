"""The system message of a prompt, and the token ids that prompts have in common because of it.

Owns one rule, for whoever makes prompts and for whoever has their beginnings computed ahead: the
system message is the operator's preamble, a blank line, then the text of the tenant or client. A
client that asks for a persona has both: first the persona's text, then, after another blank line,
its own.

    preamble   text     system message
    --------   ----     --------------
    yes        yes      preamble, blank line, text
    yes        no       preamble
    no         yes      text
    no         no       none; the template may write its own

What leads every prompt of a kind is found by making several of it and comparing ids: where a
template puts the text, what it writes behind it, and whether tokens merge across a seam then need
not be known.
"""

import re
from collections.abc import Sequence

from chatserve.text.chat_template import ChatMessage
from chatserve.text.prompt import PromptEncoder
from chatserve.text.variables import fill, first_variable_at, variables_of

_SYSTEM_ROLES = ("system", "developer")

# They begin with different kinds of characters: what merges with what stands before depends on it.
_PROBES = ("You", "7 of 9", '"', "你好", "\n\n-", "    x")

# Where there are no blanks between words it is the last few of them, not all.
_TOUCHING_WORD = re.compile(r"\S{1,32}\Z")


def with_system_text(messages: Sequence[ChatMessage], text: str | None) -> list[ChatMessage]:
    """Return a conversation with a preamble or a persona's text in front of its system message.

    That is the first message, if it has the role of one; a developer's becomes the system's.
    """
    if text is None:
        return list(messages)
    if messages and messages[0].role in _SYSTEM_ROLES:
        return [_system_message(text, messages[0].content), *messages[1:]]
    return [_system_message(text), *messages]


def leading_ids_of_preamble(encoder: PromptEncoder, preamble: str) -> tuple[int, ...]:
    """Return the ids that lead every prompt under a preamble, whatever text follows it.

    Raises:
        InvalidRequest: The model cannot chat, or its template refuses a system message.
    """
    followed = [_conversation(_system_message(preamble, probe), probe) for probe in _PROBES]
    alone = _conversation(_system_message(preamble), _PROBES[0])
    return _common_start(encoder, [alone, *followed])


def leading_ids_of_prompt(
    encoder: PromptEncoder, preamble: str | None, text: str
) -> tuple[int, ...]:
    """Return the ids that lead every prompt with this system text alone, whatever the user asks.

    They lead it whatever the values of the text's variables are, too.

    Raises:
        InvalidRequest: The model cannot chat, or its template refuses a system message.
    """
    variables = variables_of(text)
    systems = [fill(text, dict.fromkeys(variables, probe)) for probe in _PROBES]
    conversations = [
        _conversation(_system_message(preamble, system), question)
        for system, question in zip(systems, _PROBES, strict=True)
    ]
    if variables:
        cut = _system_message(preamble, _before_any_value(text))
        conversations.append(_conversation(cut, _PROBES[0]))
    return _common_start(encoder, conversations)


def _before_any_value(text: str) -> str:
    """Return what stands before a text's first variable, without a word that touches it.

    A value may merge with that word in ways that no choice of probes shows.
    """
    return _TOUCHING_WORD.sub("", text[: first_variable_at(text)])


def _system_message(first: str | None, text: str = "") -> ChatMessage:
    return ChatMessage("system", "\n\n".join(part for part in (first, text) if part))


def _conversation(system: ChatMessage, question: str) -> list[ChatMessage]:
    return [system, ChatMessage("user", question)]


def _common_start(
    encoder: PromptEncoder, conversations: Sequence[Sequence[ChatMessage]]
) -> tuple[int, ...]:
    prompts = [encoder.prompt_token_ids(messages) for messages in conversations]
    # What the first and the last in order of ids have in common, all between them have too.
    first, last = min(prompts), max(prompts)
    pairs = enumerate(zip(first, last, strict=False))
    end = next((i for i, (ours, theirs) in pairs if ours != theirs), min(len(first), len(last)))
    return first[:end]
