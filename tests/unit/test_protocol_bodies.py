"""Completion bodies: what takes effect, what is refused and why, what is ignored and told."""

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatserve.errors import InvalidRequest
from chatserve.protocol.body import MAX_IGNORED_NAMES
from chatserve.protocol.chat import ChatRequest, parse_chat_request
from chatserve.protocol.completions import parse_completion_request

MESSAGES = [{"role": "user", "content": "Hi"}]


def chat(**members: Any) -> ChatRequest:
    return parse_chat_request(orjson.dumps({"model": "m", "messages": MESSAGES, **members}))


def refusal(**members: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        chat(**members)
    return caught.value


def refused_message(**members: Any) -> InvalidRequest:
    return refusal(messages=[{"role": "user", "content": "Hi", **members}])


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"model": NaN}', "invalid_json"),
        (b'{"model": "\\ud800"}', "invalid_json"),
        (b'{"a":' * 2000, "invalid_json"),
        (b"[]", "invalid_type"),
        (b'"text"', "invalid_type"),
        (b"null", "invalid_type"),
    ],
)
def test_what_is_no_json_object_is_refused(raw: bytes, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_chat_request(raw)

    assert caught.value.code == code


@pytest.mark.parametrize("name", ["model", "messages"])
def test_required_field_is_named_when_it_is_missing_or_null(name: str) -> None:
    error = refusal(**{name: None})

    assert (error.param, error.code) == (name, "missing_required_parameter")


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({"model": 5}, "model", "invalid_type"),
        ({"model": ""}, "model", "invalid_value"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": "Hi"}, "messages", "invalid_type"),
        ({"messages": [5]}, "messages[0]", "invalid_type"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role", "missing_required_parameter"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
        ({"messages": MESSAGES * 5000}, "messages", "invalid_value"),
        ({"stream": "yes"}, "stream", "invalid_type"),
        ({"stream": 1}, "stream", "invalid_type"),
        ({"temperature": "warm"}, "temperature", "invalid_type"),
        ({"temperature": True}, "temperature", "invalid_type"),
        ({"temperature": -0.1}, "temperature", "invalid_value"),
        ({"temperature": 2.1}, "temperature", "invalid_value"),
        ({"top_p": 0}, "top_p", "invalid_value"),
        ({"top_p": 1.1}, "top_p", "invalid_value"),
        ({"top_k": -2}, "top_k", "invalid_value"),
        ({"top_k": 1.5}, "top_k", "invalid_type"),
        ({"min_p": 2}, "min_p", "invalid_value"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value"),
        ({"max_completion_tokens": -1}, "max_completion_tokens", "invalid_value"),
        ({"max_tokens": 1.0}, "max_tokens", "invalid_type"),
        ({"min_tokens": -1}, "min_tokens", "invalid_value"),
        ({"seed": 2**63}, "seed", "invalid_value"),
        ({"seed": "x"}, "seed", "invalid_type"),
        ({"stop": 5}, "stop", "invalid_type"),
        ({"stop": ""}, "stop[0]", "invalid_value"),
        ({"stop": ["x"] * 17}, "stop", "invalid_value"),
        ({"stop": ["x" * 257]}, "stop[0]", "invalid_value"),
        ({"stop": [5]}, "stop[0]", "invalid_type"),
        ({"stop_token_ids": [-1]}, "stop_token_ids[0]", "invalid_value"),
        ({"stop_token_ids": list(range(257))}, "stop_token_ids", "invalid_value"),
        ({"ignore_eos": "no"}, "ignore_eos", "invalid_type"),
        ({"user": 5}, "user", "invalid_type"),
        ({"metadata": "x"}, "metadata", "invalid_type"),
        ({"stream": True, "stream_options": 5}, "stream_options", "invalid_type"),
        (
            {"stream": True, "stream_options": {"include_usage": "yes"}},
            "stream_options.include_usage",
            "invalid_type",
        ),
    ],
)
def test_wrong_value_is_refused_by_name(members: Any, param: str, code: str) -> None:
    error = refusal(**members)

    assert (error.param, error.code, error.status) == (param, code, 400)
    assert param in error.message


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"frequency_penalty": 0.5}, "frequency_penalty"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"repetition_penalty": 1.1}, "repetition_penalty"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"reasoning_effort": "high"}, "reasoning_effort"),
        ({"stream": True, "stream_options": {"include_obfuscation": True}},
         "stream_options.include_obfuscation"),
    ],
)  # fmt: skip
def test_known_field_with_a_value_that_is_not_served_is_refused_with_the_reason(
    members: Any, param: str
) -> None:
    error = refusal(**members)

    assert (error.param, error.code) == (param, "unsupported")
    assert "served" in error.message


