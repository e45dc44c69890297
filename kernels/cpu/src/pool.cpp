#include "pool.h"

#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace chatserve {
namespace {

// Longer than what usually lies between two loops of a step, much shorter than a step.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kLooksPerClock = 16;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Ask until the answer is yes or the time is over; return the last answer.
template <class Question>
bool spin_until(const Question& is_so) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (is_so()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return is_so();
}

}  // namespace

Pool& Pool::instance() {
  static Pool* const pool = new Pool;
  return *pool;
}

void Pool::resize(int num_threads) {
  const std::lock_guard<std::mutex> caller(callers_);
  if (static_cast<size_t>(num_threads) == num_shares_) return;
  close();
  num_shares_ = static_cast<size_t>(num_threads);
  shares_.reset(new Share[num_shares_]);
  for (size_t i = 1; i < num_shares_; ++i) workers_.emplace_back(&Pool::serve, this, i);
}

void Pool::run_loop(const Loop& loop) {
  const std::lock_guard<std::mutex> caller(callers_);
  if (num_shares_ == 1 || loop.count <= 1) {
    for (int64_t i = 0; i < loop.count; ++i) loop.call(loop.body, i);
    return;
  }
  loop_ = loop;
  undone_ = loop.count;
  for (size_t i = 0; i < num_shares_; ++i) {
    const int64_t begin = i == 0 ? 0 : share_end(i - 1);
    shares_[i].untaken = share_end(i) - begin;  // from here on the share can be taken from
  }
  if (num_asleep_ > 0) {
    // Who counts itself asleep holds this lock until it is.
    sleep_.lock();
    sleep_.unlock();
    wake_.notify_all();
  }
  take_iterations(0);
  const auto is_done = [this] { return undone_.load(std::memory_order_acquire) == 0; };
  while (!spin_until(is_done)) std::this_thread::yield();
}

// A thread that comes late may find shares of the next loop here: that is work for it all the same.
// `loop_` is read only after an iteration was taken, and stays what it is until that one is done.
void Pool::take_iterations(size_t self) {
  int64_t num_done = 0;
  for (size_t i = 0; i < num_shares_; ++i) {
    const size_t share = (self + i) % num_shares_;
    for (;;) {
      const int64_t left = shares_[share].untaken.fetch_sub(1, std::memory_order_acq_rel);
      if (left <= 0) break;
      loop_.call(loop_.body, share_end(share) - left);
      ++num_done;
    }
  }
  undone_.fetch_sub(num_done, std::memory_order_release);
}

int64_t Pool::share_end(size_t share) const {
  return loop_.count * static_cast<int64_t>(share + 1) / static_cast<int64_t>(num_shares_);
}

void Pool::serve(size_t self) {
  while (!is_closing_) {
    wait_for_work(self);
    take_iterations(self);
  }
}

void Pool::wait_for_work(size_t self) {
  const auto has_work = [this, self] { return shares_[self].untaken > 0 || is_closing_; };
  if (spin_until(has_work)) return;
  std::unique_lock<std::mutex> lock(sleep_);
  ++num_asleep_;
  wake_.wait(lock, has_work);
  --num_asleep_;
}

void Pool::close() {
  sleep_.lock();
  is_closing_ = true;
  sleep_.unlock();
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  is_closing_ = false;
}

}  // namespace chatserve
