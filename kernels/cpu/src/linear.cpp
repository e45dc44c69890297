// Linear layers over bf16 weights: out = x * transpose(weight) + bias, summed in float.
//
// Weights are packed once, into panels of as many output columns as two vectors have lanes, 32 with
// AVX-512. Within a panel the columns of one pair of k lie side by side, so that one load feeds one
// instruction that multiplies and adds both.
//
//   panel 0, pair 0:  w[0][0] w[0][1]   w[1][0] w[1][1]   ...   w[31][0] w[31][1]
//   panel 0, pair 1:  w[0][2] w[0][3]   w[1][2] w[1][3]   ...   w[31][2] w[31][3]
//   ...
//   panel 1, pair 0:  w[32][0] w[32][1]   ...
//
// Columns after the last one, and the second half of an odd last pair, are zero.
//
// A tile of the result, up to kTileRows rows of a panel, stays in registers while k runs. Around
// it, a block of kBlockPairs pairs of a panel stays in cache while the rows of a chunk pass over
// it, and a chunk of kChunkRows rows stays there while a thread goes from panel to panel.
//
// Invariant: an output element is one running sum over k in ascending order, whatever the number of
// rows, the row's place in its tile, and the threads. So a row alone and the same row in a batch
// give the same bits. Splitting k over threads or lanes would be another order; it is not done.

#include "linear.h"

#include <algorithm>
#include <utility>

#include "pool.h"

