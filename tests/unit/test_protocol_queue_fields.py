"""`priority` and `timeout`: the same fields, with the same limits, on every surface."""

from typing import Any

import orjson
import pytest

from chatserve.errors import ClientError
from chatserve.protocol.chat import parse_chat_request
from chatserve.protocol.client_events import BadEvent, Create, parse_client_event
from chatserve.protocol.completions import parse_completion_request
from chatserve.protocol.request_fields import QueueFields


def parse_create(raw: bytes) -> Any:
    event = parse_client_event(raw.decode())
    if isinstance(event, BadEvent):
        raise event.error
    assert isinstance(event, Create)
    return event.request


SURFACES: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (parse_chat_request, {"messages": [{"role": "user", "content": "Hi"}]}),
    "completion": (parse_completion_request, {"prompt": "Hi"}),
    "response": (parse_create, {"type": "response.create", "input": "Hi"}),
}


@pytest.fixture(params=SURFACES)
def parse(request: pytest.FixtureRequest) -> Any:
    """A function from fields to the parsed body of one surface."""
    reader, members = SURFACES[request.param]
    return lambda **fields: reader(orjson.dumps({"model": "m", **members, **fields}))


def test_nothing_is_urgent_or_limited_that_does_not_say_so(parse: Any) -> None:
    assert parse().queue == QueueFields(priority=0, timeout=None)
    assert parse(priority=None, timeout=None).queue == QueueFields()


@pytest.mark.parametrize(("priority", "timeout"), [(-10, 86400), (10, 0.001), (3, 30), (0, 2.5)])
def test_fields_take_effect_and_are_not_reported(parse: Any, priority: int, timeout: Any) -> None:
    body = parse(priority=priority, timeout=timeout)

    assert (body.queue.priority, body.queue.timeout) == (priority, timeout)
    assert body.ignored == ()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"priority": 11}, "invalid_value"),
        ({"priority": -11}, "invalid_value"),
        ({"priority": 1.5}, "invalid_type"),
        ({"priority": "high"}, "invalid_type"),
        ({"priority": True}, "invalid_type"),
        ({"timeout": 0}, "invalid_value"),
        ({"timeout": -1}, "invalid_value"),
        ({"timeout": 86401}, "invalid_value"),
        ({"timeout": "30s"}, "invalid_type"),
        ({"timeout": True}, "invalid_type"),
    ],
)
def test_wrong_value_is_refused_by_name(parse: Any, fields: dict[str, Any], code: str) -> None:
    [name] = fields

    with pytest.raises(ClientError) as refusal:
        parse(**fields)

    assert (refusal.value.param, refusal.value.code, refusal.value.status) == (name, code, 400)
    assert name in refusal.value.message
