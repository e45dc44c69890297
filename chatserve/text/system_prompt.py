"""The system message of a prompt, and the token ids that prompts have in common because of it.

Owns one rule, for whoever makes prompts and for whoever has their beginnings computed ahead: the
system message is the operator's preamble, a blank line, then the text of the tenant or client.

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

from collections.abc import Sequence

from chatserve.text.chat_template import ChatMessage
from chatserve.text.prompt import PromptEncoder

_SYSTEM_ROLES = ("system", "developer")

# They begin with different kinds of characters: what merges with what stands before depends on it.
_PROBES = ("You", "7 of 9", '"', "你好", "\n\n-", "    x")


def with_preamble(messages: Sequence[ChatMessage], preamble: str | None) -> list[ChatMessage]:
    """Return a conversation with the preamble in front of its system message.

    That is the first message, if it has the role of one; a developer's becomes the system's.
    """
    if preamble is None:
        return list(messages)
    if messages and messages[0].role in _SYSTEM_ROLES:
        return [_system_message(preamble, messages[0].content), *messages[1:]]
    return [_system_message(preamble), *messages]


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
    """Return the ids that lead every prompt with this system text, whatever the user asks.

    Raises:
        InvalidRequest: The model cannot chat, or its template refuses a system message.
    """
    system = _system_message(preamble, text)
    return _common_start(encoder, [_conversation(system, question) for question in _PROBES])


def _system_message(preamble: str | None, text: str = "") -> ChatMessage:
    return ChatMessage("system", "\n\n".join(part for part in (preamble, text) if part))


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
