// Runs every CPU kernel on odd shapes and compares it with the plain formula.
//
// A program, so that it can be built with sanitizers and for other processors, where Python cannot
// follow. Tensors lie in vectors of exactly their size: an access beyond the end is one that the
// address sanitizer sees. Exit code 0 means that everything agreed.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

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
  std::vector<uint32_t> packed(packed_bytes(n, k) / sizeof(uint32_t));
  pack(weight.data(), n, k, packed.data());
  const Linear layer{packed.data(), bias.data(), n, k};
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

void check_norm(int64_t num_rows, int64_t width) {
  const Numbers x = random(num_rows * width, 1), y = random(num_rows * width, 2);
  const Numbers weight = random(width, 3);
  Numbers normed(x.size()), sum(x.size());
  add_rms_norm(x.data(), y.data(), weight.data(), 1e-5f, num_rows, width, normed.data(),
               sum.data());
  for (int64_t row = 0; row < num_rows; ++row) {
    float squares = 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      check(are_close(to_float(sum[i]), to_float(x[i]) + to_float(y[i])), "sum", num_rows, width, i);
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

}  // namespace

int main() {
  for (const int num_threads : {1, 3}) {
    Pool::instance().resize(num_threads);
    for (const int64_t num_rows : {0, 1, 5, 13, 97}) {
      for (const int64_t n : {1, 31, 33, 64}) {
        for (const int64_t k : {1, 2, 7, 1026}) check_linear(num_rows, n, k);
      }
      for (const int64_t width : {1, 15, 17, 48}) check_norm(num_rows, width);
      for (const int64_t width : {1, 15, 17, 48}) check_silu(num_rows, width);
      check_rotary(num_rows, {3, 1, 64});
      check_rotary(num_rows, {2, 2, 10});
    }
  }
  std::puts("all kernels agree with their formulas");
}
