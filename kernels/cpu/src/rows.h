// The ops that work row by row, on bf16 with arithmetic in float.

#pragma once

#include <cstdint>

#include "simd.h"

namespace chatserve {

// Write x / rms(x) * weight, for x [num_rows, width].
void rms_norm(const bf16* x, const bf16* weight, float eps, int64_t num_rows, int64_t width,
              bf16* normed);

// Write sum = x + residual and the norm of that sum, all [num_rows, width].
void add_rms_norm(const bf16* x, const bf16* residual, const bf16* weight, float eps,
                  int64_t num_rows, int64_t width, bf16* normed, bf16* sum);

// Write silu(gate) * up, for gate_up [num_rows, 2 * width] with the gate first.
void silu_and_mul(const bf16* gate_up, int64_t num_rows, int64_t width, bf16* out);

struct HeadShape {
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
};

// One layer's KV; both are [num_slots, num_kv_heads, head_dim].
struct Slots {
  bf16* k;
  bf16* v;
};

// For qkv [num_tokens, num_heads + 2 * num_kv_heads, head_dim]: write the rotated queries to q
// [num_tokens, num_heads, head_dim], the rotated keys and the values to their slots. `cos` and
// `sin` are [num_tokens, head_dim / 2].
void rotary_kv_write(const bf16* qkv, const float* cos, const float* sin,
                     const int64_t* slot_mapping, int64_t num_tokens, const HeadShape& shape,
                     bf16* q, const Slots& slots);

}  // namespace chatserve
