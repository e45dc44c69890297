"""The default model itself, in bfloat16: the ids of its tokenizer and its answers.

The ids were made by transformers from the same file. The answers are its greedy ones in float32,
to questions for which the second best token is nowhere near: at least 0.5 in logits at every
position, where bfloat16 is off by 0.15 on average.
"""

from pathlib import Path

import pytest
import torch
from engine.model_helpers import DecoderRig, load
from tokenizers import Tokenizer

from chatserve.model.weights import LoadedModel

SYSTEM = (
    "<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
)
SYSTEM_IDS = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018]
SYSTEM_IDS += [411, 407, 19712, 8182, 2, 198]


@pytest.fixture(scope="module")
def model(default_model_path: Path, tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load(default_model_path, tmp_path_factory.mktemp("weights"), torch.bfloat16)


@pytest.fixture(scope="module")
def tokenizer(model: LoadedModel) -> Tokenizer:
    return Tokenizer.from_str(model.tokenizer_json)


@pytest.mark.parametrize(
    ("text", "token_ids"),
    [
        (SYSTEM, SYSTEM_IDS),
        ("hello world", [28120, 905]),
        ("12345 678", [33, 34, 35, 36, 37, 216, 38, 39, 40]),
        ("don't  stop\n\n x", [12420, 982, 216, 2853, 1116, 1792]),
        ("漢字 🤖", [177, 137, 112, 36518, 15107, 114, 240]),
    ],
    ids=["system-prompt", "words", "digits", "white-space", "unicode"],
)
def test_the_tokenizer_gives_the_ids_of_transformers(
    tokenizer: Tokenizer, text: str, token_ids: list[int]
) -> None:
    assert tokenizer.encode(text).ids == token_ids
    assert tokenizer.decode(token_ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of Japan?", "The capital of Japan is Tokyo."),
        ("What is 2+2?", "The answer to this classic math problem is 4."),
    ],
)
def test_the_model_answers_as_in_transformers(
    tokenizer: Tokenizer, model: LoadedModel, question: str, answer: str
) -> None:
    turn = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    expected = [*tokenizer.encode(answer).ids, *model.eos_token_ids]

    output = DecoderRig(model).greedy(tokenizer.encode(SYSTEM + turn).ids, len(expected))

    assert output == expected
