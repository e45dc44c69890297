// Attention over paged KV, divided among threads without a change of any bit.
//
// A request's positions are cut at fixed places, whatever its pages, its length and the batch:
//
//   position   0     64    128   192   256                       512
//              |chunk|chunk|chunk|chunk|chunk|chunk|chunk|chunk|chunk ...
//              |         span          |         span          |    ...
//
// A row sees the chunks of a span in ascending order, which gives one partial result for each span,
// and its partial results are merged in ascending order by log-sum-exp (as in Flash-Decoding, Dao
// et al., 2023). That is the order of summation of every row.
//
// Invariant: the order follows from the row's position alone. So decodes and prefills, alone, in a
// batch, grouped over shared pages, and cut into whatever prefill chunks, give the same bits. Who
// computes a span, and with which other rows beside, is free: `attention_plan.cpp` decides it.

#include "attention.h"

#include <algorithm>

#include "pool.h"

namespace chatserve {
namespace {

// What a thread needs for its tasks: memory, kept from step to step.
struct Scratch {
  ChunkTile tile;
  ChunkRows chunks[2];  // the one that is worked on and the next
  Buffer<bf16> q;       // the rows of a task, [num_rows, head_dim]
  std::vector<float*> states;
  std::vector<int64_t> num_visible;
  Buffer<float> partials;  // the states of a prefill's rows in this span
  Buffer<float> totals;    // and in the spans before

  static Scratch& of_this_thread() {
    thread_local Scratch scratch;
    return scratch;
  }

  QueryRows rows(int64_t first, int64_t end, int64_t head_dim) {
    return {q.data() + first * head_dim, states.data() + first, num_visible.data() + first,
            end - first};
  }
};

}  // namespace

void AttentionPlan::attend(const bf16* q, const PagedKV& kv, float scale, bf16* out) const {
  thread_local Buffer<float> partials;
  const int64_t num_floats = first_partials_.back() * state_size(heads_.head_dim);
  const Call call{q, kv, scale, out, partials.reserve(num_floats)};
  const int64_t num_kv_heads = heads_.num_kv_heads;
  const int64_t num_prefills = static_cast<int64_t>(prefill_tasks_.size());
  const int64_t num_tasks = num_prefills + static_cast<int64_t>(decode_tasks_.size());
  Pool::instance().run(num_tasks * num_kv_heads, [&](int64_t i) {
    const int64_t task = i / num_kv_heads, kv_head = i % num_kv_heads;
    if (task < num_prefills) return run_prefill(call, prefill_tasks_[task], kv_head);
    run_decode(call, decode_tasks_[task - num_prefills], kv_head);
  });
  Pool::instance().run(batch_.num_decodes * num_kv_heads, [&](int64_t i) {
    finish_decode(call, i / num_kv_heads, i % num_kv_heads);
  });
}

int64_t AttentionPlan::query_at(int64_t token, int64_t head) const {
  return (token * heads_.num_heads + head) * heads_.head_dim;
}

float* AttentionPlan::partial(const Call& call, int64_t request, int64_t span,
                              int64_t head) const {
  const int64_t state = first_partials_[request] + span * heads_.num_heads + head;
  return call.partials + state * state_size(heads_.head_dim);
}

AttentionPlan::ChunkPlace AttentionPlan::place_of(const Piece& piece, int64_t kv_head) const {
  return {decode_pages(order_[piece.first]), piece.chunk, piece.num_tokens, kv_head};
}

// Follow the page table, one page after the other.
void AttentionPlan::locate(const PagedKV& kv, const ChunkPlace& place, ChunkRows& rows) const {
  const int64_t slot_size = heads_.num_kv_heads * heads_.head_dim;
  rows.num_tokens = place.num_tokens;
  for (int64_t token = 0; token < place.num_tokens;) {
    const int64_t position = place.chunk * kChunkTokens + token;
    const int64_t offset = position % page_size_;
    const int64_t slot = place.pages[position / page_size_] * page_size_ + offset;
    const int64_t end = std::min(place.num_tokens, token + page_size_ - offset);
    int64_t at = slot * slot_size + place.kv_head * heads_.head_dim;
    for (; token < end; ++token, at += slot_size) {
      rows.keys[token] = kv.k + at;
      rows.values[token] = kv.v + at;
    }
  }
}

// While a chunk is worked on, the next one is fetched from memory: that of the same thread's next
// task, if it was the last one of a task.
void AttentionPlan::run_decode(const Call& call, const DecodeTask& task, int64_t kv_head) const {
  begin_decode(call, task, kv_head);
  Scratch& scratch = Scratch::of_this_thread();
  const bool is_last_head = kv_head + 1 == heads_.num_kv_heads;
  locate(call.kv, place_of(pieces_[task.first_piece], kv_head), scratch.chunks[0]);
  for (int64_t i = task.first_piece; i < task.end_piece; ++i) {
    const bool is_last = i + 1 == task.end_piece;
    const size_t next = is_last && !is_last_head ? task.first_piece : i + 1;
    const int64_t next_head = !is_last ? kv_head : is_last_head ? 0 : kv_head + 1;
    scratch.chunks[1].num_tokens = 0;
    if (next < pieces_.size()) {
      locate(call.kv, place_of(pieces_[next], next_head), scratch.chunks[1]);
    }
    Fetcher fetcher(scratch.chunks[1], heads_.head_dim);
    scratch.tile.pack(scratch.chunks[0], heads_.head_dim, fetcher);
    const Piece& piece = pieces_[i];
    const int64_t first = (piece.first - task.first) * heads_per_kv_;
    const int64_t end = (piece.end - task.first) * heads_per_kv_;
    std::fill_n(scratch.num_visible.begin() + first, end - first, piece.num_tokens);
    scratch.tile.attend(scratch.rows(first, end, heads_.head_dim), call.scale, fetcher);
    std::swap(scratch.chunks[0], scratch.chunks[1]);
  }
}

// Gather the rows of a task. Their states are where the second loop finds them.
void AttentionPlan::begin_decode(const Call& call, const DecodeTask& task,
                                 int64_t kv_head) const {
  Scratch& scratch = Scratch::of_this_thread();
  const int64_t first_head = kv_head * heads_per_kv_;
  const int64_t num_rows = (task.end - task.first) * heads_per_kv_;
  bf16* to = scratch.q.reserve(num_rows * heads_.head_dim);
  scratch.num_visible.resize(num_rows);
  scratch.states.clear();
  for (int64_t i = task.first; i < task.end; ++i) {
    const bf16* from = call.q + query_at(order_[i], first_head);
    to = std::copy_n(from, heads_per_kv_ * heads_.head_dim, to);
    for (int64_t head = first_head; head < first_head + heads_per_kv_; ++head) {
      scratch.states.push_back(partial(call, order_[i], task.span, head));
      clear_state(scratch.states.back(), heads_.head_dim);
    }
  }
}

void AttentionPlan::finish_decode(const Call& call, int64_t request, int64_t kv_head) const {
  const int64_t end_span = num_spans(batch_.decode_seq_lens[request]);
  float* const total = Scratch::of_this_thread().totals.reserve(state_size(heads_.head_dim));
  for (int64_t i = 0; i < heads_per_kv_; ++i) {
    const int64_t head = kv_head * heads_per_kv_ + i;
    clear_state(total, heads_.head_dim);
    for (int64_t span = 0; span < end_span; ++span) {
      merge_state(total, partial(call, request, span, head), heads_.head_dim);
    }
    write_state(total, heads_.head_dim, call.out + query_at(request, head));
  }
}

void AttentionPlan::run_prefill(const Call& call, const PrefillTask& task,
                                int64_t kv_head) const {
  Scratch& scratch = Scratch::of_this_thread();
  const int64_t head_dim = heads_.head_dim, size = state_size(head_dim);
  const int64_t num_rows = task.num_tokens * heads_per_kv_;
  const int64_t first_head = kv_head * heads_per_kv_;
  float* const totals = scratch.totals.reserve(num_rows * size);
  float* const partials = scratch.partials.reserve(num_rows * size);
  bf16* to = scratch.q.reserve(num_rows * head_dim);
  scratch.num_visible.resize(num_rows);
  scratch.states.clear();
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t token = task.first_token + row / heads_per_kv_;
    const int64_t from = query_at(token, first_head + row % heads_per_kv_);
    to = std::copy_n(call.q + from, head_dim, to);
    scratch.states.push_back(partials + row * size);
    clear_state(totals + row * size, head_dim);
  }
  const int64_t end = task.first_position + task.num_tokens;
  for (int64_t span = 0; span < num_spans(end); ++span) {
    run_prefill_span(call, task, kv_head, span);
  }
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t token = task.first_token + row / heads_per_kv_;
    const int64_t head = first_head + row % heads_per_kv_;
    write_state(totals + row * size, head_dim, call.out + query_at(token, head));
  }
}