namespace chatserve {
namespace {

constexpr int kPanelColumns = 2 * kLanes;
constexpr int kTileRows = kNumRegisters == 32 ? 12 : 6;
constexpr int64_t kChunkRows = 96;
constexpr int64_t kBlockPairs = 512;

// A thread reads its panels as one stream, and the processor fetches ahead of it by itself while
// little is computed in between. Higher tiles move on too slowly for that and ask for themselves.
constexpr int kMinPrefetchRows = 5;
constexpr int64_t kPrefetchPairs = 48;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t num_panels(int64_t n) { return ceil_div(n, kPanelColumns); }
int64_t num_pairs(int64_t k) { return ceil_div(k, 2); }

// Rows of x that are summed together, at most kChunkRows.
struct Rows {
  const bf16* x;
  int64_t stride;
  int64_t count;
};

using Sums = float[kChunkRows][kPanelColumns];

// Fetch one pair of a panel into the second cache. Any address will do.
void prefetch(const uint32_t* pair) {
  for (int i = 0; i < kPanelColumns; i += 16) __builtin_prefetch(pair + i, 0, 2);
}

// Add the products of `length` pairs of a panel to the sums of NumRows rows.
template <int NumRows>
void add_tile(const uint32_t* w, const bf16* x, int64_t x_stride, int64_t length,
              float (*sums)[kPanelColumns]) {
  Floats tile[NumRows][2];
  for (int r = 0; r < NumRows; ++r) {
    tile[r][0] = load<Floats>(sums[r]);
    tile[r][1] = load<Floats>(sums[r] + kLanes);
  }
  for (int64_t p = 0; p < length; ++p) {
    const uint32_t* const pair = w + p * kPanelColumns;
    if (NumRows >= kMinPrefetchRows) prefetch(pair + kPrefetchPairs * kPanelColumns);
    for (int i = 0; i < kNumParts; ++i) {
      const Factors left = part(load<Words>(pair), i);
      const Factors right = part(load<Words>(pair + kLanes), i);
      for (int r = 0; r < NumRows; ++r) {
        const Factors row = part(Words{} + load<uint32_t>(x + r * x_stride + 2 * p), i);
        tile[r][0] = add_products(tile[r][0], row, left);
        tile[r][1] = add_products(tile[r][1], row, right);
      }
    }
  }
  for (int r = 0; r < NumRows; ++r) {
    store(sums[r], tile[r][0]);
    store(sums[r] + kLanes, tile[r][1]);
  }
}

using AddTile = void (*)(const uint32_t*, const bf16*, int64_t, int64_t, float (*)[kPanelColumns]);

template <int... I>
AddTile add_tile_of(int64_t num_rows, std::integer_sequence<int, I...>) {
  static constexpr AddTile kByRows[] = {add_tile<I + 1>...};
  return kByRows[num_rows - 1];
}

// Add the products of `length` pairs of a panel to the sums of all rows, in tiles of equal height.
void add_block(const uint32_t* w, const Rows& rows, int64_t length, Sums& sums) {
  const int64_t height = ceil_div(rows.count, ceil_div(rows.count, kTileRows));
  for (int64_t row = 0; row < rows.count; row += height) {
    const int64_t count = std::min(height, rows.count - row);
    const AddTile add = add_tile_of(count, std::make_integer_sequence<int, kTileRows>{});
    add(w, rows.x + row * rows.stride, rows.stride, length, sums + row);
  }
}

// Add the products of an odd last k, which has no neighbour in x to form a pair with.
void add_last(const uint32_t* w, const Rows& rows, int64_t k, Sums& sums) {
  bf16 pairs[kChunkRows][2];
  for (int64_t row = 0; row < rows.count; ++row) {
    pairs[row][0] = rows.x[row * rows.stride + k - 1];
    pairs[row][1] = 0;
  }
  add_block(w, {pairs[0], 2, rows.count}, 1, sums);
}

void sum_panel(const Linear& layer, int64_t panel, const Rows& rows, Sums& sums) {
  const int64_t k = layer.in_features;
  const int64_t num_whole = k / 2;
  const uint32_t* w = layer.packed + panel * num_pairs(k) * kPanelColumns;
  std::memset(sums, 0, rows.count * sizeof(*sums));
  for (int64_t p = 0; p < num_whole; p += kBlockPairs) {
    const Rows from_p{rows.x + 2 * p, rows.stride, rows.count};
    add_block(w + p * kPanelColumns, from_p, std::min(kBlockPairs, num_whole - p), sums);
  }
  if (k % 2 != 0) add_last(w + num_whole * kPanelColumns, rows, k, sums);
}

void put(Floats values, int64_t count, bf16* to) { store_bf16(to, values, count); }

void put(Floats values, int64_t count, float* to) {
  std::memcpy(to, &values, std::min<int64_t>(count, kLanes) * sizeof(float));
}

template <class Out>
void write_panel(const Linear& layer, int64_t panel, int64_t num_rows, const Sums& sums, Out* out) {
  for (int half = 0; half < 2; ++half) {
    const int64_t column = panel * kPanelColumns + half * kLanes;
    const int64_t count = layer.out_features - column;
    if (count <= 0) return;
    const Floats bias = layer.bias ? load_bf16(layer.bias + column, count) : Floats{};
    for (int64_t row = 0; row < num_rows; ++row) {
      const Floats values = load<Floats>(sums[row] + half * kLanes) + bias;
      put(values, count, out + row * layer.out_features + column);
    }
  }
}

uint32_t pair_of(const bf16* row, int64_t k, int64_t pair) {
  const uint32_t lower = row[2 * pair];
  const uint32_t upper = 2 * pair + 1 < k ? row[2 * pair + 1] : 0;
  return lower | upper << 16;
}

}  // namespace

int64_t packed_bytes(int64_t n, int64_t k) {
  return num_panels(n) * num_pairs(k) * kPanelColumns * static_cast<int64_t>(sizeof(uint32_t));
}

void pack(const bf16* weight, int64_t n, int64_t k, uint32_t* packed) {
  Pool::instance().run(num_panels(n), [&](int64_t panel) {
    uint32_t* to = packed + panel * num_pairs(k) * kPanelColumns;
    for (int64_t pair = 0; pair < num_pairs(k); ++pair) {
      for (int64_t column = 0; column < kPanelColumns; ++column) {
        const int64_t row = panel * kPanelColumns + column;
        *to++ = row < n ? pair_of(weight + row * k, k, pair) : 0;
      }
    }
  });
}

template <class Out>
void linear(const Linear& layer, const bf16* x, int64_t num_rows, Out* out) {
  const int64_t panels = num_panels(layer.out_features);
  const int64_t chunks = ceil_div(num_rows, kChunkRows);
  Pool::instance().run(chunks * panels, [&](int64_t i) {
    const int64_t first = i / panels * kChunkRows;
    const int64_t panel = i % panels;
    const int64_t k = layer.in_features;
    const Rows rows{x + first * k, k, std::min(kChunkRows, num_rows - first)};
    alignas(64) Sums sums;
    sum_panel(layer, panel, rows, sums);
    write_panel(layer, panel, rows.count, sums, out + first * layer.out_features);
  });
}

template void linear(const Linear&, const bf16*, int64_t, bf16*);
template void linear(const Linear&, const bf16*, int64_t, float*);

}  // namespace chatserve
