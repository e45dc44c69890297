"""A decoder from token ids to final states in one call to the library.

Owns the step from a stack's weights and inputs to the structures of `src/decoder.h`, and the
account of where the time of the steps went. What it computes is `OpByOpStack`, bit by bit.
"""

import ctypes
from ctypes import c_double

import torch
from torch import Tensor

from chatserve.kernels.cpu.attention import c_attention_batch, has_head_dim
from chatserve.kernels.cpu.library import CDecoder, CHeadShape, CLayer, CStep
from chatserve.kernels.cpu.linear import CpuLinear
from chatserve.kernels.cpu.memory import address
from chatserve.kernels.ops import KVPages, LayerWeights, StackInputs, StackWeights

STAGES = (
    "embedding",
    "norms",
    "qkv",
    "rotary",
    "attention",
    "output",
    "gate-up",
    "activation",
    "down",
)
"""What the time of a step goes into: `Stage` of `src/decoder.h`."""


class CpuStack:
    """`LayerStack` in C++, for bfloat16.

    Owns: the structures by which the library knows the weights, and with them the weights.
    Used from: the engine thread.
    """

    def __init__(self, library: ctypes.CDLL, weights: StackWeights):
        self._library = library
        self._weights = weights  # the structures hold addresses only
        layers = [_c_layer(layer) for layer in weights.layers]
        self._c_layers = (CLayer * len(layers))(*layers)
        self._decoder = _c_decoder(weights, self._c_layers)
        assert library.chatserve_num_stages() == len(STAGES), "STAGES differs from `Stage`"
        self._seconds = (c_double * len(STAGES))()

    def __call__(self, inputs: StackInputs, kv: KVPages) -> Tensor:
        heads = self._decoder.heads
        assert kv.k.shape == kv.v.shape, (kv.k.shape, kv.v.shape)
        assert len(kv.k) == len(self._c_layers), (len(kv.k), len(self._c_layers))
        assert kv.k.shape[3:] == (heads.num_kv_heads, heads.head_dim), kv.k.shape
        out = self._weights.final_norm.new_empty(len(inputs.rows), self._decoder.hidden_size)
        _, num_pages, page_size, _, _ = kv.k.shape
        step = CStep(
            input_ids=address(inputs.input_ids, torch.int64),
            positions=address(inputs.positions, torch.int64),
            slot_mapping=address(inputs.attention.slot_mapping, torch.int64),
            num_tokens=len(inputs.input_ids),
            attention=ctypes.pointer(c_attention_batch(inputs.attention)),
            k=address(kv.k, torch.bfloat16),
            v=address(kv.v, torch.bfloat16),
            num_pages=num_pages,
            page_size=page_size,
            rows=address(inputs.rows, torch.int64),
            num_rows=len(inputs.rows),
        )
        if not self._library.chatserve_forward(self._decoder, step, out.data_ptr(), self._seconds):
            raise IndexError("a token id or a position lies outside its table")
        return out

    def seconds_by_stage(self) -> dict[str, float]:
        """Return how long all calls so far have spent in each of `STAGES`."""
        return dict(zip(STAGES, self._seconds, strict=True))


def can_stack(weights: StackWeights) -> bool:
    """Return whether the library has all matrices of these layers, and attends such heads."""
    linears = (linear for layer in weights.layers for linear in _linears(layer))
    return has_head_dim(weights.head_dim) and all(isinstance(each, CpuLinear) for each in linears)


def _linears(layer: LayerWeights) -> tuple[object, ...]:
    return layer.qkv_proj, layer.o_proj, layer.gate_up_proj, layer.down_proj


def _c_layer(layer: LayerWeights) -> CLayer:
    qkv, o, gate_up, down = (_c_linear(linear) for linear in _linears(layer))
    return CLayer(
        attention_norm=address(layer.attention_norm, torch.bfloat16),
        qkv=qkv,
        o=o,
        mlp_norm=address(layer.mlp_norm, torch.bfloat16),
        gate_up=gate_up,
        down=down,
    )


def _c_linear(linear: object) -> "ctypes._Pointer[ctypes.Structure]":
    assert isinstance(linear, CpuLinear)
    return ctypes.pointer(linear.c_layer)


def _c_decoder(weights: StackWeights, c_layers: "ctypes.Array[CLayer]") -> CDecoder:
    qkv, o, _, down = (linear.contents for linear in map(_c_linear, _linears(weights.layers[0])))
    num_heads = o.in_features // weights.head_dim
    num_qkv_heads = qkv.out_features // weights.head_dim
    heads = CHeadShape(num_heads, (num_qkv_heads - num_heads) // 2, weights.head_dim)
    return CDecoder(
        embed_tokens=address(weights.embed_tokens, torch.bfloat16),
        cos=address(weights.cos, torch.float32),
        sin=address(weights.sin, torch.float32),
        vocab_size=len(weights.embed_tokens),
        max_positions=len(weights.cos),
        layers=c_layers,
        num_layers=len(c_layers),
        final_norm=address(weights.final_norm, torch.bfloat16),
        heads=heads,
        hidden_size=o.out_features,
        intermediate_size=down.in_features,
        rms_norm_eps=weights.rms_norm_eps,
    )