int64_t AttentionPlan::first_row_that_sees(const PrefillTask& task, int64_t position) const {
  return std::max<int64_t>(0, position - task.first_position) * heads_per_kv_;
}

// Rows that see nothing of the span are left out, since there is nothing to merge.
void AttentionPlan::run_prefill_span(const Call& call, const PrefillTask& task, int64_t kv_head,
                                     int64_t span) const {
  Scratch& scratch = Scratch::of_this_thread();
  const int64_t head_dim = heads_.head_dim;
  const int64_t num_rows = task.num_tokens * heads_per_kv_;
  const int64_t end = task.first_position + task.num_tokens;
  const int32_t* pages = batch_.prefill_page_table + task.request * batch_.prefill_max_pages;
  const int64_t first_of_span = first_row_that_sees(task, span * kSpanTokens);
  for (int64_t row = first_of_span; row < num_rows; ++row) {
    clear_state(scratch.states[row], head_dim);
  }
  for (int64_t i = 0; i < kSpanChunks; ++i) {
    const int64_t chunk = span * kSpanChunks + i, begin = chunk * kChunkTokens;
    if (begin >= end) break;
    const int64_t first = first_row_that_sees(task, begin);
    for (int64_t row = first; row < num_rows; ++row) {
      const int64_t num_seen = task.first_position + row / heads_per_kv_ + 1 - begin;
      scratch.num_visible[row] = std::min(kChunkTokens, num_seen);
    }
    const int64_t num_tokens = std::min(kChunkTokens, end - begin);
    locate(call.kv, {pages, chunk, num_tokens, kv_head}, scratch.chunks[0]);
    scratch.chunks[1].num_tokens = 0;
    Fetcher fetcher(scratch.chunks[1], head_dim);
    scratch.tile.pack(scratch.chunks[0], head_dim, fetcher);
    scratch.tile.attend(scratch.rows(first, num_rows, head_dim), call.scale, fetcher);
  }
  float* const totals = scratch.totals.data();
  for (int64_t row = first_of_span; row < num_rows; ++row) {
    merge_state(totals + row * state_size(head_dim), scratch.states[row], head_dim);
  }
}

}  // namespace chatserve
