// The ops that work row by row, on bf16 with arithmetic in float.
//
// A row is computed by one thread, in an order that follows from its width alone, so that its bits
// do not depend on the rows beside it. Each op reads and writes its tensors once.

#include "rows.h"

#include <algorithm>
#include <cmath>

#include "pool.h"

namespace chatserve {
namespace {

// One to two microseconds of work: less is not worth another thread. An exponential takes as long
// as several sums.
constexpr int64_t kTaskSums = 16384;
constexpr int64_t kTaskExponentials = 4096;

// Call `body(row)` for every row, in tasks of about `task_numbers` numbers.
template <class Body>
void for_rows(int64_t num_rows, int64_t width, int64_t task_numbers, const Body& body) {
  const int64_t rows_per_task = std::max<int64_t>(1, task_numbers / width);
  const int64_t num_tasks = (num_rows + rows_per_task - 1) / rows_per_task;
  Pool::instance().run(num_tasks, [&](int64_t task) {
    const int64_t end = std::min(num_rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end; ++row) body(row);
  });
}

void norm_row(const bf16* x, const bf16* weight, float eps, int64_t width, bf16* normed) {
  Floats squares{};
  for (int64_t i = 0; i < width; i += kLanes) {
    const Floats values = load_bf16(x + i, width - i);
    squares += values * values;
  }
  const float scale = 1 / std::sqrt(sum_of_lanes(squares) / static_cast<float>(width) + eps);
  for (int64_t i = 0; i < width; i += kLanes) {
    const Floats values = load_bf16(x + i, width - i) * scale;
    store_bf16(normed + i, values * load_bf16(weight + i, width - i), width - i);
  }
}

void add_row(const bf16* x, const bf16* y, int64_t width, bf16* sum) {
  for (int64_t i = 0; i < width; i += kLanes) {
    store_bf16(sum + i, load_bf16(x + i, width - i) + load_bf16(y + i, width - i), width - i);
  }
}

// Turn each pair (x[i], x[i + half]) by its angle.
void rotate(const bf16* x, const float* cos, const float* sin, int64_t half, bf16* out) {
  for (int64_t i = 0; i < half; i += kLanes) {
    const int64_t count = half - i;
    const Floats c = load_floats(cos + i, count), s = load_floats(sin + i, count);
    const Floats first = load_bf16(x + i, count), second = load_bf16(x + half + i, count);
    store_bf16(out + i, first * c - second * s, count);
    store_bf16(out + half + i, second * c + first * s, count);
  }
}

}  // namespace

void rms_norm(const bf16* x, const bf16* weight, float eps, int64_t num_rows, int64_t width,
              bf16* normed) {
  for_rows(num_rows, width, kTaskSums, [&](int64_t row) {
    norm_row(x + row * width, weight, eps, width, normed + row * width);
  });
}

void add_rms_norm(const bf16* x, const bf16* residual, const bf16* weight, float eps,
                  int64_t num_rows, int64_t width, bf16* normed, bf16* sum) {
  for_rows(num_rows, width, kTaskSums, [&](int64_t row) {
    const int64_t i = row * width;
    add_row(x + i, residual + i, width, sum + i);
    norm_row(sum + i, weight, eps, width, normed + i);
  });
}

void silu_and_mul(const bf16* gate_up, int64_t num_rows, int64_t width, bf16* out) {
  for_rows(num_rows, width, kTaskExponentials, [&](int64_t row) {
    const bf16* gates = gate_up + row * 2 * width;
    for (int64_t i = 0; i < width; i += kLanes) {
      const Floats gate = load_bf16(gates + i, width - i);
      const Floats up = load_bf16(gates + width + i, width - i);
      store_bf16(out + row * width + i, gate / (1.0f + exp(-gate)) * up, width - i);
    }
  });
}

void rotary_kv_write(const bf16* qkv, const float* cos, const float* sin,
                     const int64_t* slot_mapping, int64_t num_tokens, const HeadShape& shape,
                     bf16* q, const Slots& slots) {
  const int64_t half = shape.head_dim / 2;
  const int64_t q_size = shape.num_heads * shape.head_dim;
  const int64_t kv_size = shape.num_kv_heads * shape.head_dim;
  for_rows(num_tokens, q_size + 2 * kv_size, kTaskSums, [&](int64_t token) {
    const bf16* from = qkv + token * (q_size + 2 * kv_size);
    const float* c = cos + token * half;
    const float* s = sin + token * half;
    bf16* k = slots.k + slot_mapping[token] * kv_size;
    for (int64_t i = 0; i < q_size; i += shape.head_dim) {
      rotate(from + i, c, s, half, q + token * q_size + i);
    }
    for (int64_t i = 0; i < kv_size; i += shape.head_dim) {
      rotate(from + q_size + i, c, s, half, k + i);
    }
    const bf16* values = from + q_size + kv_size;
    std::copy(values, values + kv_size, slots.v + slot_mapping[token] * kv_size);
  });
}

}  // namespace chatserve
