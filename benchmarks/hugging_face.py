"""A model's shape in the words of Hugging Face's config.json.

Owns the names. For benchmarks that write a folder which others, or we ourselves, load.
"""

from typing import Any

from chatserve.model.config import ModelConfig


def config_fields(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a plain llama-like model; whoever needs more adds it."""
    return {
        "model_type": config.architecture,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tie_word_embeddings,
    }
