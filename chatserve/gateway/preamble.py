"""The operator's preamble, as this gateway puts it in front of the system message of every chat.

Owns nothing but that step. The text comes from `prompt_registry.py`; where it goes in a
conversation is said in `text/system_prompt.py`.
"""

from collections.abc import Sequence

from chatserve.gateway.prompt_registry import PromptRegistry
from chatserve.text.chat_template import ChatMessage
from chatserve.text.system_prompt import with_system_text


class Preamble:
    """The preamble in force.

    Owns: nothing.
    Used from: the event loop.
    """

    def __init__(self, registry: PromptRegistry) -> None:
        self._registry = registry

    def before(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return the conversation that a prompt is to be made of."""
        return with_system_text(messages, self._registry.preamble)
