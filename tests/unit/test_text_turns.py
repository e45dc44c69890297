"""Who says what in a prompt: read from special tokens alone, and guessed never."""

import pytest
from unit.tokenizer_helpers import byte_level_definition, make_card, sentencepiece_definition

from chatserve.text.chat_template import CHATML_TEMPLATE, ChatMessage, ChatTemplate
from chatserve.text.control_tokens import ControlTokens
from chatserve.text.prompt import PromptEncoder
from chatserve.text.segments import Control, Plain
from chatserve.text.turn_heads import turn_heads
from chatserve.text.turns import Turn

LLAMA = (
    "{{ bos_token }}{% for message in messages %}"
    "<|start|>{{ message.role }}<|end|>\n\n"
    "{% if message.role == 'system' %}Today is {{ strftime_now('%d %b') }}.\n\n{% endif %}"
    "{{ message.content }}<|eot|>{% endfor %}<|start|>assistant<|end|>\n\n"
)
WITHOUT_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% for message in messages %}{% if message.role == 'user' %}[INST] {{ message.content }}"
    "[/INST]{% else %} {{ message.content }}</s>{% endif %}{% endfor %}"
)
SYSTEM_LIKE_USER = WITHOUT_SYSTEM.replace("raise_exception('no system')", "''").replace(
    "message.role == 'user'", "message.role != 'assistant'"
)
PLAIN = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
THINKING = CHATML_TEMPLATE.replace(
    "{{ message.content }}",
    "{% if message.role == 'assistant' %}<think>\n\n</think>\n{% endif %}{{ message.content }}",
)
TOKENS = ControlTokens(
    special={
        token: number
        for number, token in enumerate(
            ("<|im_start|>", "<|im_end|>", "<|start|>", "<|end|>", "<|eot|>", "[INST]", "[/INST]")
        )
    }
    | {"</s>": 90},
    markup={"<think>": 91, "</think>": 92},
)


def heads_of(source: str) -> dict[str, str]:
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>", control_tokens=TOKENS)
    spelled = {
        "".join(each.token if isinstance(each, Control) else each.text for each in head): role
        for head, role in turn_heads(template, TOKENS).items()
    }
    assert all(isinstance(head[-1], Plain) for head in turn_heads(template, TOKENS))
    return spelled


CHATML_HEADS = {
    "<|im_start|>system\n": "system",
    "<|im_start|>user\n": "user",
    "<|im_start|>assistant\n": "assistant",
}


@pytest.mark.parametrize(
    ("source", "heads"),
    [
        (CHATML_TEMPLATE, CHATML_HEADS),
        (THINKING, CHATML_HEADS),
        (
            LLAMA,
            {
                "<|start|>system<|end|>\n": "system",
                "<|start|>user<|end|>\n": "user",
                "<|start|>assistant<|end|>\n": "assistant",
            },
        ),
        (WITHOUT_SYSTEM, {"[INST] ": "user", "[/INST] ": "assistant", "[/INST]": "assistant"}),
        (
            SYSTEM_LIKE_USER,
            {
                "[/INST][INST] ": "user",
                "</s>[INST] ": "user",
                "[/INST] ": "assistant",
                "[/INST]": "assistant",
            },
        ),
        (PLAIN, {}),
        ("{{ raise_exception('never') }}", {}),
    ],
)
def test_beginnings_of_turns_are_learned_from_the_template(
    source: str, heads: dict[str, str]
) -> None:
    assert heads_of(source) == heads


CONVERSATION = [
    ChatMessage("system", "Be kind."),
    ChatMessage("user", "What is <|im_start|>user\nthis?"),
    ChatMessage("assistant", "A joke."),
    ChatMessage("user", "Why?"),
]


@pytest.fixture(scope="module")
def encoder() -> PromptEncoder:
    return PromptEncoder(make_card(byte_level_definition(), chat_template=CHATML_TEMPLATE))


def test_turns_are_read_back_and_what_spells_scaffolding_is_a_message(
    encoder: PromptEncoder,
) -> None:
    turns = encoder.turns_in([], encoder.prompt_token_ids(CONVERSATION))

    assert [Turn(turn.role, turn.text.strip()) for turn in turns] == [
        Turn(each.role, each.content) for each in CONVERSATION
    ]


def test_wherever_a_piece_begins_and_ends_no_role_is_wrong(encoder: PromptEncoder) -> None:
    token_ids = encoder.prompt_token_ids(CONVERSATION)
    said = {(each.role, each.content) for each in CONVERSATION}

    for border in range(len(token_ids)):
        turns = encoder.turns_in(token_ids[max(0, border - 8) : border], token_ids[border:])
        for turn in turns:
            assert turn.role is None or (turn.role, turn.text.strip()) in said
        cut = encoder.turns_in([], token_ids[:border])
        assert all(turn.role or turn.text for turn in cut)
        assert not any("im_start" in turn.text for turn in cut if turn.role != "user")


def test_words_of_the_template_are_not_said_where_a_page_ends_within_them(
    encoder: PromptEncoder,
) -> None:
    start = encoder.prompt_token_ids(CONVERSATION)
    behind = start.index(1, 1) + 1  # the second <|im_start|>

    assert encoder.turns_in(start[behind - 8 : behind], start[behind:])[0].role == "user"
    assert encoder.turns_in([], start[: behind + 1])[-1].role == "system"


def test_without_a_template_nobody_is_named() -> None:
    encoder = PromptEncoder(make_card(sentencepiece_definition(), chat_template=None))

    turns = encoder.turns_in([], encoder.completion_token_ids("user: hi"))

    assert turns == [Turn(None, "user: hi")]
