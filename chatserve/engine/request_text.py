"""The text of one running request: token ids in, text that may be shown out.

Owns the order detokenizer, then stop strings, and what each end of a request does to them. Knows no
tensors and no schedule.
"""

from collections.abc import Sequence

from chatserve.engine.api import FinishReason, SamplingParams
from chatserve.text.detokenizer import IncrementalDetokenizer
from chatserve.text.stop_strings import StopStrings
from chatserve.text.tokenizer import Tokenizer


class RequestText:
    """Turns the output tokens of one request into deltas.

    Owns: half characters and possible stop strings held back. Used from: the engine thread.
    """

    def __init__(
        self, tokenizer: Tokenizer, sampling: SamplingParams, begun_token_ids: Sequence[int] = ()
    ):
        """Begin a text, or go on with one whose beginning was shown, but for half a character."""
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._detokenizer.push(begun_token_ids)
        self._stop_strings = StopStrings(sampling.stop)
        self._min_tokens = sampling.min_tokens
        self._num_tokens = 0
        self.stopped = False

    def push(self, token_id: int, finish_reason: FinishReason | None) -> str:
        """Return the text that `token_id` makes final; sets `stopped` if a stop string ended it.

        With a finish reason everything still held back comes out, except half a character of an
        answer that was cut: whoever goes on with it will have the whole one. A token that stopped
        the request (the end of sequence, or a stop token) is no text itself.
        """
        self._num_tokens += 1
        is_text = finish_reason is not FinishReason.STOP
        text = self._detokenizer.push([token_id]) if is_text else self._detokenizer.finish()
        shown = self._through_stop_strings(text)
        if finish_reason is not None and not self.stopped:
            shown += self._stop_strings.finish()
        return shown

    def _through_stop_strings(self, text: str) -> str:
        if self._num_tokens < self._min_tokens:
            return text  # what must not end the answer yet cannot be part of a stop string either
        result = self._stop_strings.push(text)
        self.stopped = result.stopped
        return result.text
