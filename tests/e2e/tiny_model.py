"""A model folder small enough to be made on the spot: two layers, one token per byte, a seed.

What it says makes no sense. It is for tests of everything around the model.
"""

import json
from pathlib import Path

import numpy
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

HIDDEN = 32
NUM_LAYERS = 2
NUM_HEADS, NUM_KV_HEADS, HEAD_DIM = 4, 2, 8
INTERMEDIATE = 64
CONTEXT = 512
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_model(folder: Path) -> Path:
    """Write the model's files and return the folder."""
    folder.mkdir(parents=True)
    tokenizer = _byte_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(_tensors(tokenizer.get_vocab_size()), folder / "model.safetensors")
    _write_json(folder / "config.json", _config(tokenizer))
    _write_json(
        folder / "tokenizer_config.json",
        {"chat_template": CHAT_TEMPLATE, "eos_token": "<|im_end|>", "bos_token": None},
    )
    return folder


def _write_json(file: Path, content: dict[str, object]) -> None:
    file.write_text(json.dumps(content))


def _byte_tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: token_id for token_id, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    control_tokens = ["<|im_start|>", "<|im_end|>"]
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in control_tokens])
    return tokenizer


def _config(tokenizer: Tokenizer) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": tokenizer.get_vocab_size(),
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": NUM_LAYERS,
        "num_attention_heads": NUM_HEADS,
        "num_key_value_heads": NUM_KV_HEADS,
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
    }


def _tensors(vocab_size: int) -> dict[str, NDArray[numpy.float32]]:
    random = numpy.random.default_rng(seed=0)

    def weight(*shape: int) -> NDArray[numpy.float32]:
        return random.normal(0, 0.2, shape).astype(numpy.float32)

    def ones() -> NDArray[numpy.float32]:
        return numpy.ones(HIDDEN, numpy.float32)

    tensors = {"model.embed_tokens.weight": weight(vocab_size, HIDDEN), "model.norm.weight": ones()}
    for layer in range(NUM_LAYERS):
        prefix = f"model.layers.{layer}"
        tensors |= {
            f"{prefix}.input_layernorm.weight": ones(),
            f"{prefix}.post_attention_layernorm.weight": ones(),
            f"{prefix}.self_attn.q_proj.weight": weight(NUM_HEADS * HEAD_DIM, HIDDEN),
            f"{prefix}.self_attn.k_proj.weight": weight(NUM_KV_HEADS * HEAD_DIM, HIDDEN),
            f"{prefix}.self_attn.v_proj.weight": weight(NUM_KV_HEADS * HEAD_DIM, HIDDEN),
            f"{prefix}.self_attn.o_proj.weight": weight(HIDDEN, NUM_HEADS * HEAD_DIM),
            f"{prefix}.mlp.gate_proj.weight": weight(INTERMEDIATE, HIDDEN),
            f"{prefix}.mlp.up_proj.weight": weight(INTERMEDIATE, HIDDEN),
            f"{prefix}.mlp.down_proj.weight": weight(HIDDEN, INTERMEDIATE),
        }
    return tensors
