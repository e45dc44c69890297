// Linear layers over weights in 8 or 4 bits, multiplied in integers.
//
// Along k, 32 numbers form a group. Each group of a column has a scale, and with some formats a
// least weight; each group of a row of x is rounded to 8 bits and has a scale too. Within a group
// everything is integers; groups are added up in float:
//
//   out = sum over groups of  w_scale * x_scale * sum((w_code - zero) * x_code)
//                           + w_min   * x_scale * sum(x_code)
//
// The integers are exact at every level. Weight codes are unsigned, as the instruction wants them;
// what their zero point adds is known beforehand, and the integer sum starts with its opposite.
//
// Weights are packed into panels of as many columns as two vectors have lanes, 32 with AVX-512. A
// panel is one stream: group after group the codes, then the scales, then the mins. Four k of a
// column lie side by side in one lane. With 4 bits a vector holds two such quads, the first in the
// lower halves of its bytes.
//
//   8 bits   quad 0: columns 0-15 | 16-31   quad 1: ...     quad 7: ...   scales
//   4 bits   quads 0 and 1: columns 0-15 | 16-31     ...    quads 6, 7    scales  mins
//
// One group of a panel is 16 vectors of codes. They stay in registers, those of AVX-512 at least,
// while the rows of a chunk pass over them, so that unpacking costs the same for one row as for 96.
//
// Invariant: an output element is one running sum over the groups in ascending order, whatever the
// number of rows and threads. So a row alone and the same row in a batch give the same bits.

#include "quantized_linear.h"

#include <memory>

#include "panels.h"
#include "quantized_rows.h"

namespace chatserve {
namespace {

// Rows that are summed side by side. The sums of one row depend on each other, and a processor sees
// few of them at a time: it needs others in between to be busy.
constexpr int64_t kRowsAtOnce = 4;

// How many groups ahead a panel is fetched. A single row is done with a group before the memory has
// answered; asking for more than a few then delays what is needed next.
constexpr int64_t prefetch_groups(int64_t num_rows) { return num_rows == 1 ? 3 : 16; }

template <int Bits, bool HasMins>
struct Format {
  static constexpr int kBits = Bits;
  static constexpr bool kHasMins = HasMins;
  static constexpr int kZeroPoint = HasMins ? 0 : 1 << (Bits - 1);
  static constexpr int64_t kCodeBytes = kGroupSize * kPanelColumns * Bits / 8;
  static constexpr int64_t kScaleBytes = kPanelColumns * sizeof(f16);
  static constexpr int64_t kGroupBytes = kCodeBytes + (HasMins ? 2 : 1) * kScaleBytes;
};

// Call `body` with the Format of a quantised layer.
template <class Body>
auto with_format(WeightFormat format, const Body& body) {
  if (format == WeightFormat::kInt8) return body(Format<8, false>{});
  if (format == WeightFormat::kInt4) return body(Format<4, false>{});
  return body(Format<4, true>{});
}

// One group of a panel, ready to be multiplied: (columns) by lane.
struct PanelGroup {
  Words codes[kGroupQuads][2][kNumByteParts];
  Floats scales[2];
  Floats mins[2];
};

template <class F>
Words load_quads(const uint8_t* codes, int64_t quad, int half) {
  if (F::kBits == 8) return load<Words>(codes + (2 * quad + half) * sizeof(Words));
  const Words pairs = load<Words>(codes + (quad / 2 * 2 + half) * sizeof(Words));
  return (quad % 2 == 0 ? pairs : pairs >> 4) & 0x0f0f0f0f;
}

// Fetch one group into the second cache. Any address will do.
template <class F>
void prefetch(const uint8_t* group) {
  for (int64_t i = 0; i < F::kGroupBytes; i += 64) __builtin_prefetch(group + i, 0, 2);
}

template <class F>
PanelGroup load_group(const uint8_t* from) {
  PanelGroup group;
  for (int64_t quad = 0; quad < kGroupQuads; ++quad) {
    for (int half = 0; half < 2; ++half) {
      const Words quads = load_quads<F>(from, quad, half);
      for (int i = 0; i < kNumByteParts; ++i) {
        group.codes[quad][half][i] = unsigned_byte_part(quads, i);
      }
    }
  }
  for (int half = 0; half < 2; ++half) {
    const auto* scales = reinterpret_cast<const f16*>(from + F::kCodeBytes) + half * kLanes;
    group.scales[half] = load_f16(scales);
    if (F::kHasMins) group.mins[half] = load_f16(scales + kPanelColumns);
  }
  return group;
}

// Add the products of one group to the sums of NumRows rows.
template <class F, int NumRows>
void add_tile(const PanelGroup& w, const RowGroup* x, float (*sums)[kPanelColumns]) {
  Ints products[NumRows][2];
  for (int r = 0; r < NumRows; ++r) {
    for (Ints& half : products[r]) half = Ints{} - F::kZeroPoint * x[r].sum;
  }
  for (int64_t quad = 0; quad < kGroupQuads; ++quad) {
    for (int i = 0; i < kNumByteParts; ++i) {
      for (int r = 0; r < NumRows; ++r) {
        const Words codes = Words{} + x[r].codes[quad][i];
        for (int half = 0; half < 2; ++half) {
          products[r][half] = add_byte_products(products[r][half], w.codes[quad][half][i], codes);
        }
      }
    }
  }
  for (int r = 0; r < NumRows; ++r) {
    for (int half = 0; half < 2; ++half) {
      float* const at = sums[r] + half * kLanes;
      Floats sum = load<Floats>(at);
      sum += to_floats(products[r][half]) * (w.scales[half] * x[r].scale);
      if (F::kHasMins) sum += w.mins[half] * x[r].scaled_sum;
      store(at, sum);
    }
  }
}

// `groups` are those of the chunk, [k / 32, num_rows].
template <class F>
void sum_panel(const Linear& layer, int64_t panel, const RowGroup* groups, int64_t num_rows,
               Sums& sums) {
  const int64_t num_groups = layer.in_features / kGroupSize;
  const auto* w = static_cast<const uint8_t*>(layer.packed) + panel * num_groups * F::kGroupBytes;
  const int64_t ahead = prefetch_groups(num_rows);
  for (int64_t i = 0; i < num_groups; ++i) {
    prefetch<F>(w + (i + ahead) * F::kGroupBytes);
    const PanelGroup group = load_group<F>(w + i * F::kGroupBytes);
    const RowGroup* const rows = groups + i * num_rows;
    int64_t row = 0;
    for (; row + kRowsAtOnce <= num_rows; row += kRowsAtOnce) {
      add_tile<F, kRowsAtOnce>(group, rows + row, sums + row);
    }
    for (; row < num_rows; ++row) add_tile<F, 1>(group, rows + row, sums + row);
  }
}

// Return memory for the rounded rows of a call. The caller's thread keeps it for its next call.
RowGroup* scratch(int64_t num_groups) {
  thread_local std::unique_ptr<RowGroup[]> groups;
  thread_local int64_t capacity = 0;
  if (num_groups > capacity) {
    groups.reset(new RowGroup[num_groups]);
    capacity = num_groups;
  }
  return groups.get();
}

// The weight's own order, one panel of it at a time.
template <class F>
class Packer {
 public:
  Packer(const QuantizedWeight& weight, int64_t n, int64_t k) : weight_(weight), n_(n), k_(k) {}

