// A decoder for one step, from token ids to final states.
//
// Owns the order of the ops within a layer, and the activations between them. The caller owns
// weights, KV and inputs.

#pragma once

#include <cstdint>

#include "attention.h"
#include "linear.h"
#include "rows.h"

namespace chatserve {

struct Layer {
  const bf16* attention_norm;  // norms are [hidden_size]
  const Linear* qkv;           // rows of the queries, then of the keys, then of the values
  const Linear* o;
  const bf16* mlp_norm;
  const Linear* gate_up;  // rows of the gate first
  const Linear* down;
};

struct Decoder {
  const bf16* embed_tokens;  // [vocab_size, hidden_size]
  const float* cos;          // [max_positions, head_dim / 2]
  const float* sin;          // [max_positions, head_dim / 2]
  int64_t vocab_size;
  int64_t max_positions;
  const Layer* layers;
  int64_t num_layers;
  const bf16* final_norm;
  HeadShape heads;
  int64_t hidden_size;
  int64_t intermediate_size;
  float rms_norm_eps;
};

// The tokens of a step, and where their KV goes. `k` and `v` are
// [num_layers, num_pages, page_size, num_kv_heads, head_dim].
struct Step {
  const int64_t* input_ids;     // [num_tokens]
  const int64_t* positions;     // [num_tokens]: of each token in its own sequence
  const int64_t* slot_mapping;  // [num_tokens]
  int64_t num_tokens;
  const AttentionBatch* attention;
  bf16* k;
  bf16* v;
  int64_t num_pages;
  int64_t page_size;
  const int64_t* rows;  // [num_rows]: the tokens whose final state is asked for
  int64_t num_rows;
};

// What the time of a step goes into, in the order in which it happens.
enum Stage {
  kEmbedding,
  kNorms,
  kQkv,
  kRotary,
  kAttention,
  kOutput,
  kGateUp,
  kActivation,
  kDown,
  kNumStages
};

// Write the KV of every token, and the final states of `rows` to out [num_rows, hidden_size]. Add
// the seconds that went into each stage to `seconds` [kNumStages]. Return false, and do nothing, if
// a token id or a position lies outside its table.
bool forward(const Decoder& decoder, const Step& step, bf16* out, double* seconds);

}  // namespace chatserve
