// The micro kernel of every matrix product: up to kTileRows rows times the columns of two vectors.
//
// The right factor lies in pairs: word p of a column holds its numbers 2p and 2p + 1, and the words
// of neighbouring columns lie side by side. So one load feeds one instruction that multiplies both
// numbers of a pair and adds the products.
//
//   pair 0:  w[0][0] w[1][0]   w[0][1] w[1][1]   ...   w[0][n-1] w[1][n-1]
//   pair 1:  w[2][0] w[3][0]   w[2][1] w[3][1]   ...
//
// Invariant: a sum grows by one pair after the other in ascending order, whatever the number of
// rows and the row's place among them.

#pragma once

#include <algorithm>
#include <utility>

#include "simd.h"

namespace chatserve {

constexpr int kTileColumns = 2 * kLanes;
constexpr int kTileRows = kNumRegisters == 32 ? 12 : 6;

// Rows of the left factor, [count, 2 * num_pairs], at most kTileRows.
struct LeftRows {
  const bf16* x;
  int64_t stride;
  int64_t count;
};

// The right factor; its columns are filled up to a multiple of kTileColumns.
struct RightPairs {
  const uint32_t* words;
  int64_t stride;  // words from one pair to the next
  int64_t num_pairs;
  int64_t num_columns;
};

// Add the products of one panel of columns to `sums`, which has a pointer for each row. Between two
// pairs `ahead` is called with the place that is read next, to fetch what will be wanted later.
template <int NumRows, class Ahead>
void add_panel(const LeftRows& rows, const RightPairs& w, int64_t column, float* const* sums,
               Ahead& ahead) {
  Floats tile[NumRows][2];
  for (int r = 0; r < NumRows; ++r) {
    tile[r][0] = load<Floats>(sums[r] + column);
    tile[r][1] = load<Floats>(sums[r] + column + kLanes);
  }
  for (int64_t p = 0; p < w.num_pairs; ++p) {
    const uint32_t* const pair = w.words + p * w.stride + column;
    ahead(pair);
    for (int i = 0; i < kNumParts; ++i) {
      const Factors left = part(load<Words>(pair), i);
      const Factors right = part(load<Words>(pair + kLanes), i);
      for (int r = 0; r < NumRows; ++r) {
        const Factors row = part(Words{} + load<uint32_t>(rows.x + r * rows.stride + 2 * p), i);
        tile[r][0] = add_products(tile[r][0], row, left);
        tile[r][1] = add_products(tile[r][1], row, right);
      }
    }
  }
  for (int r = 0; r < NumRows; ++r) {
    store(sums[r] + column, tile[r][0]);
    store(sums[r] + column + kLanes, tile[r][1]);
  }
}

template <class Ahead>
using AddPanel = void (*)(const LeftRows&, const RightPairs&, int64_t, float* const*, Ahead&);

template <class Ahead, int... I>
AddPanel<Ahead> add_panel_of(int64_t num_rows, std::integer_sequence<int, I...>) {
  static constexpr AddPanel<Ahead> kByRows[] = {add_panel<I + 1, Ahead>...};
  return kByRows[num_rows - 1];
}

// Add x * w to the sums of 1 to kTileRows rows.
template <class Ahead>
void add_product(const LeftRows& rows, const RightPairs& w, float* const* sums, Ahead& ahead) {
  const auto add = add_panel_of<Ahead>(rows.count, std::make_integer_sequence<int, kTileRows>{});
  for (int64_t column = 0; column < w.num_columns; column += kTileColumns) {
    add(rows, w, column, sums, ahead);
  }
}

}  // namespace chatserve
