"""The sampling fields as a list that a form can be made of.

Owns the way from the schema of `SamplingFields`, by which bodies are checked, to that list: a field
that is added there is described here by itself. A default of the model's is that of the card which
has the field's name behind `default_`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from chatserve.engine.api import ModelCard
from chatserve.protocol.sampling import OUTPUT_LIMIT_SYNONYMS, SamplingFields

Scalar = bool | int | float | str

# By the types of JSON Schema, where a list is told by its items.
_LISTS = {"string": "strings", "integer": "integers"}


class SamplingField(BaseModel):
    """One sampling field: its type, its bounds and what it is where a body leaves it out.

    A bound that is None is not there. A `default` of None is drawn, or no limit. `max_items` and
    `max_item_chars` are those of a list.

    Owns: nothing beyond its values.
    Used from: the list of models.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    type: Literal["number", "integer", "boolean", "strings", "integers"]
    default: Scalar | list[str] | list[int] | None
    minimum: int | float | None = None
    maximum: int | float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    max_items: int | None = None
    max_item_chars: int | None = None


def sampling_fields_of(card: ModelCard) -> list[SamplingField]:
    """Return what a body for this model may say about the choice of tokens."""
    return [
        field.model_copy(update={"default": getattr(card, f"default_{field.name}", field.default)})
        for field in _fields()
    ]


@cache
def _fields() -> tuple[SamplingField, ...]:
    properties: dict[str, Any] = SamplingFields.model_json_schema()["properties"]
    return tuple(
        _field(name, schema)
        for name, schema in properties.items()
        if name not in OUTPUT_LIMIT_SYNONYMS
    )


def _field(name: str, schema: Mapping[str, Any]) -> SamplingField:
    value = _value_schema(schema)
    members: dict[str, Any] = {"name": name, "default": schema["default"]}
    if value["type"] == "array":
        items = value["items"]
        members["type"] = _LISTS[items["type"]]
        members["max_items"] = value.get("maxItems")
        members["max_item_chars"] = items.get("maxLength")
    else:
        items = value
        members["type"] = value["type"]
    members |= _bound(items, "minimum") | _bound(items, "maximum")
    return SamplingField.model_validate(members)


def _value_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value, without the null that says nothing."""
    choices = schema.get("anyOf", [schema])
    (value,) = (choice for choice in choices if choice["type"] != "null")
    found: Mapping[str, Any] = value
    return found


def _bound(value: Mapping[str, Any], name: Literal["minimum", "maximum"]) -> dict[str, Any]:
    exclusive = value.get(f"exclusive{name.capitalize()}")
    if exclusive is not None:
        return {name: exclusive, f"exclusive_{name}": True}
    return {name: value.get(name)}
