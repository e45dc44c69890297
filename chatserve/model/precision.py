"""In how many bits each weight is served: the setting, and the rule that decides for every matrix.

Owns the forms of a weight and which of them is used; `conversion` makes tensors accordingly. Knows
no tensor and never loads torch, so that a plan can count the bytes of a model that is not loaded.

The one idea: everything is decided from names, sizes and the forms in the file before any weight
is read. The embedding is always dense, since single rows of it are looked up; so are norms and
biases. What stacks several tensors of a file needs one form for all: that of its parts if they
agree, dense if one of them is dense, and else 8 bits, the finest there is.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from math import prod

from chatserve.errors import ConfigError
from chatserve.model.config import ModelConfig
from chatserve.model.weight_layout import EMBEDDING, HEAD, decoder_sources, weight_shapes

GROUP_SIZE = 32
"""How many neighbours along a row share a scale, in every quantised form."""

_DTYPES = {"float32": ("f32", 4), "bfloat16": ("bf16", 2), "float16": ("f16", 2)}


class Quantization(StrEnum):
    """What happens to the weights of a model when it is loaded."""

    FILE = "file"
    NONE = "none"
    INT8 = "int8"
    INT4 = "int4"


class Form(Enum):
    """How one weight is held: in the compute dtype, or in groups as GGUF's type of this name."""

    DENSE = "dense"
    Q8_0 = "Q8_0"
    Q4_1 = "Q4_1"
    Q4_0 = "Q4_0"

    @property
    def bits(self) -> int:
        """Bits of a code; a quantised form is asked."""
        assert self is not Form.DENSE
        return 8 if self is Form.Q8_0 else 4

    @property
    def has_mins(self) -> bool:
        return self is Form.Q4_1


_GROUP_BYTES = {Form.Q8_0: 34, Form.Q4_1: 20, Form.Q4_0: 18}

StoredForm = Callable[[str], Form]
"""Tells in which form a source holds a tensor, by its Hugging Face name."""


def stored_dense(_name: str) -> Form:
    """The `StoredForm` of sources that know no quantisation."""
    return Form.DENSE


def resolve_quantization(setting: str, *, obstacle: str | None) -> Quantization:
    """Return what `--quantization` stands for here.

    Args:
        setting: auto, none, int8 or int4.
        obstacle: Why quantised weights cannot be multiplied here; None where they can.

    Raises:
        ConfigError: The setting asks for what cannot be done.
    """
    if setting == "none" or (setting == "auto" and obstacle):
        return Quantization.NONE
    if obstacle:
        raise ConfigError(
            f"--quantization {setting}: {obstacle}; use --quantization auto, which then serves "
            "dense weights"
        )
    return Quantization.FILE if setting == "auto" else Quantization(setting)


def served_forms(
    config: ModelConfig, stored_form: StoredForm, quantization: Quantization
) -> dict[str, Form]:
    """Return the form of every weight of the decoder by its name there.

    The head of a tied model is among them only where it is not simply the embedding.
    """
    shapes = _shapes_with_head(config)
    forms = {
        name: _served_form(name, shapes[name], [stored_form(s) for s in sources], quantization)
        for name, sources in decoder_sources(config)
    }
    if config.tie_word_embeddings and forms[HEAD] is Form.DENSE:
        del forms[HEAD]
    return forms


def _served_form(
    name: str, shape: tuple[int, ...], stored: Sequence[Form], quantization: Quantization
) -> Form:
    if quantization is Quantization.NONE or name == EMBEDDING or len(shape) == 1:
        return Form.DENSE
    own = _common_form(stored)
    if quantization is Quantization.FILE:
        return own
    if shape[1] % GROUP_SIZE:
        return Form.DENSE
    if quantization is Quantization.INT8 or name == HEAD:
        return Form.Q8_0
    return own if own is Form.Q4_0 else Form.Q4_1


def _common_form(stored: Sequence[Form]) -> Form:
    if len(set(stored)) == 1:
        return stored[0]
    return Form.DENSE if Form.DENSE in stored else Form.Q8_0


@dataclass(frozen=True, slots=True)
class WeightSummary:
    """What a model's weights are, in a word and in bytes.

    `precision` is int8 or int4 where this was asked for, else the form of most of what the layers
    hold: bf16, Q4_1 and so on. `weight_bytes` are read by a decode step: all weights but an
    embedding that is not the output head as well; `has_own_head` says whether there is one such.
    `num_left_dense` counts the matrices that were
    to be quantised and have rows that groups do not divide.
    """

    precision: str
    weight_bytes: int
    num_left_dense: int
    has_own_head: bool


def summarize(
    config: ModelConfig, forms: Mapping[str, Form], quantization: Quantization, dtype: str
) -> WeightSummary:
    """Describe weights in these forms; dense ones are of `dtype`, by torch's name."""
    dtype_name, dtype_bytes = _DTYPES[dtype]
    shapes = _shapes_with_head(config)
    matrices = {name: f for name, f in forms.items() if name != EMBEDDING and len(shapes[name]) > 1}
    step_reads = dict(forms)
    if HEAD in forms:
        del step_reads[EMBEDDING]
    weight_bytes = sum(_num_bytes(shapes[name], f, dtype_bytes) for name, f in step_reads.items())
    if quantization in (Quantization.INT8, Quantization.INT4):
        num_left_dense = sum(form is Form.DENSE for form in matrices.values())
        return WeightSummary(quantization.value, weight_bytes, num_left_dense, HEAD in forms)
    values = Counter[Form]()
    for name in matrices.keys() - {HEAD}:
        values[matrices[name]] += prod(shapes[name])
    [(commonest, _)] = values.most_common(1)
    own_name = dtype_name if commonest is Form.DENSE else commonest.value
    return WeightSummary(own_name, weight_bytes, 0, HEAD in forms)


def _shapes_with_head(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight, and of an output head even where it is the embedding."""
    shapes = weight_shapes(config)
    return {HEAD: shapes[EMBEDDING], **shapes}


def _num_bytes(shape: tuple[int, ...], form: Form, dtype_bytes: int) -> int:
    if form is Form.DENSE:
        return prod(shape) * dtype_bytes
    return prod(shape) // GROUP_SIZE * _GROUP_BYTES[form]
