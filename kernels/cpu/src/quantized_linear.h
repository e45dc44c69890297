// The part of `linear.h` that serves weights in 8 and 4 bits.

#pragma once

#include "linear.h"

namespace chatserve {

int64_t quantized_bytes(int64_t n, int64_t k, WeightFormat format);

template <class Out>
void quantized_linear(const Linear& layer, const bf16* x, int64_t num_rows, Out* out);

}  // namespace chatserve
