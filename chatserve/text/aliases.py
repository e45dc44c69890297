"""Secret names for control tokens, in the text that a backend encodes.

Owns the added tokens that a backend gets beside those of its model. The backend overlooks the real
control tokens in a text; where one is meant, its alias stands, and the id of the alias is replaced
by the real one afterwards. To the backend an alias is an added token like the one behind it, so the
text around it is split, normalised and merged just the same. Nobody can write an alias, since each
holds 128 random bits that are drawn when the tokenizer is made and leave no process.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tokenizers
from tokenizers import AddedToken

from chatserve.text.segments import Control, Plain, Segment, Verbatim


class Aliases:
    """The aliases in one backend.

    Owns: their strings and ids. Immutable. Used from: any thread.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        added_tokens: Sequence[Mapping[str, Any]],
        control_ids: Mapping[str, int],
    ) -> None:
        """Register an alias per control token, and one for verbatim ids."""
        nonce = secrets.token_hex(16)
        self._verbatim = f"{nonce}v"
        self._of_control = {token: f"{nonce}{rank:06d}" for rank, token in enumerate(control_ids)}
        # Never normalized: a normalizer would change the aliases themselves.
        registered = [AddedToken(self._verbatim, normalized=False)]
        for added in added_tokens:
            if added["content"] in control_ids:
                alias = self._of_control[added["content"]]
                strips = {side: added[side] for side in ("lstrip", "rstrip")}
                registered.append(AddedToken(alias, normalized=False, **strips))
        backend.add_tokens(registered)
        self._verbatim_id = backend.token_to_id(self._verbatim)
        self._control_behind = {
            backend.token_to_id(alias): control_ids[token]
            for token, alias in self._of_control.items()
        }
        self.ids = frozenset({self._verbatim_id, *self._control_behind})

    def spell(self, segments: Iterable[Segment]) -> str:
        """Return the text to encode for a prompt."""
        return "".join(map(self._spelling, segments))

    def resolve(self, token_ids: Iterable[int], segments: Iterable[Segment]) -> Iterator[int]:
        """Yield the ids of a prompt from those of its spelling."""
        verbatim = (segment.token_ids for segment in segments if isinstance(segment, Verbatim))
        for token_id in token_ids:
            if token_id == self._verbatim_id:
                yield from next(verbatim)
            else:
                yield self._control_behind.get(token_id, token_id)

    def _spelling(self, segment: Segment) -> str:
        match segment:
            case Plain(text):
                return text
            case Control(token):
                return self._of_control[token]
            case Verbatim():
                return self._verbatim
