// Threads for loops whose iterations are independent of each other.
//
// Owns the threads. Knows nothing of what they compute, and nothing that they compute can depend
// on how many they are or on which of them took an iteration.
//
// The one idea: every thread, the caller among them, has a contiguous share of the iterations and
// works through it in order, so that it reads memory as one stream; whoever is done helps the
// others. The caller waits only for iterations that somebody has begun. So a thread that is asleep,
// or whose core is busy with another process, costs its part of the work, and at worst the
// iteration it has begun, where at a barrier everyone would wait for it. After a loop a thread
// spins for some microseconds, since the next one usually follows at once and waking a sleeping
// thread takes longer than most loops do.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace chatserve {

class Pool {
 public:
  // The pool of this process. It is never destroyed: its threads run until the process ends. A
  // child made by fork has none of them, and works alone as long as nobody resizes its pool.
  static Pool& instance();

  // Let `num_threads` threads share a loop from now on, the caller among them.
  void resize(int num_threads);

  int64_t num_threads() const { return static_cast<int64_t>(num_shares_); }

  // Call `body(i)` once for each i in [0, count), and return when all calls have returned.
  template <class Body>
  void run(int64_t count, const Body& body) {
    run_loop({[](const void* of, int64_t i) { (*static_cast<const Body*>(of))(i); }, &body, count});
  }

 private:
  struct Loop {
    void (*call)(const void* body, int64_t i);
    const void* body;
    int64_t count;
  };

  // On a cache line of its own, since its owner counts it down without pause.
  struct alignas(64) Share {
    std::atomic<int64_t> untaken{0};
  };

  void run_loop(const Loop& loop);
  void take_iterations(size_t self);
  int64_t share_end(size_t share) const;
  void serve(size_t self);
  void wait_for_work(size_t self);
  void close();

  std::mutex callers_;  // one loop at a time
  Loop loop_{};         // constant while an iteration of it is not done
  size_t num_shares_ = 1;
  std::unique_ptr<Share[]> shares_{new Share[1]};
  alignas(64) std::atomic<int64_t> undone_{0};
  alignas(64) std::atomic<int> num_asleep_{0};
  std::atomic<bool> is_closing_{false};
  std::mutex sleep_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace chatserve
