"""Brings the tensors of a source into the form in which a decoder takes them.

Owns stacking, rounding and dequantising. Which form a weight gets is `precision`'s to decide, what
is stacked on what `weight_layout`'s. Codes that already are in their final form are moved, never
computed anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.kernels.quantized import QuantizedWeight, Weight, quantize
from chatserve.model.checkpoint import Checkpoint, ConvertedModel
from chatserve.model.precision import Form, Quantization, served_forms
from chatserve.model.weight_layout import decoder_sources, part_rows


def convert(
    checkpoint: Checkpoint, quantization: Quantization, dtype: torch.dtype
) -> ConvertedModel:
    """Read and convert every weight of a source.

    Raises:
        ModelError: A tensor is missing or unreadable.
    """
    forms = served_forms(checkpoint.config, checkpoint.stored_form, quantization)
    weights: dict[str, Weight] = {}
    for name, sources in decoder_sources(checkpoint.config):
        if name in forms:
            parts = [checkpoint.read_tensor(source) for source in sources]
            _check_parts(name, parts, part_rows(checkpoint.config, name))
            weights[name] = to_form(parts, forms[name], dtype)
    return ConvertedModel(checkpoint.config, checkpoint.text, forms, weights)


def _check_parts(name: str, parts: Sequence[Weight], rows: Sequence[int] | None) -> None:
    """Refuse parts that would fit together and be taken for each other.

    A weight of one part is checked when the decoder takes it.
    """
    if rows is None:
        return
    if [part.shape[0] for part in parts] != list(rows):
        found = " and ".join(str(part.shape[0]) for part in parts)
        wanted = " and ".join(map(str, rows))
        raise ModelError(
            f"the weights do not fit the configuration: the parts of {name} have {found} rows, "
            f"expected {wanted}"
        )
    if len({tuple(part.shape[1:]) for part in parts}) > 1:
        raise ModelError(
            f"the weights do not fit the configuration: the parts of {name} differ in width"
        )


def to_form(parts: Sequence[Weight], form: Form, dtype: torch.dtype) -> Weight:
    """Stack the rows of parts into one weight of this form, for activations of `dtype`."""
    quantized = [part for part in parts if isinstance(part, QuantizedWeight) and _is_in(form, part)]
    if len(quantized) == len(parts):
        return _stack(quantized, dtype)
    dense = torch.cat([_dequantized(part) for part in parts])
    if form is Form.DENSE:
        return dense.to(dtype)
    return replace(quantize(dense, form.bits), dtype=dtype)


def map_rows(weight: QuantizedWeight, reorder: Callable[[Tensor], Tensor]) -> QuantizedWeight:
    """Return the weight with its rows in another order."""
    return replace(
        weight,
        codes=reorder(weight.codes),
        scales=reorder(weight.scales),
        mins=None if weight.mins is None else reorder(weight.mins),
    )


def _is_in(form: Form, weight: QuantizedWeight) -> bool:
    return form is not Form.DENSE and (
        (weight.bits, weight.mins is not None) == (form.bits, form.has_mins)
    )


def _stack(parts: Sequence[QuantizedWeight], dtype: torch.dtype) -> QuantizedWeight:
    mins = [part.mins for part in parts if part.mins is not None]
    return QuantizedWeight(
        bits=parts[0].bits,
        codes=torch.cat([part.codes for part in parts]),
        scales=torch.cat([part.scales for part in parts]),
        mins=torch.cat(mins) if mins else None,
        dtype=dtype,
    )


def _dequantized(weight: Weight) -> Tensor:
    return weight if isinstance(weight, Tensor) else weight.dequantize(torch.float32)
