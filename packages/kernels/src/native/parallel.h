// A pool of threads for loops that take tens of microseconds. One process has one pool, which all kernels share.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "vectors.h"

/** Returns the number of threads of a loop, the caller's included: TF_NUM_INTRAOP_THREADS, or one per hardware thread. */
inline int64_t threadCount() {
  static const int64_t count = [] {
    const char* wanted = std::getenv("TF_NUM_INTRAOP_THREADS");
    const int64_t threads = wanted == nullptr ? 0 : std::atoll(wanted);
    return threads > 0 ? threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
  }();
  return count;
}

/** In its scope, this thread computes with zeros in place of denormal numbers, as TensorFlow's threads do. */
class FlushDenormals {
 public:
  FlushDenormals() { write(before_ | flags); }
  ~FlushDenormals() { write(before_); }

 private:
#if defined(__x86_64__)
  static constexpr uint32_t flags = 0x8040;
  static uint32_t read() { return __builtin_ia32_stmxcsr(); }
  static void write(uint32_t state) { __builtin_ia32_ldmxcsr(state); }
  const uint32_t before_ = read();
#elif defined(__aarch64__)
  static constexpr uint64_t flags = 1 << 24;
  static uint64_t read() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state)); }
  const uint64_t before_ = read();
#else
  static constexpr int flags = 0, before_ = 0;
  static void write(int) {}
#endif
};

class Pool {
 public:
  using Run = void (*)(const void*, int64_t);

  Pool() {
    for (int64_t i = 1; i < threadCount(); i++) std::thread([this] { serve(); }).detach();
  }

  /** Calls run(body, task) for each task from 0 to tasks − 1, in any order. Returns when all are done; the caller works too. */
  void run(int64_t tasks, const void* body, Run run) {
    if (tasks == 1 || threadCount() == 1) {
      for (int64_t task = 0; task < tasks; task++) run(body, task);
      return;
    }
    // Operations that TensorFlow starts at the same time run one after the other, each on all threads.
    std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    for (int spin = 0; spin < 2000 && !lock.owns_lock(); spin++) {
      relax();
      (void)lock.try_lock();
    }
    if (!lock.owns_lock()) lock.lock();
    body_ = body;
    run_ = run;
    tasks_ = tasks;
    next_.store(0, std::memory_order_relaxed);
    open_.store(true, std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    work();
    open_.store(false, std::memory_order_seq_cst);
    // Other programs may have the CPU of a thread that this one waits for.
    for (int spin = 0; busy_.load(std::memory_order_seq_cst) != 0; spin++) spin < 20000 ? relax() : std::this_thread::yield();
  }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  void work() {
    for (int64_t task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) run_(body_, task);
  }

  void serve() {
    const FlushDenormals flush;
    uint32_t seen = 0;
    for (;;) {
      // The next operation often follows within microseconds.
      for (int spin = 0; spin < 2000 && round_.load(std::memory_order_acquire) == seen; spin++) relax();
      round_.wait(seen, std::memory_order_acquire);
      seen = round_.load(std::memory_order_acquire);
      busy_.fetch_add(1, std::memory_order_seq_cst);
      if (open_.load(std::memory_order_seq_cst)) work();
      busy_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  std::mutex mutex_;
  const void* body_ = nullptr;
  Run run_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_{0};
  std::atomic<bool> open_{false};
  std::atomic<int64_t> busy_{0};
  std::atomic<uint32_t> round_{0};
};

/** Returns the pool that all kernels share. Never destroyed: its threads run until the process ends. */
inline Pool& pool() {
  static Pool* const shared = new Pool();
  return *shared;
}

/** Runs body(task) for each task from 0 to tasks − 1, on the threads of the pool. */
template <typename Body>
void parallelFor(int64_t tasks, const Body& body) {
  const FlushDenormals flush;
  pool().run(tasks, &body, [](const void* of, int64_t task) { (*static_cast<const Body*>(of))(task); });
}

/** Splits 0 to count − 1 into ranges of about `smallest` indices or more, and runs body(first, last) for each; `last` is exclusive. */
template <typename Body>
void inRanges(int64_t count, int64_t smallest, const Body& body) {
  const int64_t ranges = std::max<int64_t>(1, std::min(4 * threadCount(), count / std::max<int64_t>(1, smallest)));
  // Multiples of 64 indices, so that two threads write to different cache lines.
  const int64_t size = count <= 64 ? count : ((count + ranges - 1) / ranges + 63) / 64 * 64;
  if (ranges == 1) return parallelFor(1, [&](int64_t) { body(0, count); });
  parallelFor((count + size - 1) / size, [&](int64_t range) { body(range * size, std::min(count, (range + 1) * size)); });
}

/** Calls body(i, lanes) as `eachVector` does for `count` numbers, in ranges of about `smallest` numbers or more. */
template <typename Body>
void inVectors(int64_t count, int64_t smallest, const Body& body) {
  inRanges(count, smallest, [&](int64_t first, int64_t last) {
    eachVector(last - first, [&](int64_t i, int64_t size) __attribute__((always_inline)) { body(first + i, size); });
  });
}
