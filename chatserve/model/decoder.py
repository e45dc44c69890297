"""The decoder: one forward pass over all tokens of a step.

Owns the weights, the names under which they are given and their shapes. Does not know where they
come from, what a request is, or how the next token is chosen. What lies between the embedding and
the output head is one stack of layers, and the ops know best how to run it.
"""

from collections.abc import Mapping, MutableMapping

import torch
from torch import Tensor

from chatserve.errors import ModelError
from chatserve.kernels.ops import (
    AttentionBatch,
    KVPages,
    LayerWeights,
    Ops,
    PackedLinear,
    StackInputs,
    StackWeights,
)
from chatserve.kernels.quantized import Weight
from chatserve.model.config import ModelConfig
from chatserve.model.weight_layout import weight_shapes


class Decoder:
    """A decoder of the llama family over a paged KV pool.

    Owns: all weights and the rotary tables.
    Used from: the engine thread, under `torch.inference_mode`.
    """

    def __init__(self, config: ModelConfig, weights: MutableMapping[str, Weight], ops: Ops):
        """Take the weights out of a mapping and hand each to the ops, one after another.

        So that no weight needs to be in memory in both forms for longer than its packing takes.
        What `weight_shapes` names must be there; a head may be given although it is tied.

        Raises:
            ModelError: A weight is missing, superfluous or of another shape.
        """
        check_weights(config, weights)
        embed_tokens = _dense(weights, "embed_tokens.weight")
        self.dtype = embed_tokens.dtype  # of activations, and of KV
        # Its products are the logits: in float32, so that nothing is rounded twice.
        head = weights.pop("lm_head.weight", embed_tokens)
        self._lm_head = ops.pack_linear(head, None, torch.float32)
        cos, sin = _rotary_tables(config, embed_tokens.device)
        self.stack = ops.stack_layers(
            StackWeights(
                embed_tokens=embed_tokens,
                cos=cos,
                sin=sin,
                layers=[_pack_layer(weights, i, ops, self.dtype) for i in range(config.num_layers)],
                final_norm=_dense(weights, "norm.weight"),
                head_dim=config.head_dim,
                rms_norm_eps=config.rms_norm_eps,
            )
        )

    def __call__(
        self,
        input_ids: Tensor,  # [num_tokens], int64
        positions: Tensor,  # [num_tokens], int64; each token's index in its own sequence
        attention: AttentionBatch,
        kv: KVPages,
        rows: Tensor,  # [num_rows], int64, ascending
    ) -> Tensor:  # [num_rows, hidden_size]
        """Write the KV of all tokens into the pool and return the final states of `rows`."""
        return self.stack(StackInputs(input_ids, positions, attention, rows), kv)

    def compute_logits(self, hidden: Tensor) -> Tensor:
        """Return float32 logits [n, vocab_size] for hidden states [n, hidden_size]."""
        return self._lm_head(hidden)


def check_weights(config: ModelConfig, weights: Mapping[str, Weight]) -> None:
    """Refuse weights that are not those of this configuration.

    Raises:
        ModelError: The message names the first of them.
    """
    shapes = weight_shapes(config)
    for name, shape in shapes.items():
        if name not in weights:
            raise ModelError(f"the weights do not fit the configuration: {name} is missing")
        if tuple(weights[name].shape) != shape:
            found = tuple(weights[name].shape)
            raise ModelError(
                f"the weights do not fit the configuration: {name} is {found}, expected {shape}"
            )
    for name in weights.keys() - shapes.keys() - {"lm_head.weight"}:
        raise ModelError(f"the weights do not fit the configuration: {name} has no place in it")


def _pack_layer(
    weights: MutableMapping[str, Weight], index: int, ops: Ops, dtype: torch.dtype
) -> LayerWeights:
    prefix = f"layers.{index}"

    def pack(name: str) -> PackedLinear:
        bias = f"{prefix}.{name}.bias"
        return ops.pack_linear(
            weights.pop(f"{prefix}.{name}.weight"),
            _dense(weights, bias) if bias in weights else None,
            dtype,
        )

    return LayerWeights(
        attention_norm=_dense(weights, f"{prefix}.attention_norm.weight"),
        qkv_proj=pack("attention.qkv_proj"),
        o_proj=pack("attention.o_proj"),
        mlp_norm=_dense(weights, f"{prefix}.mlp_norm.weight"),
        gate_up_proj=pack("mlp.gate_up_proj"),
        down_proj=pack("mlp.down_proj"),
    )


def _dense(weights: MutableMapping[str, Weight], name: str) -> Tensor:
    weight = weights.pop(name)
    assert isinstance(weight, Tensor), f"{name} is never quantised"
    return weight


def _rotary_tables(config: ModelConfig, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cos and sin, each [max_position_embeddings, head_dim // 2], float32.

    Pair i of a head turns by position * theta^(-2i / head_dim), divided by its factor where the
    model was trained with scaled frequencies.
    """
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32)
    frequencies = 1.0 / config.rope_theta ** (pairs / config.head_dim)
    if config.rope_factors:
        frequencies /= torch.tensor(config.rope_factors, dtype=torch.float32)
    positions = torch.arange(config.max_position_embeddings, dtype=torch.float32)
    angles = torch.outer(positions, frequencies)
    return angles.cos().to(device), angles.sin().to(device)
