// Attention of query rows to one chunk of KV, on the micro kernel of `tile.h`.
//
// Both products of attention have the packed form of a chunk as their right factor:
//
//   scores = q * transpose(K)    keys, pairs of dimensions    [head_dim / 2][token]
//   out += weights * V           values, pairs of tokens      [token / 2][head_dim]
//
// Packing keys is a transposition of words, packing values a zip of neighbouring tokens. Tokens
// after the last visible one are packed as zeros, since their slots may hold anything and
// 0 * NaN is NaN.
//
// A row sees its chunks one after the other, and its softmax is kept up to date as it goes: when a
// larger score appears, what was summed so far is scaled down (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; with the product in Dao et al., "FlashAttention",
// 2022).
//
// Invariant: what a chunk adds to a row depends on the row's query, its state and the tokens it
// sees. Tokens that only other rows see have weight zero and change no number, if their values are
// finite: within a prefill, an infinite value reaches earlier tokens of its own chunk. Rows of
// other requests are just other rows.

#include "attention_chunk.h"

#include <algorithm>
#include <limits>

#include "tile.h"

namespace chatserve {
namespace {

constexpr int kStages = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 2;  // log2 of the lanes
constexpr float kLowest = -std::numeric_limits<float>::infinity();

typedef uint16_t Numbers __attribute__((vector_size(4 * kLanes)));  // as long as Words

alignas(64) const bf16 kZeros[kMaxHeadDim] = {};

int64_t round_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// Return a[0] b[0] a[1] b[1] ... from the lower halves of two vectors.
template <class Vector, int... I>
Vector zip_lower(Vector a, Vector b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  return __builtin_shufflevector(a, b, (I % 2 * n + I / 2)...);
}

// The same from the upper halves.
template <class Vector, int... I>
Vector zip_upper(Vector a, Vector b, std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  return __builtin_shufflevector(a, b, (I % 2 * n + n / 2 + I / 2)...);
}

using WordLanes = std::make_integer_sequence<int, kLanes>;
using NumberLanes = std::make_integer_sequence<int, 2 * kLanes>;

// Turn columns into rows. Zipping the first half of the rows with the second moves the highest bit
// of a row's index to the lowest bit of a column's; after as many stages as there are bits, both
// have changed places.
void transpose(Words (&rows)[kLanes]) {
  for (int stage = 0; stage < kStages; ++stage) {
    Words zipped[kLanes];
    for (int i = 0; i < kLanes / 2; ++i) {
      zipped[2 * i] = zip_lower(rows[i], rows[i + kLanes / 2], WordLanes{});
      zipped[2 * i + 1] = zip_upper(rows[i], rows[i + kLanes / 2], WordLanes{});
    }
    std::copy(zipped, zipped + kLanes, rows);
  }
}

// Call `body(i, count)` for pieces of `width` numbers that cover [0, length). Instead of a short
// piece at the end comes a whole one that overlaps the piece before it, if there is room for one.
template <class Body>
void for_pieces(int64_t length, int64_t width, const Body& body) {
  if (length < width) return body(0, length);
  for (int64_t i = 0; i < length; i += width) body(std::min(i, length - width), width);
}

template <class Vector>
Vector load_piece(const bf16* from, int64_t num_bytes) {
  if (num_bytes == sizeof(Vector)) return load<Vector>(from);
  Vector vector{};
  std::memcpy(&vector, from, num_bytes);
  return vector;
}

// Pack kLanes tokens into kLanes columns of the keys.
void pack_keys(const bf16* const* tokens, int64_t head_dim, uint32_t* to, Fetcher& next) {
  for_pieces(head_dim / 2, kLanes, [&](int64_t pair, int64_t count) {
    Words rows[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      rows[i] = load_piece<Words>(tokens[i] + 2 * pair, 4 * count);
      if (i % 2 == 0) next.step();
    }
    transpose(rows);
    for (int i = 0; i < count; ++i) store(to + (pair + i) * kChunkTokens, rows[i]);
  });
}

// Pack two tokens into one row of the values.
void pack_values(const bf16* const* tokens, int64_t head_dim, uint32_t* to, Fetcher& next) {
  for_pieces(head_dim, 2 * kLanes, [&](int64_t d, int64_t count) {
    next.step();
    const auto first = load_piece<Numbers>(tokens[0] + d, 2 * count);
    const auto second = load_piece<Numbers>(tokens[1] + d, 2 * count);
    store(to + d, zip_lower(first, second, NumberLanes{}));
    store(to + d + kLanes, zip_upper(first, second, NumberLanes{}));
  });
}

template <int Distance, int... I>
Floats rotate(Floats values, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(values, values, ((I + Distance) % kLanes)...);
}

// Combine all lanes, as a tree of halves.
template <int Distance = kLanes / 2, class Combine>
float fold(Floats values, const Combine& combine) {
  values = combine(values, rotate<Distance>(values, WordLanes{}));
  if constexpr (Distance > 1) {
    return fold<Distance / 2>(values, combine);
  } else {
    return values[0];
  }
}

Floats larger(Floats a, Floats b) { return a > b ? a : b; }
Floats sum(Floats a, Floats b) { return a + b; }

float exp_of(float x) { return exp(Floats{} + x)[0]; }

// Return scores i to i + kLanes - 1, scaled, or `otherwise` where the row does not see the token.
Floats visible(Floats values, int64_t i, int64_t num_visible, float otherwise) {
  if (i + kLanes <= num_visible) return values;
  Words lanes;
  for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = lane;
  return lanes + static_cast<uint32_t>(i) < Words{} + static_cast<uint32_t>(num_visible)
             ? values
             : Floats{} + otherwise;
}

// Scale down what was summed, so that it is relative to a larger score.
void rescale(float* state, float largest, int64_t head_dim) {
  const float factor = exp_of(state[0] - largest);
  state[0] = largest;
  state[1] *= factor;
  for (int64_t d = 0; d < head_dim; d += kLanes) {
    store(state + kStateOut + d, load<Floats>(state + kStateOut + d) * factor);
  }
}

struct Scores {
  float* values;  // of `num_columns` tokens
  int64_t num_columns;
  int64_t num_visible;
};

// Turn a row's scores into weights, which are relative to the largest score of its state from then
// on. The weights are rounded before they are summed: then they sum to one after the division.
void weigh(const Scores& scores, float scale, int64_t head_dim, float* state, bf16* weights) {
  Floats top = Floats{} + kLowest;
  for (int64_t i = 0; i < scores.num_columns; i += kLanes) {
    const Floats values = load<Floats>(scores.values + i) * scale;
    store(scores.values + i, values);
    top = larger(visible(values, i, scores.num_visible, kLowest), top);
  }
  const float largest = fold(top, larger);
  if (!(largest <= state[0])) rescale(state, largest, head_dim);
  Floats total{};
  for (int64_t i = 0; i < scores.num_columns; i += kLanes) {
    const Floats e = exp(load<Floats>(scores.values + i) - state[0]);
    const HalfWords rounded = narrow(visible(e, i, scores.num_visible, 0));
    store(weights + i, rounded);
    total += widen(rounded);
  }
  state[1] += fold(total, sum);
}

}  // namespace

int64_t state_size(int64_t head_dim) {
  return round_up(kStateOut + round_up(head_dim, kTileColumns), 16);
}

void clear_state(float* state, int64_t head_dim) {
  std::fill_n(state, state_size(head_dim), 0.0f);
  state[0] = kLowest;
}

void merge_state(float* state, const float* later, int64_t head_dim) {
  const float largest = state[0] < later[0] ? later[0] : state[0];
  const float before = exp_of(state[0] - largest), after = exp_of(later[0] - largest);
  state[0] = largest;
  state[1] = state[1] * before + later[1] * after;
  for (int64_t d = kStateOut; d < kStateOut + head_dim; d += kLanes) {
    store(state + d, load<Floats>(state + d) * before + load<Floats>(later + d) * after);
  }
}

void write_state(const float* state, int64_t head_dim, bf16* out) {
  for (int64_t d = 0; d < head_dim; d += kLanes) {
    store_bf16(out + d, load<Floats>(state + kStateOut + d) / state[1], head_dim - d);
  }
}

void ChunkTile::pack(const ChunkRows& chunk, int64_t head_dim, Fetcher& next) {
  num_tokens_ = chunk.num_tokens;
  head_dim_ = head_dim;
  const int64_t width = round_up(head_dim, kTileColumns);
  uint32_t* const keys = keys_.reserve(head_dim / 2 * kChunkTokens);
  uint32_t* const values = values_.reserve(kChunkTokens / 2 * width);
  const bf16* tokens[kChunkTokens];
  std::fill(std::copy_n(chunk.keys, num_tokens_, tokens), tokens + kChunkTokens, kZeros);
  for (int64_t token = 0; token < round_up(num_tokens_, kTileColumns); token += kLanes) {
    pack_keys(tokens + token, head_dim, keys + token, next);
  }
  std::copy_n(chunk.values, num_tokens_, tokens);
  for (int64_t token = 0; token < num_tokens_; token += 2) {
    pack_values(tokens + token, head_dim, values + token / 2 * width, next);
  }
}

void ChunkTile::attend(const QueryRows& rows, float scale, Fetcher& next) {
  const int64_t num_blocks = (rows.count + kTileRows - 1) / kTileRows;
  for (int64_t block = 0; block < num_blocks; ++block) {
    const int64_t first = rows.count * block / num_blocks;
    const int64_t end = rows.count * (block + 1) / num_blocks;
    attend_block({rows.q + first * head_dim_, rows.states + first, rows.num_visible + first,
                  end - first},
                 scale, next);
  }
}

void ChunkTile::attend_block(const QueryRows& rows, float scale, Fetcher& next) {
  const int64_t width = round_up(head_dim_, kTileColumns);
  const int64_t num_columns = round_up(num_tokens_, kTileColumns);
  alignas(64) float scores[kTileRows][kChunkTokens];
  alignas(64) bf16 weights[kTileRows][kChunkTokens];
  float* sums[kTileRows];
  for (int64_t row = 0; row < rows.count; ++row) {
    sums[row] = scores[row];
    std::fill_n(scores[row], num_columns, 0.0f);
  }
  const uint32_t* keys = keys_.data();
  add_product({rows.q, head_dim_, rows.count}, {keys, kChunkTokens, head_dim_ / 2, num_columns},
              sums, next);
  for (int64_t row = 0; row < rows.count; ++row) {
    weigh({scores[row], num_columns, rows.num_visible[row]}, scale, head_dim_, rows.states[row],
          weights[row]);
    sums[row] = rows.states[row] + kStateOut;
  }
  const uint32_t* values = values_.data();
  add_product({weights[0], kChunkTokens, rows.count}, {values, width, (num_tokens_ + 1) / 2, width},
              sums, next);
}

}  // namespace chatserve
