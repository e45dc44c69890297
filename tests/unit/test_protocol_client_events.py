"""What a client may say on the socket."""

import json
from typing import Any

import pytest

from chatserve.protocol.client_events import (
    BadEvent,
    Cancel,
    Create,
    Envelope,
    Ping,
    Resume,
    parse_client_event,
)
from chatserve.protocol.responses import PromptReference


def parse(kind: str, **members: Any) -> Any:
    return parse_client_event(json.dumps({"type": kind, **members}))


def bad_create(**members: Any) -> BadEvent:
    event = parse("response.create", **{"model": "m", "input": "Hi", **members})
    assert isinstance(event, BadEvent)
    return event


def test_create_takes_a_string_as_the_users_message() -> None:
    event = parse("response.create", model="m", input="Hi", stream_id="a.b-c_1", event_id="e1")

    assert isinstance(event, Create)
    assert event.envelope == Envelope("a.b-c_1", "e1")
    assert [(m.role, m.text) for m in event.request.fields.input] == [("user", "Hi")]


def test_create_takes_messages_with_and_without_parts() -> None:
    items = [
        {"role": "system", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Yes", "annotations": []}],
        },
    ]

    event = parse("response.create", model="m", input=items)

    assert [m.text for m in event.request.fields.input] == ["Be brief.", "Hi", "Yes"]
    assert event.request.ignored == ()


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_conversation_is_named_by_id_or_object(conversation: Any) -> None:
    event = parse("response.create", model="m", input="Hi", conversation=conversation)

    assert event.request.fields.conversation == "conv_1"


def test_prompt_is_a_reference_with_its_variables() -> None:
    text = {"type": "input_text", "text": "two"}
    prompt = {"id": "greeting", "version": "3", "variables": {"a": "one", "b": text}}

    event = parse("response.create", model="m", input="Hi", prompt=prompt)

    assert event.request.fields.prompt_reference == PromptReference(
        "greeting", "3", {"a": "one", "b": "two"}
    )


def test_branch_names_the_message_that_it_follows() -> None:
    members = {"conversation": "conv_1", "chatserve:parent_id": "msg_1"}

    event = parse("response.create", model="m", input="Hi", **members)

    assert event.request.fields.parent_id == "msg_1"


@pytest.mark.parametrize("members", [{}, {"input": []}, {"input": "Hi"}])
def test_warm_up_needs_no_input(members: Any) -> None:
    event = parse("response.create", model="m", generate=False, **members)

    assert not event.request.fields.generate


def test_answer_needs_an_input() -> None:
    event = parse("response.create", model="m")

    assert (event.error.param, event.error.code) == ("input", "missing_required_parameter")


def test_fingerprint_is_what_was_said_and_not_how() -> None:
    first = parse("response.create", model="m", input="Hi", event_id="e1", metadata=None)
    same = parse("response.create", input="Hi", model="m", event_id="e1", stream_id="lane")
    other = parse("response.create", model="m", input="Ho", event_id="e1")

    assert first.request.fingerprint == same.request.fingerprint
    assert first.request.fingerprint != other.request.fingerprint


def test_unknown_names_of_a_create_are_reported() -> None:
    event = parse("response.create", model="m", input="Hi", colour="red")

    assert event.request.ignored == ("colour",)


