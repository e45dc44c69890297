"""Templates as they are published: what they may use, inspect and refuse."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from chatserve.errors import InvalidRequest, ModelError
from chatserve.text.chat_template import ChatMessage, ChatTemplate
from chatserve.text.control_tokens import ControlTokens
from chatserve.text.segments import Control, Plain, Segment, Verbatim

CONTROL_TOKENS = ControlTokens(
    special={"<|im_start|>": 1, "<|im_end|>": 2}, markup={"<think>": 3, "</think>": 4}
)
HI = [ChatMessage("user", "hi")]


def make_template(source: str) -> ChatTemplate:
    return ChatTemplate(
        source,
        bos_token="<s>",
        eos_token="<|im_end|>",
        control_tokens=CONTROL_TOKENS,
        now=lambda: datetime(2024, 2, 29),
    )


def text_of(segments: Sequence[Segment]) -> str:
    """Return a prompt as text, control tokens in guillemets."""
    parts = []
    for segment in segments:
        match segment:
            case Plain(text):
                parts.append(text)
            case Control(token):
                parts.append(f"«{token}»")
            case Verbatim(token_ids):
                parts.append(str(token_ids))
    return "".join(parts)


@pytest.mark.parametrize(
    ("source", "prompt"),
    [
        ("{{ bos_token }}{{ eos_token }}", "<s>«<|im_end|>»"),
        ("{{ strftime_now('%d %b %Y') }}", "29 Feb 2024"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "hi"}]'),
        ("{{ '漢' | tojson }}{{ '漢' | tojson(ensure_ascii=true) }}", '"漢""\\u6f22"'),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "hi"),
        ("{% if tools is none and documents is none %}none{% endif %}", "none"),
        ("{% set ns = namespace(n=0) %}{% set ns.n = 2 %}{{ ns.n }}", "2"),
        ("  {% if true %}\nx\n  {% endif %}\n", "x\n"),
        ("{{ messages[0]['content'].split('i')[0] | upper }}", "H"),
        ("{{ unknown_name }}x", "x"),
    ],
)
def test_templates_find_the_names_they_expect(source: str, prompt: str) -> None:
    assert text_of(make_template(source).render(HI)) == prompt


def test_a_template_that_refuses_a_system_message_says_why() -> None:
    template = make_template(
        "{% if messages[0].role == 'system' %}"
        "{{ raise_exception('No system role here') }}{% endif %}"
    )

    with pytest.raises(InvalidRequest, match="No system role here") as refused:
        template.render([ChatMessage("system", ""), *HI])

    assert refused.value.code == "chat_template_refused"
    assert text_of(template.render(HI)) == ""


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[7].content.strip() }}",
        "{{ 1 / (messages | length - 1) }}",
        "{{ messages[0].content + 1 }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ strftime_now() }}",
    ],
)
def test_a_template_that_fails_refuses_the_conversation(source: str) -> None:
    with pytest.raises(InvalidRequest, match="chat template"):
        make_template(source).render(HI)


@pytest.mark.parametrize("source", ["{% if %}", "{{ x", "{% unknown %}", "{{ x | nofilter }}"])
def test_a_template_that_is_none_is_a_model_error(source: str) -> None:
    with pytest.raises(ModelError, match="chat template"):
        make_template(source)


@pytest.mark.parametrize("role", ["", "tool", "User", "user<|im_end|>", "user\n"])
def test_an_unknown_role_is_refused(role: str) -> None:
    template = make_template("{{ messages[0].role }}")

    with pytest.raises(InvalidRequest, match="Role"):
        template.render([ChatMessage(role, "hi")])


@pytest.mark.parametrize(
    ("source", "role"),
    [
        ("{{ messages[0].role }}", "system"),
        ("{{ messages[0].role }}{# developer #}", "developer"),
    ],
)
def test_developer_is_system_unless_the_template_knows_it(source: str, role: str) -> None:
    assert text_of(make_template(source).render([ChatMessage("developer", "hi")])) == role


def test_contents_are_no_template_source() -> None:
    message = ChatMessage("user", "{{ 7 * 7 }}{% raw %}{# #}{{ raise_exception('x') }}")

    prompt = text_of(make_template("{{ messages[0].content }}").render([message]))

    assert prompt == message.content


def test_a_content_that_trims_to_a_control_token_stays_text() -> None:
    template = make_template("<|im_start|>{{ messages[0].content | trim }}<|im_end|>")

    segments = template.render([ChatMessage("user", "  <|im_end|>\n")])

    assert text_of(segments) == "«<|im_start|>»<|im_end|>«<|im_end|>»"


THINKING_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' and '</think>' in m.content %}"
    "{{ m.content.split('</think>')[-1].lstrip('\n') }}"
    "{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n<think>{{ '\n' }}"
)


def test_a_template_reads_markup_in_answers() -> None:
    messages = [*HI, ChatMessage("assistant", "<think>\nhm\n</think>\n\nYes."), *HI]

    prompt = text_of(make_template(THINKING_TEMPLATE).render(messages))

    assert "«<|im_start|>»assistant\nYes.«<|im_end|>»" in prompt
    assert prompt.endswith("«<|im_start|>»assistant\n«<think>»\n")


def test_markup_in_a_users_message_stays_text() -> None:
    prompt = text_of(make_template(THINKING_TEMPLATE).render([ChatMessage("user", "a<think>b")]))

    assert "user\na<think>b«" in prompt


def test_ids_of_an_answer_that_the_template_shortens_are_not_used() -> None:
    answer = ChatMessage("assistant", "<think>hm</think>Yes.", token_ids=(7, 8, 9))

    segments = make_template(THINKING_TEMPLATE).render([*HI, answer, *HI])

    assert not [segment for segment in segments if isinstance(segment, Verbatim)]


def test_a_template_that_refuses_a_placeholder_still_gets_the_answer_as_text() -> None:
    template = make_template(
        "{% for m in messages %}"
        "{% if '~' in m.content %}{{ raise_exception('odd') }}{% endif %}{{ m.content }}"
        "{% endfor %}<|im_end|>"
    )

    segments = template.render([*HI, ChatMessage("assistant", "yes", token_ids=(7,))])

    assert text_of(segments) == "hiyes«<|im_end|>»"


def test_a_long_conversation_gives_three_segments_per_message() -> None:
    source = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>"
    messages = [ChatMessage("user", str(number)) for number in range(5000)]

    segments = make_template(source).render(messages)

    assert len(segments) == 3 * 5000 + 1
