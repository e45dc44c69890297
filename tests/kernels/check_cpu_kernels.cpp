// Runs every CPU kernel on odd shapes and compares it with the plain formula.
//
// A program, so that it can be built with sanitizers and for other processors, where Python cannot
// follow. Tensors lie in vectors of exactly their size: an access beyond the end is one that the
// address sanitizer sees. Exit code 0 means that everything agreed.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "attention.h"
#include "linear.h"
#include "pool.h"
#include "rows.h"

using namespace chatserve;

namespace {

using Numbers = std::vector<bf16>;

float to_float(bf16 value) {
  const uint32_t bits = uint32_t{value} << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof(wide));
  return wide;
}

// Return numbers between -1 and 1 that a bf16 holds exactly.
Numbers random(int64_t count, unsigned seed) {
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    const float value = static_cast<float>(static_cast<int>(seed >> 25) - 64) / 64;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    numbers.push_back(static_cast<bf16>(bits >> 16));
  }
  return numbers;
}

void check(bool is_so, const char* what, int64_t a, int64_t b, int64_t c) {
  if (is_so) return;
  std::fprintf(stderr, "%s is wrong for %lld, %lld, %lld\n", what, static_cast<long long>(a),
               static_cast<long long>(b), static_cast<long long>(c));
  std::exit(1);
}

bool are_close(float value, float exact) {
  return std::fabs(value - exact) <= 0.01f * std::fabs(exact) + 0.01f;
}

void check_linear(int64_t num_rows, int64_t n, int64_t k) {
  const Numbers weight = random(n * k, 1), bias = random(n, 2), x = random(num_rows * k, 3);
  std::vector<uint32_t> packed(packed_bytes(n, k, WeightFormat::kBf16) / sizeof(uint32_t));
  pack(weight.data(), n, k, packed.data());
  const Linear layer{packed.data(), bias.data(), n, k, WeightFormat::kBf16};
  std::vector<float> out(num_rows * n);
  linear(layer, x.data(), num_rows, out.data());
  Numbers narrowed(num_rows * n);
  linear(layer, x.data(), num_rows, narrowed.data());
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      float exact = to_float(bias[column]);
      for (int64_t i = 0; i < k; ++i) {
        exact += to_float(x[row * k + i]) * to_float(weight[column * k + i]);
      }
      check(are_close(out[row * n + column], exact), "linear", num_rows, n, k);
      check(are_close(to_float(narrowed[row * n + column]), exact), "linear", num_rows, n, k);
    }
  }
}

// Return whole numbers up to 127, which each group of 32 contains: as they are, they are codes.
Numbers random_codes(int64_t count) {
  Numbers numbers = random(count, 4);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const float value = i % 32 == 0 ? 127 : to_float(numbers[i]) * 64;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    numbers[i] = static_cast<bf16>(bits >> 16);
  }
  return numbers;
}

// A weight as it comes from a file. Its scales and mins are 1, 0.5, -2 and 0 in turn.
struct Codes {
  Codes(int64_t n, int64_t k, WeightFormat format) : k(k), format(format) {
    constexpr f16 kScales[] = {0x3c00, 0x3800, 0xc000, 0};
    const int64_t num_bytes = format == WeightFormat::kInt8 ? n * k : n * k / 2;
    for (int64_t i = 0; i < num_bytes; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + i / 251));
    for (int64_t i = 0; i < n * k / 32; ++i) scales.push_back(kScales[i % 4]);
    for (int64_t i = 0; i < n * k / 32; ++i) mins.push_back(kScales[i / 4 % 4]);
  }

  float operator()(int64_t column, int64_t i) const {
    constexpr float kScales[] = {1, 0.5f, -2, 0};
    const int64_t at = column * k + i;
    const float scale = kScales[at / 32 % 4];
    if (format == WeightFormat::kInt8) return scale * static_cast<float>(bytes[at] - 128);
    const int nibble = bytes[at / 2] >> (at % 2 * 4) & 15;
    if (format == WeightFormat::kInt4) return scale * static_cast<float>(nibble - 8);
    return scale * static_cast<float>(nibble) + kScales[at / 32 / 4 % 4];
  }

  int64_t k;
  WeightFormat format;
  std::vector<uint8_t> bytes;
  std::vector<f16> scales, mins;
};