@pytest.mark.parametrize(
    "members",
    [
        {"n": 1},
        {"frequency_penalty": 0, "presence_penalty": 0.0, "repetition_penalty": 1},
        {"logit_bias": {}, "logprobs": False, "top_logprobs": 0},
        {"tools": [], "tool_choice": "auto", "functions": []},
        {"response_format": {"type": "text"}, "modalities": ["text"]},
        {"user": "u", "store": True, "metadata": {"a": 1}, "service_tier": "auto"},
        {"safety_identifier": "s", "prompt_cache_key": "k", "parallel_tool_calls": True},
    ],
)
def test_neutral_and_inert_values_are_accepted_and_not_reported(members: Any) -> None:
    request = chat(**members)

    assert request.ignored == ()


OPTIONAL_FIELDS = [
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "min_tokens",
    "stop",
    "stop_token_ids",
    "ignore_eos",
    "n",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "tools",
    "functions",
    "tool_choice",
    "function_call",
    "response_format",
    "logprobs",
    "top_logprobs",
    "modalities",
    "audio",
    "prediction",
    "reasoning_effort",
    "verbosity",
    "web_search_options",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
    "parallel_tool_calls",
    "store",
    "metadata",
]


@pytest.mark.parametrize("name", OPTIONAL_FIELDS)
def test_null_is_the_same_as_omitted(name: str) -> None:
    assert chat(**{name: None}) == chat()


@pytest.mark.parametrize(
    "name",
    ["name", "id", "status", "phase", "tool_calls", "function_call", "audio", "refusal", "type"],
)
def test_null_in_a_message_is_the_same_as_omitted(name: str) -> None:
    assert chat(messages=[{"role": "user", "content": "Hi", name: None}]) == chat()


def test_unknown_names_are_reported_wherever_they_stand() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Hi", "cache": 1}], "mood": 2}

    request = chat(shape="round", messages=[message], stream=True, stream_options={"speed": 3})

    assert request.ignored == (
        "shape",
        "stream_options.speed",
        "messages[].mood",
        "messages[].content[].cache",
    )


def test_reported_names_are_bounded_and_fit_for_a_header() -> None:
    names = {f"x{i}": 1 for i in range(100)}

    request = chat(**{"é\r\nset-cookie: a": 1}, **names)

    assert len(request.ignored) == MAX_IGNORED_NAMES
    assert request.ignored[0] == "%C3%A9%0D%0Aset-cookie:%20a"


@pytest.mark.parametrize("role", ["tool", "function"])
def test_tool_messages_are_refused_with_the_reason(role: str) -> None:
    error = refused_message(role=role)

    assert (error.param, error.code) == ("messages[0].role", "unsupported")


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({"role": "robot"}, "messages[0].role", "invalid_value"),
        ({"role": 5}, "messages[0].role", "invalid_value"),
        ({"content": 5}, "messages[0].content", "invalid_type"),
        ({"content": ["Hi"]}, "messages[0].content[0]", "invalid_type"),
        (
            {"content": [{"type": "text"}]},
            "messages[0].content[0].text",
            "missing_required_parameter",
        ),
        (
            {"content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            "messages[0].content[0].type",
            "unsupported",
        ),
        ({"tool_calls": [{"id": "1"}]}, "messages[0].tool_calls", "unsupported"),
        ({"refusal": "no"}, "messages[0].refusal", "unsupported"),
        ({"type": "function_call"}, "messages[0].type", "unsupported"),
    ],
)
def test_wrong_message_is_refused_by_its_place(members: Any, param: str, code: str) -> None:
    error = refused_message(**members)

    assert (error.param, error.code) == (param, code)


