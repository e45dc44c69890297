// Linear layers over packed bf16 weights; `linear.cpp` describes the layout.

#pragma once

#include <cstdint>

#include "simd.h"

namespace chatserve {

// A layer as its caller keeps it; the caller owns the memory.
struct Linear {
  const uint32_t* packed;
  const bf16* bias;      // [out_features], or null
  int64_t out_features;  // called n below
  int64_t in_features;   // called k below
};

// Return the bytes of a packed weight [n, k].
int64_t packed_bytes(int64_t n, int64_t k);

// Pack a contiguous weight [n, k].
void pack(const bf16* weight, int64_t n, int64_t k, uint32_t* packed);

// Compute out [num_rows, n] from x [num_rows, k], both contiguous. Out is bf16 or float.
template <class Out>
void linear(const Linear& layer, const bf16* x, int64_t num_rows, Out* out);

}  // namespace chatserve
