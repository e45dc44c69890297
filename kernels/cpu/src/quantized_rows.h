// Activations in 8 bits, for the product with quantised weights.

#pragma once

#include <cstdint>

#include "simd.h"

namespace chatserve {

constexpr int64_t kGroupSize = 32;
constexpr int64_t kGroupQuads = kGroupSize / 4;

// 32 neighbours along k of one row: x = scale * code, with codes from -127 to 127.
struct RowGroup {
  uint32_t codes[kGroupQuads][kNumByteParts];  // quads, split as the multiplication wants them
  float scale;                                 // NaN if one of the numbers is not finite
  int32_t sum;                                 // of the codes
  float scaled_sum;                            // scale * sum
};

// Round each row of x [num_rows, k], k a multiple of 32. Groups lie in the order in which the
// product reads them: within each chunk of rows, [k / 32, chunk rows].
void quantize_rows(const bf16* x, int64_t num_rows, int64_t k, int64_t chunk_rows,
                   RowGroup* groups);

}  // namespace chatserve
