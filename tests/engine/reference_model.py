"""The default model in transformers, from the same GGUF file by a path of its own.

Nothing of chatserve's loading is used: dequantised by the `gguf` package, rotary rows put back into
the Hugging Face order here, so that a mistake in our own conversion cannot hide in the reference.
"""

from pathlib import Path

import torch
from gguf import GGUFReader, dequantize
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

_NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}


def load_reference(path: Path) -> LlamaForCausalLM:
    """Return the model in float32, ready to run."""
    reader = GGUFReader(str(path))

    def number(key: str) -> float:
        return reader.fields[f"llama.{key}"].contents()  # type: ignore[no-any-return]

    heads = {"attn_q": int(number("attention.head_count"))}
    heads["attn_k"] = int(number("attention.head_count_kv"))
    config = LlamaConfig(
        hidden_size=int(number("embedding_length")),
        intermediate_size=int(number("feed_forward_length")),
        num_hidden_layers=int(number("block_count")),
        num_attention_heads=heads["attn_q"],
        num_key_value_heads=heads["attn_k"],
        max_position_embeddings=int(number("context_length")),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": number("rope.freq_base")},
        vocab_size=int(number("vocab_size")),
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config)
    state = dict(_hugging_face_tensors(reader, heads))
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    model.train(False)
    return model


def _hugging_face_tensors(reader: GGUFReader, heads: dict[str, int]) -> list[tuple[str, Tensor]]:
    tensors = []
    for tensor in reader.tensors:
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        if tensor.name in _TOP:
            tensors.append((_TOP[tensor.name], weight))
            continue
        _, layer, kind, _ = tensor.name.split(".")
        if kind in heads:  # [heads, half, 2, hidden] in the file, [heads, 2, half, hidden] here
            paired = weight.reshape(heads[kind], -1, 2, weight.shape[1])
            weight = paired.transpose(1, 2).reshape(weight.shape)
        tensors.append((f"model.layers.{layer}.{_NAMES[kind]}.weight", weight))
    return tensors


@torch.inference_mode()
def top_two_margins(
    model: LlamaForCausalLM, token_ids: list[int], num_prompt_tokens: int
) -> list[tuple[int, float]]:
    """Return for each output position the reference's token and its margin over the next best.

    One forward pass over prompt and output. Where every output token is the reference's choice, the
    output is what the reference generates greedily.
    """
    logits = model(torch.tensor([token_ids])).logits[0, num_prompt_tokens - 1 : -1]
    best = logits.topk(2, dim=-1)
    margins = (best.values[:, 0] - best.values[:, 1]).tolist()
    return list(zip(best.indices[:, 0].tolist(), margins, strict=True))
