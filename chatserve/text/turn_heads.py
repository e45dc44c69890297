"""How a chat template begins what each role says, learned by trying it once.

Owns the rule for what counts as such a beginning: it starts with a special token, which no text can
spell, and no other role's turn begins like it. What a template writes without special tokens cannot
be told from what somebody typed, so such a role has none.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from chatserve.errors import InvalidRequest
from chatserve.text.chat_template import ChatMessage, ChatTemplate
from chatserve.text.control_tokens import ControlTokens
from chatserve.text.segments import Control, Plain, Segment

Head: TypeAlias = tuple[Control | Plain, ...]
"""Starts with a `Control`, ends with the `Plain` text before the content, which may be empty."""

_CONVERSATIONS = (
    ("system", "user", "assistant", "user"),
    ("user", "assistant", "user"),  # for templates that refuse a system message
)


def turn_heads(template: ChatTemplate, control_tokens: ControlTokens) -> dict[Head, str]:
    """Return the beginnings that tell a role, the longest first."""
    for roles in _CONVERSATIONS:
        probes = [f"probe{index}probe" for index in range(len(roles))]
        messages = [ChatMessage(*each) for each in zip(roles, probes, strict=True)]
        try:
            segments = template.render(messages)
        except InvalidRequest:
            continue
        gaps = list(_gaps(_only_special(segments, control_tokens), probes))
        # Behind the last message the template asks for an answer.
        return _distinct(list(zip((*roles, "assistant"), gaps, strict=False)))
    return {}


def _only_special(segments: Sequence[Segment], control_tokens: ControlTokens) -> Iterator[Segment]:
    """Yield the segments with markup as the text that it is."""
    text = ""
    for segment in segments:
        if isinstance(segment, Control) and segment.token in control_tokens.special:
            yield Plain(text)
            yield segment
            text = ""
        elif isinstance(segment, Control):
            text += segment.token
        elif isinstance(segment, Plain):
            text += segment.text
    yield Plain(text)


def _gaps(segments: Iterator[Segment], probes: Sequence[str]) -> Iterator[Head]:
    """Yield what stands before each probe, and behind the last of them."""
    gap: list[Control | Plain] = []
    waiting = list(probes)
    for segment in segments:
        if isinstance(segment, Control):
            gap.append(segment)
        elif isinstance(segment, Plain):
            text = segment.text
            while waiting and waiting[0] in text:
                before, _, text = text.partition(waiting.pop(0))
                yield (*gap, Plain(before))
                gap = []
            gap.append(Plain(text))
    yield tuple(gap)


def _distinct(gaps: Sequence[tuple[str, Head]]) -> dict[Head, str]:
    """Return for each gap the shortest end of it that no other role's gap has."""
    cut = [(role, (*gap[:-1], _first_line(gap[-1]))) for role, gap in gaps if gap]
    heads: dict[Head, str] = {}
    for role, gap in cut:
        others = [other for other_role, other in cut if other_role != role]
        ends = (gap[-size:] for size in range(2, len(gap) + 1))
        fitting = (
            end
            for end in ends
            if isinstance(end[0], Control)
            and not any(other[-len(end) :] == end for other in others)
        )
        head = next(fitting, None)
        if head is not None:
            heads[head] = role
    return dict(sorted(heads.items(), key=_size, reverse=True))


def _first_line(piece: Control | Plain) -> Plain:
    """Return the text up to its first line break: more of it may be another one tomorrow."""
    assert isinstance(piece, Plain), "a gap ends with text"
    line, line_break, _ = piece.text.partition("\n")
    return Plain(line + line_break)


def _size(entry: tuple[Head, str]) -> tuple[int, int]:
    head, _ = entry
    return len(head), sum(len(each.text) for each in head if isinstance(each, Plain))
