// A decoder for one step, from token ids to final states, in one call.
//
// A step at batch 1 passes through some two hundred ops of a few microseconds each, and calling
// each of them from Python would take as long as a third of them. The ops and their order are
// those of `layer_stack.py`, and so are the numbers, bit by bit.
//
// In the last layer, only rows whose final state is asked for go on after attention.

#include "decoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace chatserve {
namespace {

// Activations between the ops, all [num_tokens, ...]; grown to the largest step and kept.
struct Activations {
  std::vector<bf16> residual, normed, output;  // hidden_size
  std::vector<bf16> qkv, q, attended;          // heads
  std::vector<bf16> gate_up, activated;        // intermediate_size
  std::vector<float> cos, sin;                 // head_dim / 2

  void grow(const Decoder& decoder, int64_t num_tokens) {
    const int64_t q_size = decoder.heads.num_heads * decoder.heads.head_dim;
    const int64_t kv_size = decoder.heads.num_kv_heads * decoder.heads.head_dim;
    const auto hold = [num_tokens](auto& numbers, int64_t width) {
      const auto size = static_cast<size_t>(num_tokens * width);
      if (numbers.size() < size) numbers.resize(size);
    };
    for (std::vector<bf16>* numbers : {&residual, &normed, &output}) {
      hold(*numbers, decoder.hidden_size);
    }
    hold(qkv, q_size + 2 * kv_size);
    hold(q, q_size);
    hold(attended, q_size);
    hold(gate_up, 2 * decoder.intermediate_size);
    hold(activated, decoder.intermediate_size);
    hold(cos, decoder.heads.head_dim / 2);
    hold(sin, decoder.heads.head_dim / 2);
  }
};

// Tells apart what time went into; a look at the clock takes some 25 ns.
class Laps {
 public:
  explicit Laps(double* seconds) : seconds_(seconds), last_(Clock::now()) {}

  void end(Stage stage) {
    const Clock::time_point now = Clock::now();
    seconds_[stage] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point last_;
};

// Keep the given rows and move them to the front. They ascend, so none is overwritten unread.
void keep_rows(const Step& step, int64_t width, std::vector<bf16>& numbers) {
  for (int64_t i = 0; i < step.num_rows; ++i) {
    const bf16* from = numbers.data() + step.rows[i] * width;
    std::copy(from, from + width, numbers.data() + i * width);
  }
}

bool are_within(const int64_t* indices, int64_t count, int64_t size) {
  return std::all_of(indices, indices + count, [=](int64_t i) { return 0 <= i && i < size; });
}

class Forward {
 public:
  Forward(const Decoder& decoder, const Step& step, Activations& activations, double* seconds)
      : decoder_(decoder),
        step_(step),
        a_(activations),
        plan_(*step.attention, decoder.heads, step.page_size),
        laps_(seconds),
        num_rows_(step.num_tokens) {}

  void run(bf16* out) {
    const int64_t hidden = decoder_.hidden_size;
    gather(decoder_.embed_tokens, step_.input_ids, hidden, a_.residual.data());
    gather(decoder_.cos, step_.positions, decoder_.heads.head_dim / 2, a_.cos.data());
    gather(decoder_.sin, step_.positions, decoder_.heads.head_dim / 2, a_.sin.data());
    laps_.end(kEmbedding);
    rms_norm(a_.residual.data(), decoder_.layers[0].attention_norm, decoder_.rms_norm_eps,
             num_rows_, hidden, a_.normed.data());
    laps_.end(kNorms);
    for (int64_t i = 0; i < decoder_.num_layers; ++i) {
      const bool is_last = i + 1 == decoder_.num_layers;
      attend(decoder_.layers[i], i);
      if (is_last) keep_wanted_rows();
      project(*decoder_.layers[i].o, kOutput, a_.attended, a_.output);
      add_and_norm(decoder_.layers[i].mlp_norm, a_.normed.data());
      mlp(decoder_.layers[i]);
      const bf16* next = is_last ? decoder_.final_norm : decoder_.layers[i + 1].attention_norm;
      add_and_norm(next, is_last ? out : a_.normed.data());
    }
  }

 private:
  // Look up a row of a table for every token.
  template <class Number>
  void gather(const Number* table, const int64_t* indices, int64_t width, Number* to) {
    for (int64_t token = 0; token < num_rows_; ++token, to += width) {
      std::copy_n(table + indices[token] * width, width, to);
    }
  }

  // Writing KV comes first: a token sees its own and that of the chunk it belongs to.
  void attend(const Layer& layer, int64_t index) {
    const HeadShape& heads = decoder_.heads;
    const int64_t layer_size =
        index * step_.num_pages * step_.page_size * heads.num_kv_heads * heads.head_dim;
    bf16* const k = step_.k + layer_size;
    bf16* const v = step_.v + layer_size;
    project(*layer.qkv, kQkv, a_.normed, a_.qkv);
    rotary_kv_write(a_.qkv.data(), a_.cos.data(), a_.sin.data(), step_.slot_mapping, num_rows_,
                    heads, a_.q.data(), {k, v});
    laps_.end(kRotary);
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(heads.head_dim)));
    plan_.attend(a_.q.data(), {k, v}, scale, a_.attended.data());
    laps_.end(kAttention);
  }

  void mlp(const Layer& layer) {
    project(*layer.gate_up, kGateUp, a_.normed, a_.gate_up);
    silu_and_mul(a_.gate_up.data(), num_rows_, decoder_.intermediate_size, a_.activated.data());
    laps_.end(kActivation);
    project(*layer.down, kDown, a_.activated, a_.output);
  }

  void project(const Linear& layer, Stage stage, const std::vector<bf16>& x,
               std::vector<bf16>& to) {
    linear(layer, x.data(), num_rows_, to.data());
    laps_.end(stage);
  }

  // Add the last output to the residual stream, in place, and norm the sum.
  void add_and_norm(const bf16* weight, bf16* normed) {
    add_rms_norm(a_.output.data(), a_.residual.data(), weight, decoder_.rms_norm_eps, num_rows_,
                 decoder_.hidden_size, normed, a_.residual.data());
    laps_.end(kNorms);
  }

  void keep_wanted_rows() {
    keep_rows(step_, decoder_.heads.num_heads * decoder_.heads.head_dim, a_.attended);
    keep_rows(step_, decoder_.hidden_size, a_.residual);
    num_rows_ = step_.num_rows;
  }

  const Decoder& decoder_;
  const Step& step_;
  Activations& a_;
  AttentionPlan plan_;
  Laps laps_;
  int64_t num_rows_;
};

}  // namespace

bool forward(const Decoder& decoder, const Step& step, bf16* out, double* seconds) {
  if (!are_within(step.input_ids, step.num_tokens, decoder.vocab_size) ||
      !are_within(step.positions, step.num_tokens, decoder.max_positions)) {
    return false;
  }
  static thread_local Activations activations;
  activations.grow(decoder, step.num_tokens);
  Forward(decoder, step, activations, seconds).run(out);
  return true;
}

}  // namespace chatserve
