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
  ChunkRows chunk;      // the one that is worked on
  ChunkRows next;       // the one that is fetched meanwhile
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
  const int64_t num_kv_heads = heads_.num_kv_heads, num_blocks = num_kv_heads / task_heads_;
  const auto num_prefills = static_cast<int64_t>(prefill_tasks_.size()) * num_kv_heads;
  const auto num_decodes = static_cast<int64_t>(decode_tasks_.size()) * num_blocks;
  Pool::instance().run(num_prefills + num_decodes, [&](int64_t i) {
    if (i < num_prefills) {
      return run_prefill(call, prefill_tasks_[i / num_kv_heads], i % num_kv_heads);
    }
    i -= num_prefills;
    run_decode(call, decode_tasks_[i / num_blocks], {i % num_blocks * task_heads_, task_heads_});
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

// While a chunk is worked on, the next one is fetched from memory.
void AttentionPlan::run_decode(const Call& call, const DecodeTask& task,
                               const Heads& heads) const {
  begin_decode(call, task, heads);
  Scratch& scratch = Scratch::of_this_thread();
  const int64_t rows_per_head = (task.end - task.first) * heads_per_kv_;
  for (int64_t i = task.first_piece; i < task.end_piece; ++i) {
    const Piece& piece = pieces_[i];
    locate_next(call.kv, task, i, heads, scratch.next);
    Fetcher fetcher(scratch.next, heads.count * heads_.head_dim);
    for (int64_t head = 0; head < heads.count; ++head) {
      const int64_t first = head * rows_per_head + (piece.first - task.first) * heads_per_kv_;
      const int64_t end = head * rows_per_head + (piece.end - task.first) * heads_per_kv_;
      std::fill_n(scratch.num_visible.begin() + first, end - first, piece.num_tokens);
      locate(call.kv, place_of(piece, heads.first + head), scratch.chunk);
      scratch.tile.pack(scratch.chunk, heads_.head_dim, fetcher);
      scratch.tile.attend(scratch.rows(first, end, heads_.head_dim), call.scale, fetcher);
    }
  }
}

// Find what the thread reads after a piece: the next one, at the end of a task the first one of the
// same task's other heads, and after those that of the task behind it.
void AttentionPlan::locate_next(const PagedKV& kv, const DecodeTask& task, int64_t piece,
                                const Heads& heads, ChunkRows& rows) const {
  const bool is_last = piece + 1 == task.end_piece;
  const bool is_last_head = heads.first + heads.count == heads_.num_kv_heads;
  const int64_t next = is_last && !is_last_head ? task.first_piece : piece + 1;
  const int64_t head = !is_last ? heads.first : is_last_head ? 0 : heads.first + heads.count;
  rows.num_tokens = 0;
  if (next < static_cast<int64_t>(pieces_.size())) locate(kv, place_of(pieces_[next], head), rows);
}

// Gather the rows of a task, head by head. Their states are where the second loop finds them.
void AttentionPlan::begin_decode(const Call& call, const DecodeTask& task,
                                 const Heads& heads) const {
  Scratch& scratch = Scratch::of_this_thread();
  const int64_t num_rows = (task.end - task.first) * heads.count * heads_per_kv_;
  bf16* to = scratch.q.reserve(num_rows * heads_.head_dim);
  scratch.num_visible.resize(num_rows);
  scratch.states.clear();
  for (int64_t kv_head = heads.first; kv_head < heads.first + heads.count; ++kv_head) {
    const int64_t first_head = kv_head * heads_per_kv_;
    for (int64_t i = task.first; i < task.end; ++i) {
      const bf16* from = call.q + query_at(order_[i], first_head);
      to = std::copy_n(from, heads_per_kv_ * heads_.head_dim, to);
      for (int64_t head = first_head; head < first_head + heads_per_kv_; ++head) {
        scratch.states.push_back(partial(call, order_[i], task.span, head));
        clear_state(scratch.states.back(), heads_.head_dim);
      }
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
    locate(call.kv, {pages, chunk, num_tokens, kv_head}, scratch.chunk);
    scratch.next.num_tokens = 0;
    if (begin + kChunkTokens < end) {
      const int64_t num_next = std::min(kChunkTokens, end - begin - kChunkTokens);
      locate(call.kv, {pages, chunk + 1, num_next, kv_head}, scratch.next);
    }
    Fetcher fetcher(scratch.next, head_dim);
    scratch.tile.pack(scratch.chunk, head_dim, fetcher);
    scratch.tile.attend(scratch.rows(first, num_rows, head_dim), call.scale, fetcher);
  }
  float* const totals = scratch.totals.data();
  for (int64_t row = first_of_span; row < num_rows; ++row) {
    merge_state(totals + row * state_size(head_dim), scratch.states[row], head_dim);
  }
}

}  // namespace chatserve
