"""What a page is told of a model: the sampling fields, from what bodies are checked with."""

from dataclasses import replace
from typing import Any

from gateway.fake_model import make_card
from gateway.gateway_helpers import Service

from chatserve.gateway.admission import sampling_params
from chatserve.protocol.sampling import OUTPUT_LIMIT_SYNONYMS, SamplingFields
from chatserve.protocol.sampling_description import SamplingField, sampling_fields_of

CARD = replace(make_card(), default_temperature=0.7, default_top_p=0.9, default_top_k=40)


def by_name() -> dict[str, SamplingField]:
    return {field.name: field for field in sampling_fields_of(CARD)}


def test_each_field_is_described_once() -> None:
    names = [field.name for field in sampling_fields_of(CARD)]

    assert sorted(names) == sorted(SamplingFields.model_fields.keys() - OUTPUT_LIMIT_SYNONYMS)
    assert "max_output_tokens" in names


def test_bounds_are_those_that_bodies_are_checked_with() -> None:
    fields = by_name()

    assert fields["temperature"] == SamplingField(
        name="temperature", type="number", minimum=0, maximum=2, default=0.7
    )
    assert fields["top_p"] == SamplingField(
        name="top_p", type="number", minimum=0, exclusive_minimum=True, maximum=1, default=0.9
    )
    assert fields["stop"] == SamplingField(
        name="stop", type="strings", max_items=16, max_item_chars=256, default=[]
    )
    assert fields["stop_token_ids"] == SamplingField(
        name="stop_token_ids", type="integers", minimum=0, max_items=256, default=[]
    )
    assert fields["ignore_eos"] == SamplingField(name="ignore_eos", type="boolean", default=False)


def test_defaults_are_what_a_body_without_the_field_gets() -> None:
    params = sampling_params(SamplingFields(), CARD, prompt_len=10)
    decided_later = {"seed", "max_output_tokens"}

    for field in sampling_fields_of(CARD):
        if field.name not in decided_later:
            applied = getattr(params, field.name)
            assert (list(applied) if isinstance(applied, tuple) else applied) == field.default
    assert {name for name, field in by_name().items() if field.default is None} == decided_later


async def test_list_tells_the_model_its_base_and_its_fields(service: Service) -> None:
    listed: list[dict[str, Any]] = (await service.http.get("/v1/models")).json()["data"]
    read = (await service.http.get(f"/v1/models/{listed[0]['id']}")).json()

    assert [model["chatserve:base_model"] for model in listed] == ["echo"]
    assert listed[0]["chatserve:persona"] is None
    assert listed[0]["chatserve:sampling"] == [
        field.model_dump() for field in sampling_fields_of(make_card())
    ]
    assert read == listed[0]
