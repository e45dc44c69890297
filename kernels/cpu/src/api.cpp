// What the library offers: plain C over pointers, so that it needs no header of torch and fits
// every version of it.
//
// Every tensor is contiguous, and its owner keeps it alive during the call. Shapes are in the
// headers of what is called. Loops of calls take turns; each has all threads of `set_num_threads`.

#include <cstring>

#include "attention.h"
#include "decoder.h"
#include "linear.h"
#include "pool.h"
#include "rows.h"

#define CHATSERVE_API extern "C" __attribute__((visibility("default")))

using namespace chatserve;

// Return whether this processor can run the library of a level. Ask the library of the plain level,
// which runs everywhere.
CHATSERVE_API bool chatserve_has_level(const char* level) {
  if (std::strcmp(level, "plain") == 0) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
  if (std::strcmp(level, "avx2") == 0) return true;
  return std::strcmp(level, "avx512") == 0 && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

CHATSERVE_API void chatserve_set_num_threads(int num_threads) {
  Pool::instance().resize(num_threads);
}

CHATSERVE_API int64_t chatserve_packed_bytes(int64_t n, int64_t k, WeightFormat format) {
  return packed_bytes(n, k, format);
}

CHATSERVE_API void chatserve_pack(const bf16* weight, int64_t n, int64_t k, void* packed) {
  pack(weight, n, k, packed);
}

CHATSERVE_API void chatserve_pack_quantized(const QuantizedWeight* weight, int64_t n, int64_t k,
                                            WeightFormat format, void* packed) {
  pack(*weight, n, k, format, packed);
}

CHATSERVE_API void chatserve_linear_to_bf16(const Linear* layer, const bf16* x, int64_t num_rows,
                                            bf16* out) {
  linear(*layer, x, num_rows, out);
}

CHATSERVE_API void chatserve_linear_to_float(const Linear* layer, const bf16* x, int64_t num_rows,
                                             float* out) {
  linear(*layer, x, num_rows, out);
}

CHATSERVE_API void chatserve_rms_norm(const bf16* x, const bf16* weight, float eps,
                                      int64_t num_rows, int64_t width, bf16* normed) {
  rms_norm(x, weight, eps, num_rows, width, normed);
}

CHATSERVE_API void chatserve_add_rms_norm(const bf16* x, const bf16* residual, const bf16* weight,
                                          float eps, int64_t num_rows, int64_t width, bf16* normed,
                                          bf16* sum) {
  add_rms_norm(x, residual, weight, eps, num_rows, width, normed, sum);
}

CHATSERVE_API void chatserve_silu_and_mul(const bf16* gate_up, int64_t num_rows, int64_t width,
                                          bf16* out) {
  silu_and_mul(gate_up, num_rows, width, out);
}

CHATSERVE_API void chatserve_rotary_kv_write(const bf16* qkv, const float* cos, const float* sin,
                                             const int64_t* slot_mapping, int64_t num_tokens,
                                             const HeadShape* shape, bf16* q, bf16* k, bf16* v) {
  rotary_kv_write(qkv, cos, sin, slot_mapping, num_tokens, *shape, q, {k, v});
}

CHATSERVE_API void chatserve_attend(const AttentionBatch* batch, const HeadShape* heads,
                                    int64_t page_size, const bf16* q, const bf16* k, const bf16* v,
                                    float scale, bf16* out) {
  AttentionPlan(*batch, *heads, page_size).attend(q, {k, v}, scale, out);
}

CHATSERVE_API int chatserve_num_stages() { return kNumStages; }

CHATSERVE_API bool chatserve_forward(const Decoder* decoder, const Step* step, bf16* out,
                                     double* seconds) {
  return forward(*decoder, *step, out, seconds);
}