  void pack_group(int64_t panel, int64_t group, uint8_t* to) const {
    auto* scales = reinterpret_cast<f16*>(to + F::kCodeBytes);
    for (int64_t i = 0; i < kPanelColumns; ++i) {
      const int64_t column = panel * kPanelColumns + i;
      const bool is_padding = column >= n_;
      const int64_t at = column * (k_ / kGroupSize) + group;
      scales[i] = is_padding ? 0 : weight_.scales[at];
      if (F::kHasMins) scales[kPanelColumns + i] = is_padding ? 0 : weight_.mins[at];
      pack_codes(is_padding ? nullptr : weight_.codes + at * kGroupSize * F::kBits / 8, i, to);
    }
  }

 private:
  // Spread the codes of one column, or zeros for none, over the vectors of the group.
  void pack_codes(const uint8_t* codes, int64_t column, uint8_t* to) const {
    constexpr int64_t kVectorBytes = sizeof(Words), kHalves = 2;
    const int64_t half = column / kLanes, lane = column % kLanes;
    for (int64_t i = 0; i < kGroupSize * F::kBits / 8; ++i) {
      uint8_t* const vector = to + (i / 4 * kHalves + half) * kVectorBytes;
      vector[4 * lane + i % 4] = codes == nullptr ? 0 : F::kBits == 8 ? codes[i] : pair(codes, i);
    }
  }

  // Return the i-th byte of a column: its code of quad 2j, and above it that of quad 2j + 1.
  static uint8_t pair(const uint8_t* codes, int64_t i) {
    const int64_t k = i / 4 * 8 + i % 4;
    return nibble(codes, k) | nibble(codes, k + 4) << 4;
  }

  static uint8_t nibble(const uint8_t* codes, int64_t k) {
    return codes[k / 2] >> (k % 2 * 4) & 15;
  }

  const QuantizedWeight& weight_;
  int64_t n_, k_;
};

}  // namespace

int64_t quantized_bytes(int64_t n, int64_t k, WeightFormat format) {
  return with_format(format, [&](auto f) {
    return num_panels(n) * (k / kGroupSize) * decltype(f)::kGroupBytes;
  });
}

void pack(const QuantizedWeight& weight, int64_t n, int64_t k, WeightFormat format, void* packed) {
  const int64_t num_groups = k / kGroupSize;
  with_format(format, [&](auto f) {
    using F = decltype(f);
    const Packer<F> packer(weight, n, k);
    Pool::instance().run(num_panels(n) * num_groups, [&](int64_t i) {
      auto* to = static_cast<uint8_t*>(packed) + i * F::kGroupBytes;
      packer.pack_group(i / num_groups, i % num_groups, to);
    });
  });
}

template <class Out>
void quantized_linear(const Linear& layer, const bf16* x, int64_t num_rows, Out* out) {
  const int64_t num_groups = layer.in_features / kGroupSize;
  RowGroup* const rows = scratch(num_rows * num_groups);
  quantize_rows(x, num_rows, layer.in_features, kChunkRows, rows);
  with_format(layer.format, [&](auto f) {
    for_panels(layer, num_rows, out, [&](int64_t panel, const Chunk& chunk, Sums& sums) {
      const RowGroup* const groups = rows + chunk.first * num_groups;
      sum_panel<decltype(f)>(layer, panel, groups, chunk.count, sums);
    });
  });
}

template void quantized_linear(const Linear&, const bf16*, int64_t, bf16*);
template void quantized_linear(const Linear&, const bf16*, int64_t, float*);

}  // namespace chatserve
