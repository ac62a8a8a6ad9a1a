// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Quiescent-state-based RCU (liburcu-qsbr): how workers read what the control thread changes.
//
// WHOEVER IS ONLINE MUST NEVER BLOCK: ONE SLEEPING READER STOPS ALL RECLAMATION.
//
// A worker registers once, is online while it polls, and announces a quiescent state once per loop; between
// two announcements it may hold any pointer it read through an RcuPointer, across them none. Before it sleeps
// it goes offline (OfflineScope) and afterwards looks everything up afresh. The control thread is an updater
// and never a reader. Only the grace thread of lib/reclaim waits for grace periods.
//
//   RcuPointer<Table> table;
//   const Table* t = table.read();     // worker, online: valid until its next quiescent state
//   table.publish(built);              // control thread: built completely before
//
// See "User-Level Implementations of Read-Copy Update" (Desnoyers et al., 2012) for the QSBR flavour.

#include <atomic>
#include <cstdint>

namespace mayfly {

// Worker only; it is online afterwards. Once per thread.
void rcu_register_worker() noexcept;
// Worker only, online or offline; it holds no RCU pointer any more.
void rcu_unregister_worker() noexcept;

// Worker, online: every RCU pointer read before is dead. A store and a fence or two; one futex wake at most
// when a grace period is waiting.
void rcu_quiescent_state() noexcept;

// True on a registered worker that is online. For the debug checks below; costs a thread-local load.
bool rcu_online() noexcept;

// Aborts in debug builds when the calling thread is an online worker. Stands in front of every call that may
// block, allocate or take a lock.
void rcu_assert_may_block() noexcept;

// The grace thread only: returns when every online worker has passed a quiescent state since the call.
// Blocks: 1 - 20 us when the workers poll, for as long as the slowest worker's loop otherwise.
void rcu_synchronize() noexcept;

// Worker: offline for the lifetime of the scope, so that no grace period waits for it.
class OfflineScope {
 public:
  OfflineScope() noexcept;
  ~OfflineScope();
  OfflineScope(const OfflineScope&) = delete;
  OfflineScope& operator=(const OfflineScope&) = delete;
};

// A pointer that the control thread publishes and workers read. What it pointed to before is retired by the
// caller (lib/reclaim); it is never freed here.
template <class T>
class RcuPointer {
 public:
  RcuPointer() = default;
  explicit RcuPointer(T* initial) noexcept : pointer_(initial) {}

  // Worker online (valid until its quiescent state) or control thread.
  T* read() const noexcept { return pointer_.load(std::memory_order_acquire); }
  // Control thread: its own view, no ordering needed.
  T* own() const noexcept { return pointer_.load(std::memory_order_relaxed); }
  // Control thread: everything written to *next before is visible to whoever reads it.
  void publish(T* next) noexcept { pointer_.store(next, std::memory_order_release); }

 private:
  std::atomic<T*> pointer_{nullptr};
};

}  // namespace mayfly
