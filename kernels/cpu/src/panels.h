// What the linear layers of all weight formats share: panels, sums, and the loop over them.
//
// A panel is as many output columns as two vectors have lanes. A task is a panel for a chunk of
// rows: it sums into memory that fits the caches, then adds the bias and writes the result.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "linear.h"
#include "pool.h"
#include "simd.h"
#include "tile.h"

namespace chatserve {

constexpr int kPanelColumns = kTileColumns;
constexpr int64_t kChunkRows = 96;

using Sums = float[kChunkRows][kPanelColumns];

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t num_panels(int64_t n) { return ceil_div(n, kPanelColumns); }

// Rows that are summed together, at most kChunkRows.
struct Chunk {
  int64_t first;
  int64_t count;
};

inline void put(Floats values, int64_t count, bf16* to) { store_bf16(to, values, count); }

inline void put(Floats values, int64_t count, float* to) {
  std::memcpy(to, &values, std::min<int64_t>(count, kLanes) * sizeof(float));
}

// Write the sums of a panel for a chunk of rows; `out` is that of the first row.
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

// Write the whole result. `sum(panel, chunk, sums)` adds to the sums, which are zero.
template <class Out, class Sum>
void for_panels(const Linear& layer, int64_t num_rows, Out* out, const Sum& sum) {
  const int64_t panels = num_panels(layer.out_features);
  Pool::instance().run(ceil_div(num_rows, kChunkRows) * panels, [&](int64_t i) {
    const int64_t panel = i % panels;
    const int64_t first = i / panels * kChunkRows;
    const Chunk chunk{first, std::min(kChunkRows, num_rows - first)};
    alignas(64) Sums sums;
    std::memset(sums, 0, chunk.count * sizeof(*sums));
    sum(panel, chunk, sums);
    write_panel(layer, panel, chunk.count, sums, out + first * layer.out_features);
  });
}

}  // namespace chatserve