@pytest.mark.parametrize(
    ("members", "param", "code"),
    [
        ({"input": 5}, "input", "invalid_type"),
        ({"input": []}, "input", "invalid_value"),
        ({"input": [{"type": "function_call"}]}, "input[0].type", "unsupported"),
        ({"conversation": 5}, "conversation", "invalid_type"),
        ({"conversation": {"id": 5}}, "conversation", "invalid_type"),
        ({"conversation": "c", "previous_response_id": "r"}, None, "invalid_value"),
        ({"conversation": "c", "store": False}, None, "invalid_value"),
        ({"metadata": {"k": 5}}, "metadata.k", "invalid_type"),
        ({"metadata": {str(i): "v" for i in range(17)}}, "metadata", "invalid_value"),
        ({"generate": "no"}, "generate", "invalid_type"),
        ({"prompt": "p"}, "prompt", "invalid_type"),
        ({"prompt": {}}, "prompt.id", "missing_required_parameter"),
        ({"prompt": {"id": "p", "variables": {"v": 5}}}, "prompt.variables.v", "invalid_type"),
        (
            {"prompt": {"id": "p", "variables": {"v": {"type": "input_image"}}}},
            "prompt.variables.v.type",
            "unsupported",
        ),
        ({"stream": False}, "stream", "unsupported"),
        ({"tools": [{"type": "function"}]}, "tools", "unsupported"),
        ({"text": {"format": {"type": "json_schema"}}}, "text", "unsupported"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "unsupported"),
        ({"truncation": "auto"}, "truncation", "unsupported"),
        ({"chatserve:parent_id": "msg_1"}, None, "invalid_value"),
        ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
        ({"event_id": ""}, "event_id", "invalid_value"),
        ({"event_id": 5}, "event_id", "invalid_type"),
    ],
)
def test_wrong_create_is_refused_by_name(members: Any, param: str | None, code: str) -> None:
    event = bad_create(**members)

    assert (event.error.param, event.error.code) == (param, code)


@pytest.mark.parametrize("stream_id", ["a b", "", "é", "a\n", "x" * 257])
def test_wrong_stream_id_has_a_code_of_its_own(stream_id: str) -> None:
    event = bad_create(stream_id=stream_id)

    assert event.error.code == "invalid_stream_id"


def test_error_of_a_create_keeps_its_lane_and_id() -> None:
    event = bad_create(stream_id="lane", event_id="e1", temperature=5)

    assert event.envelope == Envelope("lane", "e1")


def test_cancel_names_a_response_or_a_lane() -> None:
    assert parse("response.cancel", response_id="resp_1") == Cancel(Envelope(), "resp_1")
    assert parse("response.cancel", stream_id="a") == Cancel(Envelope("a"), None)
    members = {"event_id": "e2", "chatserve:create_event_id": "e1"}
    assert parse("response.cancel", **members) == Cancel(Envelope(None, "e2"), None, "e1")


def test_resume_starts_at_the_first_event_unless_told_otherwise() -> None:
    kind = "chatserve:response.resume"

    assert parse(kind, response_id="r") == Resume(Envelope(), "r", -1)
    assert parse(kind, response_id="r", starting_after=7) == Resume(Envelope(), "r", 7)


@pytest.mark.parametrize(
    "members", [{}, {"response_id": 5}, {"response_id": "r", "starting_after": -2}]
)
def test_wrong_resume_is_refused(members: Any) -> None:
    assert isinstance(parse("chatserve:response.resume", **members), BadEvent)


def test_ping_carries_its_time_back() -> None:
    assert parse("chatserve:ping", t=12.5) == Ping(Envelope(), 12.5)
    assert parse("chatserve:ping") == Ping(Envelope(), None)


def test_steer_is_unsupported() -> None:
    event = parse("response.steer", input="x", previous_response_id="r")

    assert event.error.code == "unsupported"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_type"),
        ("{}", "missing_required_parameter"),
        ('{"type": 5}', "invalid_type"),
        ('{"type": "response.begin"}', "unknown_event"),
    ],
)
def test_frame_that_is_no_event_is_a_bad_event(frame: str, code: str) -> None:
    event = parse_client_event(frame)

    assert isinstance(event, BadEvent)
    assert event.error.code == code


def test_answer_in_the_background_that_is_not_stored_is_refused() -> None:
    body = {"type": "response.create", "model": "m", "input": "Hi", "background": True}

    event = parse_client_event(json.dumps({**body, "store": False}))

    assert isinstance(event, BadEvent)
    assert event.error.param == "background"
