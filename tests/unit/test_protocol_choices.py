"""`n`: how many choices a completion may ask for."""

from typing import Any

import orjson
import pytest

from chatserve.errors import InvalidRequest
from chatserve.protocol.chat import parse_chat_request
from chatserve.protocol.client_events import BadEvent, parse_client_event
from chatserve.protocol.completions import parse_completion_request

SURFACES: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (parse_chat_request, {"messages": [{"role": "user", "content": "Hi"}]}),
    "completion": (parse_completion_request, {"prompt": "Hi"}),
}


@pytest.fixture(params=SURFACES)
def parse(request: pytest.FixtureRequest) -> Any:
    """A function from fields to the parsed body of one surface."""
    reader, members = SURFACES[request.param]
    return lambda **fields: reader(orjson.dumps({"model": "m", **members, **fields}))


def test_one_choice_is_asked_for_unless_more_are_named(parse: Any) -> None:
    assert parse().reply.n == 1
    assert parse(n=8).reply.n == 8


@pytest.mark.parametrize(
    ("number", "code"),
    [(0, "invalid_value"), (9, "invalid_value"), (1.0, "invalid_type"), (True, "invalid_type")],
)
def test_number_that_cannot_be_served_is_refused(parse: Any, number: Any, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(n=number)

    assert (caught.value.param, caught.value.code) == ("n", code)


def test_more_choices_than_there_may_be_are_refused_with_the_limit(parse: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"n: .* less than or equal to 8, received 9"):
        parse(n=9)


def test_best_of_is_refused_in_favour_of_n() -> None:
    body = {"model": "m", "prompt": "Hi", "best_of": 2}

    with pytest.raises(InvalidRequest, match="best_of: candidates are not ranked; use n"):
        parse_completion_request(orjson.dumps(body))


def test_several_choices_are_refused_on_the_socket() -> None:
    body = {"model": "m", "input": "Hi", "n": 2}

    event = parse_client_event(orjson.dumps({"type": "response.create", **body}).decode())

    assert isinstance(event, BadEvent)
    assert "n: only one answer per request is served here" in event.error.message
