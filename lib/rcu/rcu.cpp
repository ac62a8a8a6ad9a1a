// SPDX-License-Identifier: BSD-3-Clause
#include "rcu/rcu.hpp"

#include <urcu/urcu-qsbr.h>

#include "base/check.hpp"

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace mayfly {
namespace {

thread_local bool registered = false;
thread_local bool online = false;

// ThreadSanitizer does not see the ordering that liburcu's barriers give: these two calls tell it.
[[maybe_unused]] char ordering_token;

void announce_reads_done() noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(&ordering_token);
#endif
}

void learn_reads_done() noexcept {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&ordering_token);
#endif
}

}  // namespace

void rcu_register_worker() noexcept {
  MAYFLY_CHECK(!registered, "a worker registered twice as an RCU reader");
  urcu_qsbr_register_thread();
  registered = true;
  online = true;
}

void rcu_unregister_worker() noexcept {
  MAYFLY_CHECK(registered, "a thread that is no RCU reader unregistered");
  announce_reads_done();
  urcu_qsbr_unregister_thread();
  registered = false;
  online = false;
}

void rcu_quiescent_state() noexcept {
  MAYFLY_DEBUG_CHECK(online, "a quiescent state was announced by a thread that is not online");
  announce_reads_done();
  urcu_qsbr_quiescent_state();
}

bool rcu_online() noexcept {
  return online;
}

void rcu_assert_may_block() noexcept {
  MAYFLY_DEBUG_CHECK(!online, "a worker was about to block, allocate or lock while online");
}

void rcu_synchronize() noexcept {
  MAYFLY_CHECK(!registered, "a worker waited for a grace period");
  urcu_qsbr_synchronize_rcu();
  learn_reads_done();
}

OfflineScope::OfflineScope() noexcept {
  MAYFLY_DEBUG_CHECK(online, "a worker went offline twice");
  announce_reads_done();
  urcu_qsbr_thread_offline();
  online = false;
}

OfflineScope::~OfflineScope() {
  urcu_qsbr_thread_online();
  online = true;
}

}  // namespace mayfly
