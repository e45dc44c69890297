"""A model for the gateway's tests: bytes for tokens, and answers that the test can read.

Asked in a chat, it repeats the last user message and ends, unless `answer` says otherwise. Given a
raw prompt, it goes on through the alphabet from the prompt's last letter, for ever. `hold` stops it
between two tokens, so that a test can be sure what has not happened yet.
"""

import json
import threading
from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from chatserve.engine.api import ModelCard

MODEL = "echo"
MAX_MODEL_LEN = 4096

START, END = "<|im_start|>", "<|im_end|>"
CONTROL = ("<|endoftext|>", START, END)


def make_card(name: str = MODEL, *, max_model_len: int = MAX_MODEL_LEN) -> ModelCard:
    definition = _definition()
    ids = {token["content"]: token["id"] for token in json.loads(definition)["added_tokens"]}
    return ModelCard(
        name=name,
        max_model_len=max_model_len,
        max_prompt_tokens=max_model_len - 1,
        vocab_size=256 + len(CONTROL),
        tokenizer_json=definition,
        chat_template=None,
        bos_token=None,
        eos_token=END,
        eos_token_ids=(ids[END],),
        adds_bos=False,
    )


def _definition() -> str:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(CONTROL))
    return tokenizer.to_str()


class FakeModel:
    """Decides the next token of a history.

    Owns: the gate that a test closes and opens.
    Used from: the engine thread; `answer`, `hold`, `allow` and `release` from the test.
    """

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_str(_definition())
        self._question_mark = self._characters(f"{START}user\n")
        self._answer_mark = self._characters(f"{END}\n{START}assistant\n")
        self._condition = threading.Condition()
        self._num_allowed: float = float("inf")
        self._is_waiting = False
        self._answers: dict[str, str] = {}

    @property
    def is_waiting(self) -> bool:
        """The engine stands at the closed gate, in the middle of a step."""
        return self._is_waiting

    def answer(self, question: str, answer: str) -> None:
        """Give this answer to a message of these words from now on."""
        self._answers[self._characters(question)] = self._characters(answer)

    def hold(self) -> None:
        """Make no token from now on, until `allow` or `release`."""
        with self._condition:
            self._num_allowed = 0

    def allow(self, num_tokens: int) -> None:
        with self._condition:
            self._num_allowed += num_tokens
            self._condition.notify_all()

    def release(self) -> None:
        with self._condition:
            self._num_allowed = float("inf")
            self._condition.notify_all()

    def next_token(self, history: Sequence[int]) -> int:
        self._pass_gate()
        text = "".join(map(chr, history))  # one character per id, so that searching is fast
        asked = text.rfind(self._question_mark)
        if asked < 0:
            return self._id(_next_letter(self._tokenizer.decode([history[-1]])))
        ended = text.rfind(self._answer_mark)
        question = text[asked + len(self._question_mark) : ended]
        answer_len = len(text) - ended - len(self._answer_mark)
        answer = self._answers.get(question, question)
        return ord(answer[answer_len]) if answer_len < len(answer) else self._id(END)

    def _pass_gate(self) -> None:
        with self._condition:
            self._is_waiting = self._num_allowed < 1
            assert self._condition.wait_for(lambda: self._num_allowed >= 1, timeout=30)
            self._is_waiting = False
            self._num_allowed -= 1

    def _id(self, text: str) -> int:
        token_id: int = self._tokenizer.encode(text).ids[0]
        return token_id

    def _characters(self, text: str) -> str:
        return "".join(map(chr, self._tokenizer.encode(text).ids))


def _next_letter(letter: str) -> str:
    return chr((ord(letter) - ord("a") + 1) % 26 + ord("a"))
