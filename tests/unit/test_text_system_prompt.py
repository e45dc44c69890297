"""The system message, and the token ids that prompts have in common because of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.tokenizer_helpers import DEFINITIONS, any_character, make_card

from chatserve.errors import InvalidRequest
from chatserve.text.chat_template import CHATML_TEMPLATE, ChatMessage
from chatserve.text.prompt import PromptEncoder
from chatserve.text.system_prompt import (
    leading_ids_of_preamble,
    leading_ids_of_prompt,
    with_system_text,
)
from chatserve.text.variables import fill

PREAMBLE = "You are a helpful AI assistant."
TEXT = "The quick brown fox jumps over the lazy dog."

SYSTEM_AS_A_LINE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '\n' }}{% endfor %}"
)
SYSTEM_TRIMMED = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'].strip() + '\n' }}{% endfor %}"
)
SYSTEM_IN_THE_LAST_QUESTION = (
    "{% for m in messages %}{% if m['role'] != 'system' %}"
    "{{ '[' + m['role'] + '] ' }}"
    "{% if loop.last and messages[0]['role'] == 'system' %}{{ messages[0]['content'] + '\n' }}"
    "{% endif %}{{ m['content'] }}{% endif %}{% endfor %}"
)
QUESTION_FIRST = (
    "{{ messages[-1]['content'] }}{% for m in messages %}{{ m['content'] }}{% endfor %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{{ messages[0]['content'] }}"
)

texts = st.text(any_character, max_size=12)


def make_encoder(kind: str = "byte_level", template: str | None = None) -> PromptEncoder:
    bos = "<s>" if kind != "byte_level" else None
    card = make_card(
        DEFINITIONS[kind](),
        chat_template=template or (SYSTEM_AS_A_LINE if bos else CHATML_TEMPLATE),
        bos_token=bos,
        adds_bos=bos is not None,
    )
    return PromptEncoder(card)


ENCODERS = {kind: make_encoder(kind) for kind in DEFINITIONS}


def prompt(encoder: PromptEncoder, system: str | None, *said: str) -> tuple[int, ...]:
    """Return the prompt of a conversation in which user and assistant take turns."""
    roles = ("user", "assistant") * len(said)
    messages = [ChatMessage("system", system)] if system is not None else []
    messages += [ChatMessage(role, text) for role, text in zip(roles, said, strict=False)]
    return encoder.prompt_token_ids(messages)


# ── The message ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_preamble_stands_before_the_text_of_the_first_message(role: str) -> None:
    said = [ChatMessage(role, "text"), ChatMessage("user", "q"), ChatMessage("system", "later")]

    made = with_system_text(said, "preamble")

    assert made == [ChatMessage("system", "preamble\n\ntext"), *said[1:]]


@pytest.mark.parametrize("said", [[ChatMessage("user", "q")], [], [ChatMessage("system", "")]])
def test_without_a_text_the_preamble_is_the_system_message(said: list[ChatMessage]) -> None:
    made = with_system_text(said, "preamble")

    assert made[0] == ChatMessage("system", "preamble")
    assert made[1:] == [message for message in said if message.role == "user"]


def test_a_persona_and_a_preamble_stand_before_the_clients_text_in_this_order() -> None:
    said = [ChatMessage("system", "client"), ChatMessage("user", "q")]

    made = with_system_text(with_system_text(said, "persona"), "preamble")

    assert made == [ChatMessage("system", "preamble\n\npersona\n\nclient"), said[1]]


def test_without_a_preamble_a_conversation_stays_as_it_is() -> None:
    said = [ChatMessage("developer", "text"), ChatMessage("user", "q")]

    assert with_system_text(said, None) == said


# ── What prompts have in common ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("preamble", [None, PREAMBLE, "ends with a line\n\n", "漢字"])
@settings(max_examples=25)
@given(question=texts)
def test_a_prompts_ids_lead_every_conversation_under_its_text(
    kind: str, preamble: str | None, question: str
) -> None:
    encoder = ENCODERS[kind]
    system = TEXT if preamble is None else f"{preamble}\n\n{TEXT}"

    leading = leading_ids_of_prompt(encoder, preamble, TEXT)

    assert prompt(encoder, system, question, "answer", "again")[: len(leading)] == leading
    assert TEXT in encoder.tokenizer.decode(leading)


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("preamble", [PREAMBLE, "ends with a line\n\n", "漢字"])
@settings(max_examples=25)
@given(text=texts)
def test_a_preambles_ids_lead_every_prompt_whatever_text_follows(
    kind: str, preamble: str, text: str
) -> None:
    encoder = ENCODERS[kind]

    leading = leading_ids_of_preamble(encoder, preamble)

    system = f"{preamble}\n\n{text}" if text else preamble
    assert prompt(encoder, system, "Hello")[: len(leading)] == leading
    assert preamble[:-2] in encoder.tokenizer.decode(leading) + "\n\n"


def test_a_preambles_ids_stop_before_what_a_text_would_merge_with() -> None:
    """Tokens across the seam used to be taken from the preamble alone, and nothing matched."""
    encoder = make_encoder()
    ends_in_a_break = "def add(first, second):\n    return first + second\n"

    leading = leading_ids_of_preamble(encoder, ends_in_a_break)

    alone = prompt(encoder, ends_in_a_break, "q")
    followed = prompt(encoder, f"{ends_in_a_break}\n\nprint", "q")
    assert alone[: len(leading)] == followed[: len(leading)] == leading
    assert alone[len(leading)] != followed[len(leading)]


@pytest.mark.parametrize("text", ["", PREAMBLE])
def test_the_end_of_the_system_turn_belongs_to_a_prompt_and_not_to_a_preamble(text: str) -> None:
    encoder = make_encoder()
    end_id = encoder.tokenizer.token_id("<|im_end|>")

    assert end_id in leading_ids_of_prompt(encoder, text or None, TEXT)
    assert end_id not in leading_ids_of_preamble(encoder, PREAMBLE)


def test_a_template_that_puts_the_text_behind_the_question_keeps_nothing_of_it() -> None:
    encoder = make_encoder(template=QUESTION_FIRST)

    assert leading_ids_of_prompt(encoder, PREAMBLE, TEXT) == ()
    assert leading_ids_of_preamble(encoder, PREAMBLE) == ()


def test_a_template_that_puts_the_text_into_the_question_keeps_what_leads() -> None:
    encoder = make_encoder(template=SYSTEM_IN_THE_LAST_QUESTION)

    leading = leading_ids_of_prompt(encoder, PREAMBLE, TEXT)

    assert encoder.tokenizer.decode(leading) == f"[user] {PREAMBLE}\n\n{TEXT}"


def test_a_template_without_a_system_role_says_so() -> None:
    encoder = make_encoder(template=NO_SYSTEM)

    with pytest.raises(InvalidRequest, match="System role not supported"):
        leading_ids_of_preamble(encoder, PREAMBLE)
    with pytest.raises(InvalidRequest, match="System role not supported"):
        leading_ids_of_prompt(encoder, None, TEXT)


# ── Variables ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize(
    "text", ["The quick {{a}} jumps", "The qui{{a}}", "漢字{{a}}", "{{a}}{{b}}"]
)
@settings(max_examples=25)
@given(value=texts, question=texts)
def test_a_prompts_ids_lead_every_conversation_whatever_its_variables_values_are(
    kind: str, text: str, value: str, question: str
) -> None:
    encoder = ENCODERS[kind]

    leading = leading_ids_of_prompt(encoder, PREAMBLE, text)

    filled = fill(text, {"a": value, "b": "b"})
    assert prompt(encoder, f"{PREAMBLE}\n\n{filled}", question)[: len(leading)] == leading


def test_a_prompts_ids_reach_up_to_its_first_variable() -> None:
    encoder = make_encoder()

    leading = leading_ids_of_prompt(encoder, None, "The quick brown fox, {{name}}, and more.")

    assert encoder.tokenizer.decode(leading).endswith("The quick brown fox,")


def test_a_word_that_touches_a_variable_is_left_to_the_value() -> None:
    """A value may continue the word, and then other tokens stand for it."""
    encoder = make_encoder()

    leading = leading_ids_of_prompt(encoder, None, "The quick bro{{rest}} fox.")

    assert encoder.tokenizer.decode(leading).endswith("The quick")
    whole = prompt(encoder, "The quick brown fox.", "q")
    assert whole[: len(leading)] == leading


def test_an_empty_value_at_the_end_is_no_other_beginning() -> None:
    encoder = make_encoder(template=SYSTEM_TRIMMED)

    leading = leading_ids_of_prompt(encoder, None, "The quick {{name}}")

    assert prompt(encoder, "The quick ", "q")[: len(leading)] == leading
    assert encoder.tokenizer.decode(leading).endswith("The quick")
