"""Error objects in their three shapes, and what they may quote."""

from typing import Any

import pytest
from openai.types.responses.responses_server_event import ResponseWsError

from chatserve.errors import (
    AnswerFailed,
    ClientError,
    Conflict,
    InvalidRequest,
    NotFound,
    QueueFull,
    Unavailable,
)
from chatserve.protocol.errors import (
    describe,
    error_body,
    error_frame,
    responses_error_object,
)

ERROR = InvalidRequest("n: no", code="unsupported", param="n")


def test_body_has_the_four_members_of_an_error_object() -> None:
    assert error_body(ERROR) == {
        "error": {
            "message": "n: no",
            "type": "invalid_request_error",
            "param": "n",
            "code": "unsupported",
        }
    }


def test_frame_names_lane_and_event_and_validates_against_the_official_type() -> None:
    frame = error_frame(ERROR, stream_id="lane", event_id="e1")

    parsed = ResponseWsError.model_validate(frame)
    assert (parsed.status, parsed.stream_id, parsed.error.code) == (400, "lane", "unsupported")
    assert frame["event_id"] == "e1"


def test_frame_without_a_lane_has_neither_member() -> None:
    assert error_frame(ERROR).keys() == {"type", "status", "error"}


def test_frame_says_when_to_try_again() -> None:
    frame = error_frame(QueueFull("full", retry_after_s=2))

    assert frame["error"]["headers"] == {"retry-after": "2"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (5, "5"),
        (1.5, "1.5"),
        ("short", '"short"'),
        ("x" * 61, "a string of 61 characters"),
        ([1, 2], "a list of 2"),
        ({"a": 1}, "an object"),
    ],
)
def test_description_is_short_whatever_was_received(value: Any, expected: str) -> None:
    assert describe(value) == expected


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (InvalidRequest("no"), "invalid_request"),
        (Conflict("no"), "invalid_request"),
        (NotFound("no"), "not_found"),
        (QueueFull("full", retry_after_s=2), "too_many_requests"),
        (Unavailable("away", code="no_worker"), "server_error"),
        (AnswerFailed("lost"), "server_error"),
    ],
)
def test_responses_surface_has_its_own_families(error: ClientError, family: str) -> None:
    assert responses_error_object(error)["type"] == family
    assert error_frame(error)["error"]["type"] == family
