// Vectors of the feature level that a file is compiled for.
//
// Owns their width and the operations that plain arithmetic does not have. The rest is written with
// the vector types of GCC and Clang, which both translate for every level: AVX-512 with BF16, AVX2
// with FMA, and what each processor of its architecture has (SSE2, NEON).

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace chatserve {

using bf16 = uint16_t;  // the upper half of a float
using f16 = uint16_t;   // IEEE half precision

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
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef uint16_t HalfWords __attribute__((vector_size(2 * kLanes)));
typedef int8_t Bytes __attribute__((vector_size(kLanes)));

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
#if defined(__AVX512F__)
  // GCC 12 makes several instructions of the conversion below.
  const Words words = (Words)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)values);
#else
  const Words words = __builtin_convertvector(values, Words);
#endif
  return (Floats)(words << 16);
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

// A lane of Words holds a quad of bytes as well: unsigned ones of a weight, signed ones of x. Quads
// are multiplied in kNumByteParts steps: all four where an instruction does that, else the even
// and then the odd ones, widened to 16 bits. Instructions that multiply bytes and add them in 16
// bits would saturate; so every level gets the same, exact sums.
#if defined(__AVX512VNNI__)
constexpr int kNumByteParts = 1;
inline Words unsigned_byte_part(Words quads, int) { return quads; }
inline uint32_t signed_byte_part(uint32_t quad, int) { return quad; }
inline Ints add_byte_products(Ints sum, Words w, Words x) {
  return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
}
#else
constexpr int kNumByteParts = 2;
inline Words unsigned_byte_part(Words quads, int i) { return (quads >> (8 * i)) & 0x00ff00ff; }
inline uint32_t signed_byte_part(uint32_t quad, int i) {
  const auto lower = static_cast<int8_t>(quad >> (8 * i));
  const auto upper = static_cast<int8_t>(quad >> (8 * i + 16));
  return static_cast<uint16_t>(lower) | static_cast<uint32_t>(upper) << 16;
}
inline Ints add_byte_products(Ints sum, Words w, Words x) {
#if defined(__AVX2__)
  return sum + (Ints)_mm256_madd_epi16((__m256i)w, (__m256i)x);
#elif defined(__SSE2__)
  return sum + (Ints)_mm_madd_epi16((__m128i)w, (__m128i)x);
#else
  const Ints lower = ((Ints)(w << 16) >> 16) * ((Ints)(x << 16) >> 16);
  return sum + lower + ((Ints)w >> 16) * ((Ints)x >> 16);
#endif
}
#endif

inline Floats to_floats(Ints values) { return __builtin_convertvector(values, Floats); }

// Round to nearest, ties to even. The trick of `exp` would do it, but with a product before it that
// is rounded at some levels and not at others.
inline Ints round_to_ints(Floats values) {
#if defined(__AVX512F__)
  return (Ints)_mm512_maskz_cvtps_epi32(0xffff, (__m512)values);  // all lanes
#elif defined(__AVX2__)
  return (Ints)_mm256_cvtps_epi32((__m256)values);
#elif defined(__SSE2__)
  return (Ints)_mm_cvtps_epi32((__m128)values);
#else
  Ints rounded;
  for (int i = 0; i < kLanes; ++i) rounded[i] = static_cast<int>(__builtin_nearbyintf(values[i]));
  return rounded;
#endif
}

// Read as many f16 as there are lanes. The exponent of a half is biased by 15, that of a float by
// 127: the product makes up for the difference, also of numbers without a leading one.
inline Floats load_f16(const f16* from) {
  const HalfWords halves = load<HalfWords>(from);
#if defined(__AVX512F__)
  return (Floats)_mm512_maskz_cvtph_ps(0xffff, (__m256i)halves);  // all lanes
#else
  const Words bits = __builtin_convertvector(halves, Words);
  const Words sign = (bits & 0x8000) << 16;
  const Floats magnitudes = (Floats)((bits & 0x7fff) << 13) * 0x1p112f;
  const Words result = magnitudes >= 65536.0f ? Words{} + 0x7fc00000 : (Words)magnitudes;
  return (Floats)(result | sign);
#endif
}

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
