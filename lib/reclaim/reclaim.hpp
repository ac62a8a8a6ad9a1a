// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The teardown pipeline: from "unlinked" to "memory and number are back", without stopping anybody.
//
//   control thread            grace thread                 teardown workers              control thread
//   retire ... submit  ---->  splice all = one batch
//                             one grace period     ---->   dismantle, drain, reclaim --> collect: take_back
//                             (next batch fills)           (chunks of 1,024, parallel)
//
// Contracts:
//   submit()   control thread; wait-free, may be called while everything else is stuck.
//   collect()  control thread; sliced by a deadline.
//   A batch gets exactly one grace period, whatever it holds; grace periods are at least 100 us apart and one
//   thread alone asks for them (three updaters at once made them take up to 13 ms).
//   An object that is still referenced leaves its batch for the waiting list: one more grace period first,
//   then a look every 1, 2, 4 .. 250 ms. It holds nobody up; after ten seconds a warning names it and its
//   holders.
//
// Two designs were weighed for the queue: blocks of pointers (no link in the objects, but retire could fail
// for want of a block) and liburcu's wait-free queue through the objects (16 bytes each, cannot fail). The
// second has less to explain.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

struct TeardownConfig {
  uint32_t workers = 2;
  int nice = 10;
  // Backlog marks: at the high one creating clients are stopped, below the low one they go on.
  uint64_t high_objects = 2'000'000;
  uint64_t low_objects = 1'000'000;
  uint64_t high_bytes = uint64_t{2} << 30;
  uint64_t low_bytes = uint64_t{1} << 30;
  bool block = true;      // policy: block | fail
  std::vector<int> cpus;  // where these threads run: every CPU that is no worker's; empty: anywhere
};

// Retired but not yet taken back, the waiting list included.
struct Backlog {
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

// Grace-period latency in powers of two: bucket k counts [2^k, 2^(k+1)) us, the last one everything above.
constexpr size_t kGraceBuckets = 20;

struct WaitingObject {
  std::string object;
  uint64_t age_ns = 0;
  uint64_t retry_in_ns = 0;
  std::vector<Holder> holders;
};

struct ReclaimStatistics {
  uint64_t batches = 0;
  uint64_t objects_retired = 0;
  uint64_t objects_reclaimed = 0;
  Backlog backlog;
  uint64_t last_batch_objects = 0;
  uint64_t last_grace_ns = 0;
  uint64_t last_dismantle_ns = 0;  // from the end of its grace period to its last object
  std::array<uint64_t, kGraceBuckets> grace_us{};
  bool grace_running = false;
  uint64_t grace_running_ns = 0;
  uint64_t waiting_objects = 0;
  std::vector<WaitingObject> waiting;  // the first 16, oldest first
};

struct FinishedChunk;

class Reclaim {
 public:
  explicit Reclaim(TeardownConfig config);
  // Everything that was submitted must have been collected: see stop().
  ~Reclaim();
  Reclaim(const Reclaim&) = delete;
  Reclaim& operator=(const Reclaim&) = delete;

  // Starts the grace thread and the teardown workers.
  Status start();
  // Control thread, at the end, when no worker runs any more: reclaims everything submitted and joins the
  // threads. False when something is still referenced after timeout_ns; the log names it.
  bool stop(uint64_t timeout_ns);

  // Control thread: the list's objects become part of the next batch; the list is empty afterwards.
  void submit(RetireList& list) noexcept;
  // A request that retires very many submits every so often, so that teardown starts early.
  static constexpr uint64_t kSubmitEvery = 65'536;

  // Readable (an eventfd, for epoll) when collect() has something to do.
  int completion_fd() const noexcept;
  // Control thread: takes back numbers and memory until the deadline; true while more is there.
  bool collect(const Deadline& deadline);

  const Backlog& backlog() const noexcept { return backlog_; }
  // Whether a request that creates so many objects may start now: asked once per request.
  bool admits(uint64_t objects) const noexcept;
  bool over_high_mark() const noexcept;
  bool under_low_mark() const noexcept;
  const TeardownConfig& config() const noexcept { return config_; }

  // The user's rcu_barrier: barrier() returns a number; barrier_passed(number) is true once everything
  // submitted before it has been taken back. Control thread.
  uint32_t barrier();
  bool barrier_passed(uint32_t number) const noexcept;
  // Whether a grace period has passed since barrier() gave this number: nothing that was unlinked before is
  // in a worker's hands any more. Objects that are still referenced do not hold it up.
  bool grace_passed(uint32_t number) const noexcept;

  // Objects taken back so far, and when the last one was: progress, for the ten-second rule.
  uint64_t objects_reclaimed() const noexcept { return objects_reclaimed_; }
  uint64_t last_progress_ns() const noexcept { return last_progress_ns_; }

  // Control thread. Copies only: it never dereferences a retired object.
  ReclaimStatistics statistics() const;

 private:
  class Teardown;
  class BarrierKind;
  class BarrierReturns;
  struct Barrier;

  // A batch that control has heard of and that is not complete.
  struct OpenBatch {
    uint64_t taken_back = 0;
    uint64_t total = 0;  // unknown (0) while chunks of it are still being handed out
    std::vector<uint32_t> barriers;
  };

  bool take_back_chunk(const Deadline& deadline);
  void finish_chunk(const FinishedChunk& chunk);

  TeardownConfig config_;
  std::unique_ptr<BarrierReturns> barrier_returns_;
  std::unique_ptr<Teardown> teardown_;
  Backlog backlog_;
  uint64_t objects_retired_ = 0;
  uint64_t objects_reclaimed_ = 0;
  uint64_t last_progress_ns_ = 0;

  uint32_t barriers_started_ = 0;
  std::vector<uint32_t> barriers_open_;
  std::vector<uint32_t> barriers_travelling_;  // not yet back from their batch
  std::map<uint64_t, OpenBatch> open_batches_;
  uint64_t complete_below_ = 1;  // every batch with a lower number is complete

  // Where collect() was interrupted.
  std::unique_ptr<FinishedChunk> partial_;
  size_t partial_group_ = 0;
  size_t partial_token_ = 0;
  uint64_t collecting_batch_ = 0;
};

}  // namespace mayfly
