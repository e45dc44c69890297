"""How long a step takes: bytes over bandwidth plus operations over throughput.

Owns what one token of a model costs and the prediction made from it. Knows no pool, no setting and
no torch; the speeds are handed in, measured or given.

The idea is the roofline (Williams, Waterman and Patterson, "Roofline: an insightful visual
performance model for multicore architectures", 2009): a computation is bound by the bytes it moves
or by the operations it does. A decode step reads every weight once, whatever the batch, and the KV
of each of its requests; so up to some batch size a further request is nearly free.

Two things are taken from less than the whole truth. The roofline lets reading and computing
overlap and takes the longer of the two; here they are added, which is at most twice as much and
what a model made of separate operations shows on a CPU. And a step has costs that are neither
(Python, launches, sampling), which are left out: what is predicted is what the hardware asks for.
"""

from dataclasses import dataclass
from typing import Self

from chatserve.model.config import ModelConfig

BYTES_PER_VALUE = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """How fast weights and KV are read (10^9 bytes a second), and multiplied (10^9 operations).

    KV has a figure of its own: attention finds it page by page, and backends differ in how close
    to the memory's speed that comes.
    """

    bandwidth_gb_per_s: float
    kv_bandwidth_gb_per_s: float
    throughput_gflops: float


@dataclass(frozen=True, slots=True)
class ModelCost:
    """What a model in one dtype occupies and asks for.

    `step_read_bytes` are the weights that a decode step reads: all but an embedding that is not the
    output head as well. They take `bits_per_weight` on average; activations and KV are of the dtype
    whatever the weights are. Operations count a multiplication and an addition as two. Those of
    attention are for each pair of a query token and a token it looks at.
    """

    dtype: str
    context: int
    weight_bytes: int
    step_read_bytes: int
    bits_per_weight: float
    kv_bytes_per_token: int
    decode_flops_per_token: int
    prefill_flops_per_token: int
    attention_flops_per_pair: int

    @classmethod
    def of(
        cls,
        config: ModelConfig,
        dtype: str,
        step_read_bytes: int | None = None,
        *,
        has_own_head: bool | None = None,
    ) -> Self:
        """Return the cost of a model.

        Where no bytes are given, all weights are of the dtype. The output head is a weight beside
        the embedding as the configuration says, unless `has_own_head` says otherwise.
        """
        size = BYTES_PER_VALUE[dtype]
        matrices = config.num_layers * _layer_matrix_values(config)
        head = config.vocab_size * config.hidden_size
        read = matrices + head + _vector_values(config)
        if step_read_bytes is None:
            step_read_bytes = size * read
        is_looked_up_only = not config.tie_word_embeddings if has_own_head is None else has_own_head
        return cls(
            dtype=dtype,
            context=config.max_position_embeddings,
            weight_bytes=step_read_bytes + is_looked_up_only * size * head,
            step_read_bytes=step_read_bytes,
            bits_per_weight=8 * step_read_bytes / read,
            kv_bytes_per_token=config.kv_bytes_per_token(size),
            decode_flops_per_token=2 * (matrices + head),
            prefill_flops_per_token=2 * matrices,
            attention_flops_per_pair=4 * config.num_layers * config.num_heads * config.head_dim,
        )


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Predicts steps in which every request has `context` tokens behind it."""

    cost: ModelCost
    speed: MachineSpeed
    context: int

    def read_ms(self, num_seqs: int) -> float:
        """Return the time to read the weights once and every request's KV."""
        kv_bytes = num_seqs * self.context * self.cost.kv_bytes_per_token
        weights_ms = self.cost.step_read_bytes / self.speed.bandwidth_gb_per_s / 1e6
        return weights_ms + kv_bytes / self.speed.kv_bandwidth_gb_per_s / 1e6

    def compute_ms(self, num_seqs: int) -> float:
        """Return the time of the arithmetic for one token of each request."""
        return num_seqs * self._compute_ms(self.cost.decode_flops_per_token)

    def decode_ms(self, num_seqs: int) -> float:
        """Return the time of a step that decodes `num_seqs` requests."""
        return self.read_ms(num_seqs) + self.compute_ms(num_seqs)

    def max_seqs_within(self, step_ms: float) -> int:
        """Return the largest batch whose decode step takes no longer; 0 if not even one does."""
        fixed_ms = self.read_ms(0)
        return max(0, int((step_ms - fixed_ms) // (self.decode_ms(1) - fixed_ms)))

    def prefill_token_ms(self) -> float:
        """Return what one more token of a prefill chunk adds to a step, at the end of a prompt."""
        return self._compute_ms(self.cost.prefill_flops_per_token)

    def _compute_ms(self, flops_per_token: int) -> float:
        flops = flops_per_token + self.context * self.cost.attention_flops_per_pair
        return flops / self.speed.throughput_gflops / 1e6


def _layer_matrix_values(config: ModelConfig) -> int:
    """Return the values in the matrices of one transformer block."""
    query_width = config.num_heads * config.head_dim
    kv_width = config.num_kv_heads * config.head_dim
    attention = config.hidden_size * (2 * query_width + 2 * kv_width)
    return attention + 3 * config.hidden_size * config.intermediate_size


def _vector_values(config: ModelConfig) -> int:
    """Return the values in norms and biases, which are read but hardly computed with."""
    norms = (2 * config.num_layers + 1) * config.hidden_size
    qkv_width = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim
    biases = config.qkv_bias * qkv_width + config.o_bias * config.hidden_size
    return norms + config.num_layers * biases