def test_text_parts_are_joined() -> None:
    content = [{"type": "text", "text": "He"}, {"type": "input_text", "text": "llo"}]

    request = chat(messages=[{"role": "user", "content": content}])

    assert request.messages[0].text == "Hello"


def test_message_of_an_earlier_answer_comes_back_unchanged() -> None:
    echoed: dict[str, Any] = {
        "role": "assistant",
        "content": "Hi",
        "refusal": None,
        "tool_calls": [],
    }

    request = chat(messages=[echoed])

    assert request.ignored == ()


def test_error_about_a_prompt_does_not_quote_it() -> None:
    secret = "my secret " * 20

    error = refusal(messages=secret)

    assert "secret" not in error.message
    assert "a string of 200 characters" in error.message


def test_limits_under_different_names_must_agree() -> None:
    assert chat(max_tokens=5, max_completion_tokens=5).sampling.output_limit == 5

    error = refusal(max_tokens=5, max_completion_tokens=6)

    assert "must not differ" in error.message


def test_min_tokens_above_the_limit_is_refused() -> None:
    error = refusal(min_tokens=6, max_tokens=5)

    assert "min_tokens" in error.message


def test_stream_options_without_stream_are_refused() -> None:
    error = refusal(stream_options={"include_usage": True})

    assert "stream_options" in error.message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (None, False),
        ({}, False),
        ({"include_usage": False}, False),
        ({"include_usage": True}, True),
    ],
)
def test_usage_is_included_only_when_asked_for(options: Any, expected: bool) -> None:
    assert chat(stream=True, stream_options=options).reply.include_usage is expected


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [("Hi", "Hi"), (["Hi"], "Hi"), ([1, 2], [1, 2]), ([[1, 2]], [1, 2]), ([], [])],
)
def test_one_prompt_is_accepted_in_each_of_its_forms(prompt: Any, expected: Any) -> None:
    body = orjson.dumps({"model": "m", "prompt": prompt})

    assert parse_completion_request(body).prompt == expected


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({}, "prompt", "missing_required_parameter"),
        ({"prompt": 5}, "prompt", "invalid_type"),
        ({"prompt": {}}, "prompt", "invalid_type"),
        ({"prompt": [1, 2.5]}, "prompt", "invalid_type"),
        ({"prompt": [1, True]}, "prompt", "invalid_type"),
        ({"prompt": [1, "x"]}, "prompt", "invalid_type"),
        ({"prompt": ["a", "b"]}, "prompt", "unsupported"),
        ({"prompt": [[1], [2]]}, "prompt", "unsupported"),
        ({"prompt": "x", "echo": True}, "echo", "unsupported"),
        ({"prompt": "x", "best_of": 2}, "best_of", "unsupported"),
        ({"prompt": "x", "logprobs": 0}, "logprobs", "unsupported"),
        ({"prompt": "x", "suffix": "y"}, "suffix", "unsupported"),
    ],
)
def test_wrong_completion_body_is_refused_by_name(members: Any, param: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_completion_request(orjson.dumps({"model": "m", **members}))

    assert (caught.value.param, caught.value.code) == (param, code)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@given(st.sampled_from(["model", "messages", *OPTIONAL_FIELDS]), JSON_VALUES)
def test_any_value_of_any_known_field_is_parsed_or_refused(name: str, value: Any) -> None:
    with suppress(InvalidRequest):
        assert name not in chat(**{name: value}).ignored


@pytest.mark.parametrize("content", ["", []])
def test_empty_content_is_the_empty_text(content: Any) -> None:
    body = {"model": "m", "messages": [{"role": "system", "content": content}]}

    request = parse_chat_request(orjson.dumps(body))

    assert [message.text for message in request.messages] == [""]
