// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The threads behind Reclaim: one grace thread and the teardown workers. Internal to lib/reclaim.
//
// The control thread reaches them through two wait-free queues only (retired objects in, finished chunks
// out); the mutex here is between the grace thread and the teardown workers, and control takes it with
// try_lock alone, for statistics.

#include <semaphore.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "reclaim/reclaim.hpp"

namespace mayfly {

// Objects of one batch that one teardown worker finished in one go, on their way back to control.
struct FinishedChunk {
  cds_wfcq_node link;
  uint64_t batch = 0;
  uint64_t nodes = 0;    // drained objects, barriers included
  uint64_t objects = 0;  // without barriers
  uint64_t bytes = 0;
  uint64_t batch_nodes = 0;  // how many the batch held in all, in the chunk that emptied it; otherwise 0
  Returns returns;
};

class Reclaim::Teardown {
 public:
  Teardown(const TeardownConfig& config, RetiredKindId barrier_kind);
  ~Teardown();

  Status start();
  void stop();  // joins; nothing may be queued any more

  // Control thread, wait-free.
  void push(__cds_wfcq_head& head, cds_wfcq_tail& tail) noexcept;
  // Control thread: the next finished chunk, nullptr when none; *more when one is on its way.
  std::unique_ptr<FinishedChunk> pop(bool* more) noexcept;
  int completion_fd() const noexcept { return completion_fd_; }
  void clear_completion() noexcept;
  void set_boost(bool boost) noexcept { boost_.store(boost, std::memory_order_relaxed); }
  void describe(ReclaimStatistics& statistics) const;

 private:
  static constexpr uint64_t kGraceSpacingNs = 100 * kNsPerUs;
  static constexpr uint32_t kChunkObjects = 1024;

  struct Batch {
    uint64_t number = 0;
    __cds_wfcq_head head;
    cds_wfcq_tail tail;
    uint64_t grace_over_ns = 0;
    uint64_t nodes = 0;      // handed out so far
    uint64_t objects = 0;    // finished so far, barriers left out
    uint32_t in_flight = 0;  // chunks being worked on
    bool emptied = false;
  };

  // An object that was still referenced when its batch was dismantled.
  struct Waiting {
    Retired* object;
    uint64_t batch;
    uint64_t since_ns;
    uint64_t after_grace;  // first look when this grace period is over
    uint64_t due_ns;
    uint64_t backoff_ns;
    bool warned;
  };

  void run_grace();
  void grace_period();
  void run_worker();
  void work_on_chunk(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Batch>& batch);
  bool look_at_waiting(std::unique_lock<std::mutex>& lock);
  void finish(FinishedChunk& chunk, Retired& object);
  void warn_if_stuck(Waiting& waiting, uint64_t now_ns);
  bool is_due(const Waiting& waiting, uint64_t now_ns) const noexcept;
  uint64_t next_due_ns() const noexcept;
  void post(std::unique_ptr<FinishedChunk> chunk);
  void apply_priority(bool& boosted);
  void settle_thread(const char* name);

  const TeardownConfig& config_;
  const RetiredKindId barrier_kind_;

  __cds_wfcq_head retired_head_;
  cds_wfcq_tail retired_tail_;
  sem_t work_;
  __cds_wfcq_head finished_head_;
  cds_wfcq_tail finished_tail_;
  int completion_fd_ = -1;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> batches_;
  std::vector<Waiting> waiting_;
  bool stopping_ = false;

  std::atomic<bool> grace_wanted_{false};
  std::atomic<bool> stop_grace_{false};
  std::atomic<bool> boost_{false};
  std::atomic<uint64_t> grace_started_{0};
  std::atomic<uint64_t> grace_completed_{0};
  std::atomic<uint64_t> grace_began_ns_{0};  // 0: none runs
  std::atomic<uint64_t> batch_count_{0};
  std::atomic<uint64_t> last_grace_ns_{0};
  std::atomic<uint64_t> last_dismantle_ns_{0};
  std::atomic<uint64_t> last_batch_objects_{0};
  std::atomic<uint64_t> waiting_count_{0};
  std::array<std::atomic<uint64_t>, kGraceBuckets> grace_us_{};

  std::thread grace_thread_;
  std::vector<std::thread> workers_;
};

}  // namespace mayfly
