#include "quantized_rows.h"

#include <algorithm>
#include <limits>

#include "pool.h"

namespace chatserve {
namespace {

constexpr int kGroupVectors = kGroupSize / kLanes;
constexpr int kMaxCode = 127;

// About two microseconds of work: less is not worth another thread.
constexpr int64_t kTaskNumbers = 4096;

constexpr uint32_t kInfinityBits = 0x7f800000;

// Below this, 127 / x is no float any more. Such numbers count as zero.
constexpr float kMinMagnitude = 1e-36f;

// Return the largest magnitude as bits, which order like the numbers; those of NaN are above all.
uint32_t largest_magnitude(const Floats (&values)[kGroupVectors]) {
  Words largest{};
  for (const Floats& vector : values) {
    const Words magnitudes = (Words)vector & 0x7fffffff;
    largest = magnitudes > largest ? magnitudes : largest;
  }
  uint32_t result = 0;
  for (int i = 0; i < kLanes; ++i) result = std::max<uint32_t>(result, largest[i]);
  return result;
}

RowGroup quantize_group(const bf16* x) {
  Floats values[kGroupVectors];
  for (int i = 0; i < kGroupVectors; ++i) values[i] = load_bf16(x + i * kLanes, kLanes);
  const uint32_t bits = largest_magnitude(values);
  const float magnitude = load<float>(&bits);
  RowGroup group{};
  if (bits >= kInfinityBits) group.scale = std::numeric_limits<float>::quiet_NaN();
  if (bits >= kInfinityBits || magnitude < kMinMagnitude) return group;
  group.scale = magnitude / kMaxCode;
  const float steps = kMaxCode / magnitude;
  alignas(64) int8_t codes[kGroupSize];
  Ints sums{};
  for (int i = 0; i < kGroupVectors; ++i) {
    const Ints rounded = round_to_ints(values[i] * steps);
    store(codes + i * kLanes, __builtin_convertvector(rounded, Bytes));
    sums += rounded;
  }
  for (int i = 0; i < kLanes; ++i) group.sum += sums[i];
  group.scaled_sum = group.scale * static_cast<float>(group.sum);
  for (int64_t quad = 0; quad < kGroupQuads; ++quad) {
    for (int part = 0; part < kNumByteParts; ++part) {
      group.codes[quad][part] = signed_byte_part(load<uint32_t>(codes + 4 * quad), part);
    }
  }
  return group;
}

}  // namespace

void quantize_rows(const bf16* x, int64_t num_rows, int64_t k, int64_t chunk_rows,
                   RowGroup* groups) {
  const int64_t num_groups = k / kGroupSize;
  const int64_t task_rows = std::max<int64_t>(1, kTaskNumbers / k);
  Pool::instance().run((num_rows + task_rows - 1) / task_rows, [&](int64_t task) {
    const int64_t end = std::min(num_rows, (task + 1) * task_rows);
    for (int64_t row = task * task_rows; row < end; ++row) {
      const int64_t first = row / chunk_rows * chunk_rows;
      const int64_t count = std::min(chunk_rows, num_rows - first);
      RowGroup* const to = groups + first * num_groups + (row - first);
      for (int64_t i = 0; i < num_groups; ++i) {
        to[i * count] = quantize_group(x + row * k + i * kGroupSize);
      }
    }
  });
}

}  // namespace chatserve