void check_quantized_linear(int64_t num_rows, int64_t n, int64_t k, WeightFormat format) {
  const Codes weight(n, k, format);
  const Numbers x = random_codes(num_rows * k);
  std::vector<uint8_t> packed(packed_bytes(n, k, format));
  const bool has_mins = format == WeightFormat::kInt4WithMins;
  const f16* mins = has_mins ? weight.mins.data() : nullptr;
  pack({weight.bytes.data(), weight.scales.data(), mins}, n, k, format, packed.data());
  std::vector<float> out(num_rows * n);
  linear(Linear{packed.data(), nullptr, n, k, format}, x.data(), num_rows, out.data());
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      float exact = 0;
      for (int64_t i = 0; i < k; ++i) exact += to_float(x[row * k + i]) * weight(column, i);
      check(out[row * n + column] == exact, "linear, quantised,", num_rows, n, k);
    }
  }
}

void check_norm(int64_t num_rows, int64_t width) {
  const Numbers x = random(num_rows * width, 1), y = random(num_rows * width, 2);
  const Numbers weight = random(width, 3);
  Numbers normed(x.size()), sum(x.size());
  add_rms_norm(x.data(), y.data(), weight.data(), 1e-5f, num_rows, width, normed.data(),
               sum.data());
  for (int64_t row = 0; row < num_rows; ++row) {
    float squares = 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      const float expected = to_float(x[i]) + to_float(y[i]);
      check(are_close(to_float(sum[i]), expected), "sum", num_rows, width, i);
      squares += to_float(sum[i]) * to_float(sum[i]);
    }
    const float scale = 1 / std::sqrt(squares / width + 1e-5f);
    for (int64_t i = 0; i < width; ++i) {
      const float exact = to_float(sum[row * width + i]) * scale * to_float(weight[i]);
      check(are_close(to_float(normed[row * width + i]), exact), "norm", num_rows, width, i);
    }
  }
}

void check_silu(int64_t num_rows, int64_t width) {
  const Numbers gate_up = random(num_rows * 2 * width, 1);
  Numbers out(num_rows * width);
  silu_and_mul(gate_up.data(), num_rows, width, out.data());
  for (int64_t i = 0; i < num_rows * width; ++i) {
    const int64_t at = i / width * 2 * width + i % width;
    const float gate = to_float(gate_up[at]), up = to_float(gate_up[at + width]);
    const float exact = gate / (1 + std::exp(-gate)) * up;
    check(are_close(to_float(out[i]), exact), "silu_and_mul", num_rows, width, i);
  }
}

void check_rotary(int64_t num_tokens, const HeadShape& shape) {
  const int64_t d = shape.head_dim, heads = shape.num_heads + 2 * shape.num_kv_heads;
  const Numbers qkv = random(num_tokens * heads * d, 1);
  const std::vector<float> cos(num_tokens * d / 2, 0.6f), sin(num_tokens * d / 2, 0.8f);
  std::vector<int64_t> slots(num_tokens);
  for (int64_t i = 0; i < num_tokens; ++i) slots[i] = num_tokens - 1 - i;
  Numbers q(num_tokens * shape.num_heads * d), k(num_tokens * shape.num_kv_heads * d), v(k.size());
  rotary_kv_write(qkv.data(), cos.data(), sin.data(), slots.data(), num_tokens, shape, q.data(),
                  {k.data(), v.data()});
  for (int64_t token = 0; token < num_tokens; ++token) {
    const bf16* from = qkv.data() + token * heads * d;
    const float rotated = 0.6f * to_float(from[0]) - 0.8f * to_float(from[d / 2]);
    check(are_close(to_float(q[token * shape.num_heads * d]), rotated), "q", num_tokens, d, token);
    const bf16 last = from[heads * d - 1];
    const int64_t slot_end = (slots[token] + 1) * shape.num_kv_heads * d;
    check(v[slot_end - 1] == last, "v", num_tokens, d, token);
  }
}

// Paged KV of one request, every page one further back, with NaN after its end.
struct PagedRequest {
  PagedRequest(int64_t seq_len, const HeadShape& heads, int64_t page_size)
      : heads(heads), page_size(page_size), num_pages((seq_len + page_size - 1) / page_size) {
    constexpr bf16 kNaN = 0x7fc0;
    const int64_t token_size = heads.num_kv_heads * heads.head_dim;
    k = random(num_pages * page_size * token_size, 4);
    v = random(num_pages * page_size * token_size, 5);
    for (int64_t i = num_pages; i > 0; --i) pages.push_back(static_cast<int32_t>(i - 1));
    for (int64_t position = seq_len; position < num_pages * page_size; ++position) {
      std::fill_n(k.begin() + at(position, 0), token_size, kNaN);
      std::fill_n(v.begin() + at(position, 0), token_size, kNaN);
    }
  }

