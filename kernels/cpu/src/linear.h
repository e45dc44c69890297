// Linear layers over packed weights; `linear.cpp` describes the layout of bf16 weights,
// `quantized_linear.cpp` that of the others.

#pragma once

#include <cstdint>

#include "simd.h"

namespace chatserve {

enum class WeightFormat : int64_t {
  kBf16 = 0,
  kInt8 = 8,          // w = scale * (code - 128)
  kInt4 = 4,          // w = scale * (code - 8)
  kInt4WithMins = 5,  // w = scale * code + min
};

// A layer as its caller keeps it; the caller owns the memory.
struct Linear {
  const void* packed;
  const bf16* bias;      // [out_features], or null
  int64_t out_features;  // called n below
  int64_t in_features;   // called k below
  WeightFormat format;
};

// A weight as quantized.py describes it, all contiguous.
struct QuantizedWeight {
  const uint8_t* codes;  // [n, k], or [n, k / 2] with 4 bits
  const f16* scales;     // [n, k / 32]
  const f16* mins;       // [n, k / 32], or null
};

// Return the bytes of a packed weight [n, k]. Of the quantised formats, k is a multiple of 32.
int64_t packed_bytes(int64_t n, int64_t k, WeightFormat format);

// Pack a contiguous weight [n, k].
void pack(const bf16* weight, int64_t n, int64_t k, void* packed);
void pack(const QuantizedWeight& weight, int64_t n, int64_t k, WeightFormat format, void* packed);

// Compute out [num_rows, n] from x [num_rows, k], both contiguous. Out is bf16 or float.
template <class Out>
void linear(const Linear& layer, const bf16* x, int64_t num_rows, Out* out);

}  // namespace chatserve
