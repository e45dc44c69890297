"""Which weight is served in which form, and what that comes to in bytes."""

import pytest

from chatserve.errors import ConfigError
from chatserve.model.config import ModelConfig
from chatserve.model.precision import (
    Form,
    Quantization,
    StoredForm,
    resolve_quantization,
    served_forms,
    stored_dense,
    summarize,
)

QKV = "layers.0.attention.qkv_proj.weight"
DOWN = "layers.0.mlp.down_proj.weight"
HEAD = "lm_head.weight"
EMBEDDING = "embed_tokens.weight"


def make_config(*, tied: bool = True, intermediate_size: int = 96) -> ModelConfig:
    return ModelConfig(
        architecture="qwen2",
        vocab_size=100,
        hidden_size=64,
        intermediate_size=intermediate_size,
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=32,
        max_position_embeddings=128,
        rms_norm_eps=1e-6,
        rope_theta=10_000.0,
        tie_word_embeddings=tied,
        qkv_bias=True,
    )


def stored(**by_part: Form) -> StoredForm:
    """Forms by a part of the tensor's name; all else is dense."""

    def form_of(name: str) -> Form:
        return next((form for part, form in by_part.items() if part in name), Form.DENSE)

    return form_of


STORED_Q4_1 = stored(proj=Form.Q4_1, embed_tokens=Form.Q8_0, lm_head=Form.Q8_0)


@pytest.mark.parametrize(
    ("setting", "obstacle", "expected"),
    [
        ("auto", None, Quantization.FILE),
        ("auto", "no kernels", Quantization.NONE),
        ("none", None, Quantization.NONE),
        ("none", "no kernels", Quantization.NONE),
        ("int8", None, Quantization.INT8),
        ("int4", None, Quantization.INT4),
    ],
)
def test_auto_serves_the_precision_of_the_file_where_the_backend_can(
    setting: str, obstacle: str | None, expected: Quantization
) -> None:
    assert resolve_quantization(setting, obstacle=obstacle) is expected


@pytest.mark.parametrize("setting", ["int8", "int4"])
def test_what_the_backend_cannot_do_is_refused_with_the_reason(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"--quantization {setting}: no kernels; use"):
        resolve_quantization(setting, obstacle="no kernels")


def test_the_precision_of_the_file_is_kept_matrix_by_matrix() -> None:
    forms = served_forms(make_config(), STORED_Q4_1, Quantization.FILE)

    assert forms[QKV] is Form.Q4_1
    assert forms[HEAD] is Form.Q8_0
    assert {forms[EMBEDDING], forms["norm.weight"]} == {Form.DENSE}
    assert forms["layers.0.attention.qkv_proj.bias"] is Form.DENSE


def test_a_dense_tied_head_is_the_embedding_and_no_weight_of_its_own() -> None:
    assert HEAD not in served_forms(make_config(), stored_dense, Quantization.FILE)
    assert HEAD not in served_forms(make_config(), STORED_Q4_1, Quantization.NONE)
    assert HEAD in served_forms(make_config(tied=False), stored_dense, Quantization.FILE)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"v_proj": Form.Q8_0}, Form.DENSE),
        ({"v_proj": Form.Q8_0, "q_proj": Form.Q4_1, "k_proj": Form.Q4_1}, Form.Q8_0),
        ({"v_proj": Form.Q4_0, "q_proj": Form.Q4_1, "k_proj": Form.Q4_1}, Form.Q8_0),
        ({"v_proj": Form.Q4_0, "q_proj": Form.Q4_0, "k_proj": Form.Q4_0}, Form.Q4_0),
    ],
)
def test_what_is_stacked_gets_one_form_no_coarser_than_its_parts(
    parts: dict[str, Form], expected: Form
) -> None:
    forms = served_forms(make_config(), stored(**parts), Quantization.FILE)

    assert forms[QKV] is expected


def test_int4_leaves_the_head_in_8_bits_and_keeps_4_bits_as_they_are() -> None:
    from_4_bits = stored(down_proj=Form.Q4_0, o_proj=Form.Q4_1, q_proj=Form.Q8_0)

    forms = served_forms(make_config(), from_4_bits, Quantization.INT4)

    assert forms[HEAD] is Form.Q8_0
    assert forms[DOWN] is Form.Q4_0
    assert forms["layers.0.attention.o_proj.weight"] is Form.Q4_1
    assert forms[QKV] is Form.Q4_1


def test_int8_takes_every_matrix_to_8_bits() -> None:
    forms = served_forms(make_config(tied=False), STORED_Q4_1, Quantization.INT8)

    matrices = {name: form for name, form in forms.items() if "proj.weight" in name or name == HEAD}
    assert len(matrices) == 5
    assert set(matrices.values()) == {Form.Q8_0}


def test_rows_that_groups_do_not_divide_stay_dense_and_are_counted() -> None:
    config = make_config(intermediate_size=72)

    forms = served_forms(config, stored_dense, Quantization.INT8)

    assert forms[DOWN] is Form.DENSE
    assert summarize(config, forms, Quantization.INT8, "bfloat16").num_left_dense == 1


@pytest.mark.parametrize(
    ("quantization", "precision", "matrix_bits", "head_bits"),
    [
        (Quantization.NONE, "bf16", 16, 16),
        (Quantization.FILE, "Q4_1", 5, 8.5),
        (Quantization.INT8, "int8", 8.5, 8.5),
        (Quantization.INT4, "int4", 5, 8.5),
    ],
)
def test_bytes_of_a_step_are_those_of_all_weights_but_the_table_of_rows(
    quantization: Quantization, precision: str, matrix_bits: float, head_bits: float
) -> None:
    config = make_config()
    matrix_values = 64 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 96
    vector_bytes = 2 * (3 * 64 + 128)

    forms = served_forms(config, STORED_Q4_1, quantization)
    summary = summarize(config, forms, quantization, "bfloat16")

    assert summary.precision == precision
    assert summary.weight_bytes == (
        vector_bytes + matrix_values * matrix_bits / 8 + 100 * 64 * head_bits / 8
    )
    assert summary.num_left_dense == 0


def test_a_dense_model_is_named_after_its_dtype() -> None:
    forms = served_forms(make_config(), stored_dense, Quantization.FILE)

    assert summarize(make_config(), forms, Quantization.FILE, "float32").precision == "f32"