  int64_t at(int64_t position, int64_t kv_head) const {
    const int64_t slot = pages[position / page_size] * page_size + position % page_size;
    return (slot * heads.num_kv_heads + kv_head) * heads.head_dim;
  }

  HeadShape heads;
  int64_t page_size, num_pages;
  Numbers k, v;
  std::vector<int32_t> pages;
};

// Return number `d` of what a query of one head attends to.
float attended(const PagedRequest& request, const bf16* q, int64_t kv_head, int64_t seq_len,
               int64_t d) {
  float sum = 0, weights = 0;
  for (int64_t position = 0; position < seq_len; ++position) {
    const int64_t at = request.at(position, kv_head);
    float score = 0;
    for (int64_t i = 0; i < request.heads.head_dim; ++i) {
      score += to_float(q[i]) * to_float(request.k[at + i]);
    }
    const float weight = std::exp(0.5f * score);
    weights += weight;
    sum += weight * to_float(request.v[at + d]);
  }
  return sum / weights;
}

// Two decodes over the same pages, one of them a token shorter, and a prefill of the last tokens.
void check_attention(int64_t seq_len, int64_t num_queries, const HeadShape& heads,
                     int64_t page_size) {
  const PagedRequest request(seq_len, heads, page_size);
  const int64_t size = heads.num_heads * heads.head_dim;
  const Numbers q = random((2 + num_queries) * size, 6);
  std::vector<int32_t> table = request.pages;
  table.insert(table.end(), request.pages.begin(), request.pages.end());
  const auto length = static_cast<int32_t>(seq_len);
  const int32_t decode_lens[] = {length, length - 1}, starts[] = {0, static_cast<int>(num_queries)};
  const AttentionBatch batch{2,      table.data(), request.num_pages,        decode_lens,
                             1,      table.data(), request.num_pages,        &length,
                             starts};
  Numbers out(q.size());
  AttentionPlan(batch, heads, page_size)
      .attend(q.data(), {request.k.data(), request.v.data()}, 0.5f, out.data());
  for (int64_t token = 0; token < 2 + num_queries; ++token) {
    const int64_t seen = token < 2 ? decode_lens[token] : seq_len - num_queries + token - 1;
    for (int64_t head = 0; head < heads.num_heads; ++head) {
      const int64_t kv_head = head / (heads.num_heads / heads.num_kv_heads);
      const int64_t at = token * size + head * heads.head_dim, d = head % heads.head_dim;
      const float exact = attended(request, q.data() + at, kv_head, seen, d);
      check(are_close(to_float(out[at + d]), exact), "attention", seq_len, token, head);
    }
  }
}

}  // namespace

int main() {
  for (const int num_threads : {1, 3}) {
    Pool::instance().resize(num_threads);
    for (const int64_t num_rows : {0, 1, 5, 13, 97}) {
      for (const int64_t n : {1, 31, 33, 64}) {
        for (const int64_t k : {1, 2, 7, 1026}) check_linear(num_rows, n, k);
        for (const int64_t k : {32, 160}) {
          check_quantized_linear(num_rows, n, k, WeightFormat::kInt8);
          check_quantized_linear(num_rows, n, k, WeightFormat::kInt4);
          check_quantized_linear(num_rows, n, k, WeightFormat::kInt4WithMins);
        }
      }
      for (const int64_t width : {1, 15, 17, 48}) check_norm(num_rows, width);
      for (const int64_t width : {1, 15, 17, 48}) check_silu(num_rows, width);
      check_rotary(num_rows, {3, 1, 64});
      check_rotary(num_rows, {2, 2, 10});
    }
    check_attention(2, 1, {3, 1, 2}, 1);
    check_attention(65, 2, {2, 2, 10}, 24);
    check_attention(300, 70, {6, 2, 80}, 16);
    check_attention(520, 5, {7, 1, 64}, 100);
  }
  std::puts("all kernels agree with their formulas");
}
