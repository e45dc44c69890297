// Vectors of the feature level that a file is compiled for.
//
// Owns their width and the operations that plain arithmetic does not have. The rest is written with
// the vector types of GCC and Clang, which both translate for every level: AVX-512 with BF16, AVX2
// with FMA, and what each processor of its architecture has (SSE2, NEON).

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512BF16__)
#include <immintrin.h>
#endif

namespace chatserve {

using bf16 = uint16_t;  // the upper half of a float

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kNumRegisters = 32;
#else
constexpr int kNumRegisters = 16;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t HalfWords __attribute__((vector_size(2 * kLanes)));

template <class Vector>
inline Vector load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <class Vector>
inline void store(void* to, Vector vector) {
  std::memcpy(to, &vector, sizeof(vector));
}

inline Floats widen(HalfWords values) {
  return (Floats)(__builtin_convertvector(values, Words) << 16);
}

// Round to nearest, ties to even. Every NaN becomes the one that torch writes.
inline HalfWords narrow(Floats values) {
  const Words bits = (Words)values;
  const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return __builtin_convertvector(values == values ? rounded : Words{} + 0x7fc0, HalfWords);
}

// Read the next of `count` numbers, as many as there are lanes; lanes without one are zero.
inline Floats load_bf16(const bf16* from, int64_t count) {
  if (count >= kLanes) return widen(load<HalfWords>(from));
  HalfWords values{};
  std::memcpy(&values, from, count * sizeof(bf16));
  return widen(values);
}

inline Floats load_floats(const float* from, int64_t count) {
  if (count >= kLanes) return load<Floats>(from);
  Floats values{};
  std::memcpy(&values, from, count * sizeof(float));
  return values;
}

// Write the next of `count` numbers, as many as there are lanes.
inline void store_bf16(bf16* to, Floats values, int64_t count) {
  const HalfWords narrowed = narrow(values);
  if (count >= kLanes) return store(to, narrowed);
  std::memcpy(to, &narrowed, count * sizeof(bf16));
}

// Add the lanes, always in the same order.
inline float sum_of_lanes(Floats values) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += values[i];
  return sum;
}

// A lane of Words holds a pair of bf16, the first in its lower half. Pairs are multiplied in
// kNumParts steps: both at once where an instruction does that, else one after the other.
#if defined(__AVX512BF16__)
constexpr int kNumParts = 1;
typedef Words Factors;
inline Factors part(Words pairs, int) { return pairs; }
inline Floats add_products(Floats sum, Factors x, Factors w) {
  return (Floats)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)w);
}
#else
constexpr int kNumParts = 2;
typedef Floats Factors;
inline Factors part(Words pairs, int i) {
  return (Floats)(i == 0 ? pairs << 16 : pairs & 0xffff0000);
}
inline Floats add_products(Floats sum, Factors x, Factors w) { return sum + x * w; }
#endif

// Return e^x with an error of about one unit in the last place; x is taken as within +-87.
//
// e^x = 2^n * e^r, with n the nearest integer to x / ln 2 and |r| <= ln 2 / 2. Adding 1.5 * 2^23
// rounds to an integer and leaves it in the low bits; ln 2 is subtracted in two pieces, the first
// short enough that n times it is exact.
inline Floats exp(Floats x) {
  constexpr float kRounder = 12582912;
  x = x > 87.0f ? Floats{} + 87.0f : x;
  x = x < -87.0f ? Floats{} - 87.0f : x;
  const Floats shifted = x * 1.44269504f + kRounder;
  const Floats n = shifted - kRounder;
  const Floats r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  Floats series = Floats{} + 1.0f / 5040;
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  return (Floats)((Words)series + ((Words)shifted << 23));
}

}  // namespace chatserve
