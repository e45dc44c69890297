// Linear layers over bf16 weights: out = x * transpose(weight) + bias, summed in float.
//
// Weights are packed once, into panels of as many output columns as two vectors have lanes, 32 with
// AVX-512, each in the order in which the micro kernel reads its right factor.
//
//   panel 0, pair 0:  w[0][0] w[0][1]   w[1][0] w[1][1]   ...   w[31][0] w[31][1]
//   panel 0, pair 1:  w[0][2] w[0][3]   w[1][2] w[1][3]   ...   w[31][2] w[31][3]
//   ...
//   panel 1, pair 0:  w[32][0] w[32][1]   ...
//
// Columns after the last one, and the second half of an odd last pair, are zero.
//
// A tile of the result, up to kTileRows rows of a panel, stays in registers while k runs: `tile.h`.
// Around it, a block of kBlockPairs pairs of a panel stays in cache while the rows of a chunk pass
// over it, and a chunk of kChunkRows rows stays there while a thread goes from panel to panel.
//
// Invariant: an output element is one running sum over k in ascending order, whatever the number of
// rows, the row's place in its tile, and the threads. So a row alone and the same row in a batch
// give the same bits. Splitting k over threads or lanes would be another order; it is not done.

#include "linear.h"

#include <algorithm>

#include "panels.h"
#include "pool.h"
#include "quantized_linear.h"
#include "tile.h"

namespace chatserve {
namespace {

constexpr int64_t kBlockPairs = 512;

// A thread reads its panels as one stream, and the processor fetches ahead of it by itself while
// little is computed in between. Higher tiles move on too slowly for that and ask for themselves.
constexpr int kMinPrefetchRows = 5;
constexpr int64_t kPrefetchPairs = 48;

int64_t num_pairs(int64_t k) { return ceil_div(k, 2); }

// Rows of x that are summed together, at most kChunkRows.
struct Rows {
  const bf16* x;
  int64_t stride;
  int64_t count;
};

// Fetch a pair further on in the panel into the second cache. Any address will do.
struct FetchAhead {
  void operator()(const uint32_t* pair) const {
    pair += kPrefetchPairs * kPanelColumns;
    for (int i = 0; i < kPanelColumns; i += 16) __builtin_prefetch(pair + i, 0, 2);
  }
};

struct FetchNothing {
  void operator()(const uint32_t*) const {}
};

// Add the products of `length` pairs of a panel to the sums of all rows, in tiles of equal height.
void add_block(const uint32_t* w, const Rows& rows, int64_t length, Sums& sums) {
  const RightPairs right{w, kPanelColumns, length, kPanelColumns};
  FetchAhead fetch_ahead;
  FetchNothing fetch_nothing;
  const int64_t height = ceil_div(rows.count, ceil_div(rows.count, kTileRows));
  for (int64_t row = 0; row < rows.count; row += height) {
    const int64_t count = std::min(height, rows.count - row);
    float* tile[kTileRows];
    for (int64_t i = 0; i < count; ++i) tile[i] = sums[row + i];
    const LeftRows left{rows.x + row * rows.stride, rows.stride, count};
    count < kMinPrefetchRows ? add_product(left, right, tile, fetch_nothing)
                             : add_product(left, right, tile, fetch_ahead);
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
  const auto* w = static_cast<const uint32_t*>(layer.packed);
  w += panel * num_pairs(k) * kPanelColumns;
  for (int64_t p = 0; p < num_whole; p += kBlockPairs) {
    const Rows from_p{rows.x + 2 * p, rows.stride, rows.count};
    add_block(w + p * kPanelColumns, from_p, std::min(kBlockPairs, num_whole - p), sums);
  }
  if (k % 2 != 0) add_last(w + num_whole * kPanelColumns, rows, k, sums);
}

uint32_t pair_of(const bf16* row, int64_t k, int64_t pair) {
  const uint32_t lower = row[2 * pair];
  const uint32_t upper = 2 * pair + 1 < k ? row[2 * pair + 1] : 0;
  return lower | upper << 16;
}

}  // namespace

int64_t packed_bytes(int64_t n, int64_t k, WeightFormat format) {
  if (format != WeightFormat::kBf16) return quantized_bytes(n, k, format);
  return num_panels(n) * num_pairs(k) * kPanelColumns * static_cast<int64_t>(sizeof(uint32_t));
}

void pack(const bf16* weight, int64_t n, int64_t k, void* packed) {
  Pool::instance().run(num_panels(n), [&](int64_t panel) {
    uint32_t* to = static_cast<uint32_t*>(packed) + panel * num_pairs(k) * kPanelColumns;
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
  if (layer.format != WeightFormat::kBf16) return quantized_linear(layer, x, num_rows, out);
  for_panels(layer, num_rows, out, [&](int64_t panel, const Chunk& chunk, Sums& sums) {
    const int64_t k = layer.in_features;
    sum_panel(layer, panel, {x + chunk.first * k, k, chunk.count}, sums);
  });
}

template void linear(const Linear&, const bf16*, int64_t, bf16*);
template void linear(const Linear&, const bf16*, int64_t, float*);

}  // namespace chatserve
