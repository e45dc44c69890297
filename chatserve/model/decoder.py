"""The decoder: one forward pass over all tokens of a step.

Owns the module tree, and with it the names under which weights are loaded. Does not know where
weights come from, what a request is, or how the next token is chosen.

Two things differ from a textbook model. Rows of several requests lie one after another, and only
attention can tell them apart; and the residual stream is carried beside the hidden state, so that
each addition is fused with the norm that follows it.
"""

import torch
from torch import Tensor, nn

from chatserve.kernels.ops import AttentionBatch, KVPages, Ops
from chatserve.model.config import ModelConfig
from chatserve.model.layers import MLP, Attention, Embedding, Linear, RMSNorm, StepInputs


class DecoderLayer(nn.Module):
    """One transformer block.

    Owns: its norms, attention and MLP.
    Used from: the engine thread.
    """

    def __init__(self, config: ModelConfig, ops: Ops):
        super().__init__()
        self.attention_norm = RMSNorm(config.hidden_size, config.rms_norm_eps, ops)
        self.attention = Attention(config, ops)
        self.mlp_norm = RMSNorm(config.hidden_size, config.rms_norm_eps, ops)
        self.mlp = MLP(config, ops)

    def forward(
        self,
        hidden: Tensor,  # [num_tokens, hidden_size]; the output of the block before
        residual: Tensor | None,  # [num_tokens, hidden_size]; the sum of all outputs before that
        step: StepInputs,
        k_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
        v_pages: Tensor,  # [num_pages, page_size, num_kv_heads, head_dim]
    ) -> tuple[Tensor, Tensor]:
        hidden, residual = self.attention_norm(hidden, residual)
        hidden = self.attention(hidden, step, k_pages, v_pages)
        hidden, residual = self.mlp_norm(hidden, residual)
        return self.mlp(hidden), residual


class Decoder(nn.Module):
    """A decoder of the llama family over a paged KV pool.

    Owns: all weights and the rotary tables.
    Used from: the engine thread, under `torch.inference_mode`.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, config: ModelConfig, ops: Ops):
        super().__init__()
        self.config = config
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, ops) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, ops)
        self.lm_head = Linear(config.hidden_size, config.vocab_size, ops)
        if config.tie_word_embeddings:
            self.lm_head.weight = None  # not loaded; it is the embedding's
        cos, sin = _rotary_tables(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def pack_weights(self) -> None:
        """Hand the weight of every matrix product to the ops, one after another; once, when loaded.

        The output head gives float32: its products are the logits, and nothing is rounded twice.
        """
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.embed_tokens.weight
        self.lm_head.pack(torch.float32)
        for layer in self.layers:
            for module in layer.modules():
                if isinstance(module, Linear):
                    module.pack()

    def forward(
        self,
        input_ids: Tensor,  # [num_tokens], int64
        positions: Tensor,  # [num_tokens], int64; each token's index in its own sequence
        attention: AttentionBatch,
        kv: KVPages,
    ) -> Tensor:  # [num_tokens, hidden_size]
        """Write the KV of all tokens into the pool and return their final hidden states."""
        step = StepInputs(self.cos[positions], self.sin[positions], attention)
        hidden = self.embed_tokens(input_ids)
        residual = None
        for layer, k_pages, v_pages in zip(self.layers, kv.k, kv.v, strict=True):
            hidden, residual = layer(hidden, residual, step, k_pages, v_pages)
        final: Tensor = self.norm(hidden, residual)[0]
        return final

    def compute_logits(self, hidden: Tensor) -> Tensor:
        """Return float32 logits [n, vocab_size] for hidden states [n, hidden_size]."""
        logits: Tensor = self.lm_head(hidden)
        return logits


def _rotary_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """Return cos and sin, each [max_position_embeddings, head_dim // 2], float32 on the CPU.

    Pair i of a head turns by position * theta^(-2i / head_dim), divided by its factor where the
    model was trained with scaled frequencies. The device is named so that a decoder built on the
    meta device still gets real tables.
    """
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device="cpu")
    frequencies = 1.0 / config.rope_theta ** (pairs / config.head_dim)
    if config.rope_factors:
        frequencies /= torch.tensor(config.rope_factors, dtype=torch.float32, device="cpu")
    positions = torch.arange(config.max_position_embeddings, dtype=torch.float32, device="cpu")
    angles = torch.outer(positions, frequencies)
    return angles.cos(), angles.sin()
