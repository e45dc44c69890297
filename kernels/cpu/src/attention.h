// Attention over paged KV: decode, prefill after a cached prefix, and decode over shared pages.
//
// `attention_plan.cpp` divides the work of a step, `attention.cpp` does it.

#pragma once

#include <cstdint>
#include <vector>

#include "attention_chunk.h"
#include "rows.h"
#include "simd.h"

namespace chatserve {

// The chunks of a span give one partial result. Four are few enough to divide a long request among
// many threads, and enough to make merging cheap.
constexpr int64_t kSpanChunks = 4;
constexpr int64_t kSpanTokens = kSpanChunks * kChunkTokens;

constexpr int64_t num_spans(int64_t seq_len) { return (seq_len + kSpanTokens - 1) / kSpanTokens; }

// Where the rows of a step live and what they may see, as `AttentionBatch` in kernels/ops.py says.
// Rows [0, num_decodes) are one token of one request each, the others the queries of prefills.
struct AttentionBatch {
  int64_t num_decodes;
  const int32_t* decode_page_table;  // [num_decodes, decode_max_pages]
  int64_t decode_max_pages;
  const int32_t* decode_seq_lens;  // [num_decodes], this step's token included
  int64_t num_prefills;
  const int32_t* prefill_page_table;  // [num_prefills, prefill_max_pages]
  int64_t prefill_max_pages;
  const int32_t* prefill_seq_lens;  // [num_prefills], this step's tokens included
  const int32_t* cu_seqlens_q;      // [num_prefills + 1]
};

// One layer's KV; both are [num_pages, page_size, num_kv_heads, head_dim].
struct PagedKV {
  const bf16* k;
  const bf16* v;
};

// How the threads divide the attention of one step, the same in every layer.
//
// Owns the tasks and which decodes share pages. The tensors of the batch belong to the caller and
// must live as long as the plan.
class AttentionPlan {
 public:
  // head_dim is even and at most kMaxHeadDim.
  AttentionPlan(const AttentionBatch& batch, const HeadShape& heads, int64_t page_size);

  // Attend q [num_tokens, num_heads, head_dim] to one layer's KV; out has the shape of q.
  void attend(const bf16* q, const PagedKV& kv, float scale, bf16* out) const;

 private:
  // A tile of a prefill's queries, with everything they see.
  struct PrefillTask {
    int64_t request;
    int64_t first_token;  // row of q
    int64_t num_tokens;
    int64_t first_position;
  };

  // A chunk of the decodes [first, end) of `order_`, which share it.
  struct Piece {
    int64_t chunk;
    int64_t first;
    int64_t end;
    int64_t num_tokens;
  };

  // A span of the decodes [first, end) of `order_`: some pieces of `pieces_`, chunk by chunk.
  struct DecodeTask {
    int64_t first;
    int64_t end;
    int64_t span;
    int64_t first_piece;
    int64_t end_piece;
  };

  // Some KV heads.
  struct Heads {
    int64_t first;
    int64_t count;
  };

  struct Call {
    const bf16* q;
    PagedKV kv;
    float scale;
    bf16* out;
    float* partials;  // a state for every decode, span and head
  };

  struct ChunkPlace {
    const int32_t* pages;
    int64_t chunk;
    int64_t num_tokens;
    int64_t kv_head;
  };

  void plan_prefills();
  void sort_decodes();
  void plan_decodes();
  void plan_pieces(DecodeTask& task);
  int64_t reach(int64_t first, int64_t end) const;
  int64_t num_shared_chunks(int64_t a, int64_t b) const;
  int64_t group_end(int64_t first, int64_t limit, int64_t chunk) const;

  void run_decode(const Call& call, const DecodeTask& task, const Heads& heads) const;
  void begin_decode(const Call& call, const DecodeTask& task, const Heads& heads) const;
  void locate_next(const PagedKV& kv, const DecodeTask& task, int64_t piece, const Heads& heads,
                   ChunkRows& rows) const;
  void finish_decode(const Call& call, int64_t request, int64_t kv_head) const;
  void run_prefill(const Call& call, const PrefillTask& task, int64_t kv_head) const;
  void run_prefill_span(const Call& call, const PrefillTask& task, int64_t kv_head,
                        int64_t span) const;

  ChunkPlace place_of(const Piece& piece, int64_t kv_head) const;
  void locate(const PagedKV& kv, const ChunkPlace& place, ChunkRows& rows) const;
  float* partial(const Call& call, int64_t request, int64_t span, int64_t head) const;
  int64_t query_at(int64_t token, int64_t head) const;
  int64_t first_row_that_sees(const PrefillTask& task, int64_t position) const;
  const int32_t* decode_pages(int64_t request) const;

  AttentionBatch batch_;
  HeadShape heads_;
  int64_t page_size_;
  int64_t heads_per_kv_;
  int64_t task_heads_ = 1;  // KV heads that a decode's task goes through, a divisor of them all
  std::vector<PrefillTask> prefill_tasks_;
  std::vector<DecodeTask> decode_tasks_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> order_;           // decodes, those with the same first pages side by side
  std::vector<int64_t> shared_chunks_;   // with the one before it in `order_`, from the start
  std::vector<int64_t> first_partials_;  // [num_decodes + 1], where a decode's partials begin
};

}  // namespace chatserve
