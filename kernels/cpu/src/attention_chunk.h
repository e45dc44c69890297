// Attention of query rows to one chunk of KV; `attention_chunk.cpp` describes the layout.

#pragma once

#include <cstdint>
#include <vector>

#include "simd.h"

namespace chatserve {

// The tokens of a chunk: positions 64 c to 64 c + 63 of a request, whatever its pages are.
constexpr int64_t kChunkTokens = 64;

constexpr int64_t kMaxHeadDim = 256;

// Memory that is kept and grows with what is asked for. Its contents are lost when it does.
template <class Number>
class Buffer {
 public:
  Number* reserve(int64_t count) {
    const size_t num_lines = (count * sizeof(Number) + sizeof(Line) - 1) / sizeof(Line);
    if (lines_.size() < num_lines) lines_ = std::vector<Line>(num_lines);
    return data();
  }

  Number* data() { return reinterpret_cast<Number*>(lines_.data()); }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };

  std::vector<Line> lines_;
};

// The softmax of a query row over the tokens seen so far, in floats:
//
//   state[0]           the largest score
//   state[1]           the sum of e^(score - largest)
//   state[kStateOut]   the sum of values weighted so, [head_dim], filled up
//
constexpr int64_t kStateOut = 16;

// Return the floats of a state, a multiple of a cache line.
int64_t state_size(int64_t head_dim);

// Make it the state of a row that has seen nothing.
void clear_state(float* state, int64_t head_dim);

// Add what another state has seen; which is added to which is part of the order of summation.
void merge_state(float* state, const float* later, int64_t head_dim);

// Write what a row that has seen something attends to, [head_dim].
void write_state(const float* state, int64_t head_dim, bf16* out);

// Query rows of one KV head, each with its state and the number of the chunk's tokens it sees, from
// the first on and at least one.
struct QueryRows {
  const bf16* q;  // [count, head_dim]
  float* const* states;
  const int64_t* num_visible;
  int64_t count;
};

// Where the tokens of a chunk lie, for one KV head.
struct ChunkRows {
  const bf16* keys[kChunkTokens];    // each [head_dim]
  const bf16* values[kChunkTokens];  // each [head_dim]
  int64_t num_tokens;                // what is read; the rest need not be there
};

// Fetches a chunk from memory while another is worked on: a line now and then, since a processor
// keeps few requests open, and one more than those makes it wait.
class Fetcher {
 public:
  Fetcher(const ChunkRows& chunk, int64_t head_dim) : chunk_(chunk), head_dim_(head_dim) {}

  // Fetch the next line into the second cache, if one is left.
  void step() {
    if (row_ == 2 * chunk_.num_tokens) return;
    const bf16* const row = row_ < chunk_.num_tokens ? chunk_.keys[row_]
                                                     : chunk_.values[row_ - chunk_.num_tokens];
    __builtin_prefetch(row + offset_, 0, 2);
    offset_ += kLine;
    if (offset_ < head_dim_) return;
    offset_ = 0;
    ++row_;
  }

  void operator()(const uint32_t*) { step(); }

 private:
  static constexpr int64_t kLine = 64 / sizeof(bf16);

  const ChunkRows& chunk_;
  const int64_t head_dim_;
  int64_t row_ = 0;  // keys first
  int64_t offset_ = 0;
};

// One chunk of one KV head, in the order in which the micro kernel reads it.
//
// Owns its memory, which is kept from chunk to chunk. Used from the thread that made it.
class ChunkTile {
 public:
  // Take in a chunk.
  void pack(const ChunkRows& chunk, int64_t head_dim, Fetcher& next);

  // Let rows see the chunk, none of them more of it than there is.
  void attend(const QueryRows& rows, float scale, Fetcher& next);

 private:
  void attend_block(const QueryRows& rows, float scale, Fetcher& next);

  int64_t num_tokens_ = 0;
  int64_t head_dim_ = 0;
  Buffer<uint32_t> keys_;    // [head_dim / 2, kChunkTokens], pairs of dimensions
  Buffer<uint32_t> values_;  // [kChunkTokens / 2, head_dim], pairs of tokens
};

}  // namespace chatserve
