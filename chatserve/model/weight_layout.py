"""The weights of a decoder: their names, their shapes, and the tensors they are made from.

Owns the order of fused weights: query, key, value; gate, up. Knows no tensor and never loads torch.
"""

from collections.abc import Iterator

from chatserve.model.config import ModelConfig

EMBEDDING = "embed_tokens.weight"
HEAD = "lm_head.weight"


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a decoder by its name.

    The output head is among them unless it is the embedding. Fused weights stack the rows of query,
    key and value, and of gate and up, in this order.
    """
    hidden, attended = config.hidden_size, config.num_heads * config.head_dim
    num_qkv_rows = attended + 2 * config.num_kv_heads * config.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        EMBEDDING: (config.vocab_size, hidden),
        "norm.weight": (hidden,),
    }
    if not config.tie_word_embeddings:
        shapes[HEAD] = (config.vocab_size, hidden)
    layer: dict[str, tuple[int, ...]] = {
        "attention_norm.weight": (hidden,),
        "attention.qkv_proj.weight": (num_qkv_rows, hidden),
        "attention.o_proj.weight": (hidden, attended),
        "mlp_norm.weight": (hidden,),
        "mlp.gate_up_proj.weight": (2 * config.intermediate_size, hidden),
        "mlp.down_proj.weight": (hidden, config.intermediate_size),
    }
    if config.qkv_bias:
        layer["attention.qkv_proj.bias"] = (num_qkv_rows,)
    if config.o_bias:
        layer["attention.o_proj.bias"] = (hidden,)
    for i in range(config.num_layers):
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    return shapes


def part_rows(config: ModelConfig, name: str) -> tuple[int, ...] | None:
    """Return how many rows each part of a fused weight has; None for a weight of one part."""
    if ".qkv_proj." in name:
        kv_rows = config.num_kv_heads * config.head_dim
        return config.num_heads * config.head_dim, kv_rows, kv_rows
    if ".gate_up_proj." in name:
        return config.intermediate_size, config.intermediate_size
    return None


def decoder_sources(config: ModelConfig) -> Iterator[tuple[str, list[str]]]:
    """Yield each decoder weight with the source tensors whose rows it stacks, in order.

    Sources have their Hugging Face names. The head of a tied model is the embedding once more.
    """
    embedding = "model.embed_tokens.weight"
    yield EMBEDDING, [embedding]
    yield "norm.weight", ["model.norm.weight"]
    yield HEAD, [embedding if config.tie_word_embeddings else "lm_head.weight"]
    for i in range(config.num_layers):
        ours, theirs = f"layers.{i}", f"model.layers.{i}"
        qkv = [f"{theirs}.self_attn.{name}_proj" for name in ("q", "k", "v")]
        yield f"{ours}.attention_norm.weight", [f"{theirs}.input_layernorm.weight"]
        yield f"{ours}.attention.qkv_proj.weight", [f"{name}.weight" for name in qkv]
        yield f"{ours}.attention.o_proj.weight", [f"{theirs}.self_attn.o_proj.weight"]
        if config.qkv_bias:
            yield f"{ours}.attention.qkv_proj.bias", [f"{name}.bias" for name in qkv]
        if config.o_bias:
            yield f"{ours}.attention.o_proj.bias", [f"{theirs}.self_attn.o_proj.bias"]
        gate_up = [f"{theirs}.mlp.{name}_proj.weight" for name in ("gate", "up")]
        yield f"{ours}.mlp_norm.weight", [f"{theirs}.post_attention_layernorm.weight"]
        yield f"{ours}.mlp.gate_up_proj.weight", gate_up
        yield f"{ours}.mlp.down_proj.weight", [f"{theirs}.mlp.down_proj.weight"]
