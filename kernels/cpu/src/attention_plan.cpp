// Who computes what of a step's attention, decided once for all layers.
//
// - A decode's spans are tasks of their own, so that one long request occupies all threads. Their
//   partial results wait in memory until a second loop merges them.
// - Decodes that share pages are rows of one task, which reads the shared chunks once. Sorting the
//   decodes by their page ids brings them together: the group of a chunk is a run of neighbours
//   that agree up to its end. Groups of any number and depth come out of the same list.
//
//     decode   pages of each chunk      chunk 0   chunk 1   chunk 2   shared_chunks_
//     a        7 1 | 4 9 | 3            a         a         a         0
//     b        7 1 | 4 9 | 6 2          |         |         b         2
//     c        7 1 | 5 8                |         c                   1
//     d        2 0 | 3 6                d         d                   0
//
// - A prefill's tile of queries is one task, which goes through all that its rows see.
//
// The query heads that share a KV head are rows of a task. A prefill's task is done for one KV
// head, and so is that of a decode where there are few. Where there are many, a task goes through
// all heads, chunk by chunk: their KV lies side by side, and memory is fastest when it is read in
// order.

#include <algorithm>
#include <cstring>
#include <utility>

#include "attention.h"
#include "pool.h"

namespace chatserve {
namespace {

// Enough rows to make packing a chunk cheap beside computing with it, and few enough for tasks of
// about the same size and for states that stay in the second cache.
constexpr int64_t kTaskRows = 96;

// With fewer tasks than this for each thread, the threads would not end together.
constexpr int64_t kMinTasksPerThread = 4;

int64_t num_pages(int64_t seq_len, int64_t page_size) {
  return (seq_len + page_size - 1) / page_size;
}

}  // namespace

AttentionPlan::AttentionPlan(const AttentionBatch& batch, const HeadShape& heads, int64_t page_size)
    : batch_(batch),
      heads_(heads),
      page_size_(page_size),
      heads_per_kv_(heads.num_heads / heads.num_kv_heads) {
  plan_prefills();
  sort_decodes();
  plan_decodes();
}

// Later tiles see more and take longer. They come first, so that the threads end together.
void AttentionPlan::plan_prefills() {
  const int64_t height = std::max<int64_t>(1, kTaskRows / heads_per_kv_);
  for (int64_t request = 0; request < batch_.num_prefills; ++request) {
    const int64_t begin = batch_.cu_seqlens_q[request];
    const int64_t num_queries = batch_.cu_seqlens_q[request + 1] - begin;
    const int64_t first_position = batch_.prefill_seq_lens[request] - num_queries;
    for (int64_t i = 0; i < num_queries; i += height) {
      prefill_tasks_.push_back({request, batch_.num_decodes + begin + i,
                                std::min(height, num_queries - i), first_position + i});
    }
  }
  std::sort(prefill_tasks_.begin(), prefill_tasks_.end(),
            [](const PrefillTask& a, const PrefillTask& b) {
              return a.first_position > b.first_position;
            });
}

const int32_t* AttentionPlan::decode_pages(int64_t request) const {
  return batch_.decode_page_table + request * batch_.decode_max_pages;
}

// Sort by page ids, byte by byte: any order will do that keeps equal beginnings together.
void AttentionPlan::sort_decodes() {
  const int32_t* const seq_lens = batch_.decode_seq_lens;
  for (int64_t request = 0; request < batch_.num_decodes; ++request) order_.push_back(request);
  std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
    const int64_t count = num_pages(std::min(seq_lens[a], seq_lens[b]), page_size_);
    const int compared = std::memcmp(decode_pages(a), decode_pages(b), count * sizeof(int32_t));
    return compared != 0 ? compared < 0 : seq_lens[a] < seq_lens[b];
  });
  for (size_t i = 0; i < order_.size(); ++i) {
    shared_chunks_.push_back(i == 0 ? 0 : num_shared_chunks(order_[i - 1], order_[i]));
  }
}

// Return how many chunks two decodes have in common from the start, whole and in the same pages.
int64_t AttentionPlan::num_shared_chunks(int64_t a, int64_t b) const {
  const int64_t seq_len = std::min(batch_.decode_seq_lens[a], batch_.decode_seq_lens[b]);
  const int32_t* const pages = decode_pages(a);
  const int32_t* const end = pages + num_pages(seq_len, page_size_);
  const int64_t num_shared = std::mismatch(pages, end, decode_pages(b)).first - pages;
  return std::min(num_shared * page_size_, seq_len) / kChunkTokens;
}

// Return the end of the decodes in `order_` that share a chunk with `first`, at most `limit`.
int64_t AttentionPlan::group_end(int64_t first, int64_t limit, int64_t chunk) const {
  int64_t end = first + 1;
  while (end < limit && shared_chunks_[end] > chunk) ++end;
  return end;
}

// Tasks lie in the order of their requests: a thread's share of them holds long and short spans,
// and whoever helps another takes little that the other has begun to fetch.
void AttentionPlan::plan_decodes() {
  int64_t longest = 0;
  first_partials_.push_back(0);
  for (int64_t request = 0; request < batch_.num_decodes; ++request) {
    const int64_t seq_len = batch_.decode_seq_lens[request];
    const int64_t num_partials = num_spans(seq_len) * heads_.num_heads;
    first_partials_.push_back(first_partials_.back() + num_partials);
    longest = std::max(longest, seq_len);
  }
  const int64_t most_requests = std::max<int64_t>(1, kTaskRows / heads_per_kv_);
  for (int64_t span = 0; span < num_spans(longest); ++span) {
    for (int64_t first = 0, end; first < batch_.num_decodes; first = end) {
      const int64_t limit = std::min(batch_.num_decodes, first + most_requests);
      end = group_end(first, limit, span * kSpanChunks);
      if (reach(first, end) > span * kSpanTokens) decode_tasks_.push_back({first, end, span, 0, 0});
    }
  }
  std::sort(decode_tasks_.begin(), decode_tasks_.end(),
            [](const DecodeTask& a, const DecodeTask& b) {
              return std::make_pair(a.first, a.span) < std::make_pair(b.first, b.span);
            });
  for (DecodeTask& task : decode_tasks_) plan_pieces(task);
  const auto num_tasks = static_cast<int64_t>(decode_tasks_.size());
  const bool is_many = num_tasks >= kMinTasksPerThread * Pool::instance().num_threads();
  task_heads_ = is_many ? heads_.num_kv_heads : 1;
}

// Return the tokens of the longest of the decodes [first, end) of `order_`.
int64_t AttentionPlan::reach(int64_t first, int64_t end) const {
  int64_t longest = 0;
  for (int64_t i = first; i < end; ++i) {
    longest = std::max<int64_t>(longest, batch_.decode_seq_lens[order_[i]]);
  }
  return longest;
}

// Cut a span of decodes that share at least its first chunk, if they reach it, into pieces.
void AttentionPlan::plan_pieces(DecodeTask& task) {
  task.first_piece = static_cast<int64_t>(pieces_.size());
  for (int64_t i = 0; i < kSpanChunks; ++i) {
    const int64_t chunk = task.span * kSpanChunks + i;
    for (int64_t first = task.first, end; first < task.end; first = end) {
      end = group_end(first, task.end, chunk);
      const int64_t left = batch_.decode_seq_lens[order_[first]] - chunk * kChunkTokens;
      if (left > 0) pieces_.push_back({chunk, first, end, std::min(left, kChunkTokens)});
    }
  }
  task.end_piece = static_cast<int64_t>(pieces_.size());
}

}  // namespace chatserve
