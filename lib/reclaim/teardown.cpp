// SPDX-License-Identifier: BSD-3-Clause
#include "reclaim/teardown.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "rcu/rcu.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kFirstBackoffNs = 1 * kNsPerMs;
constexpr uint64_t kLastBackoffNs = 250 * kNsPerMs;
constexpr uint64_t kStuckNs = 10 * kNsPerSecond;

std::string name_holders(const std::vector<Holder>& holders) {
  std::string text;
  for (const Holder& holder : holders)
    text += fmt::format("{}worker {} holds {} ({})", text.empty() ? "" : ", ", holder.worker,
                        holder.references, holder.what);
  return text.empty() ? "no holder known" : text;
}

}  // namespace

Reclaim::Teardown::Teardown(const TeardownConfig& config, RetiredKindId barrier_kind)
    : config_(config), barrier_kind_(barrier_kind) {
  __cds_wfcq_init(&retired_head_, &retired_tail_);
  __cds_wfcq_init(&finished_head_, &finished_tail_);
  sem_init(&work_, 0, 0);
  completion_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

Reclaim::Teardown::~Teardown() {
  MAYFLY_CHECK(workers_.empty() && !grace_thread_.joinable(), "teardown threads were not stopped");
  sem_destroy(&work_);
  if (completion_fd_ >= 0) close(completion_fd_);
}

Status Reclaim::Teardown::start() {
  if (completion_fd_ < 0) return fail(EMFILE, "cannot create an eventfd for the teardown threads");
  grace_thread_ = std::thread([this] { run_grace(); });
  for (uint32_t i = 0; i < config_.workers; ++i) workers_.emplace_back([this] { run_worker(); });
  return {};
}

void Reclaim::Teardown::stop() {
  stop_grace_.store(true, std::memory_order_release);
  sem_post(&work_);
  if (grace_thread_.joinable()) grace_thread_.join();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void Reclaim::Teardown::push(__cds_wfcq_head& head, cds_wfcq_tail& tail) noexcept {
  __cds_wfcq_splice_blocking(__cds_wfcq_head_cast(&retired_head_), &retired_tail_,
                             __cds_wfcq_head_cast(&head), &tail);
  sem_post(&work_);
}

std::unique_ptr<FinishedChunk> Reclaim::Teardown::pop(bool* more) noexcept {
  cds_wfcq_node* node =
      __cds_wfcq_dequeue_nonblocking(__cds_wfcq_head_cast(&finished_head_), &finished_tail_);
  *more = node == CDS_WFCQ_WOULDBLOCK;
  if (node == nullptr || node == CDS_WFCQ_WOULDBLOCK) return nullptr;
  return std::unique_ptr<FinishedChunk>(reinterpret_cast<FinishedChunk*>(node));
}

void Reclaim::Teardown::clear_completion() noexcept {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(completion_fd_, &count, sizeof count);
}

void Reclaim::Teardown::settle_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  if (config_.cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : config_.cpus) CPU_SET(cpu, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void Reclaim::Teardown::run_grace() {
  settle_thread("mayfly-grace");
  uint64_t next_allowed_ns = 0;
  uint64_t number = 0;
  while (true) {
    // One look answers all posts, and the last one of all may be among them: stop() posts only once.
    if (!stop_grace_.load(std::memory_order_acquire)) {
      while (sem_wait(&work_) != 0) {
      }
      while (sem_trywait(&work_) == 0) {
      }
    }
    const bool queued = !cds_wfcq_empty(__cds_wfcq_head_cast(&retired_head_), &retired_tail_);
    if (!queued && !grace_wanted_.exchange(false, std::memory_order_acq_rel)) {
      if (stop_grace_.load(std::memory_order_acquire)) return;
      continue;
    }
    // The pause comes before the splice, so that what is retired meanwhile shares the grace period.
    const uint64_t now = monotonic_ns();
    if (now < next_allowed_ns) {
      const timespec pause{0, static_cast<long>(next_allowed_ns - now)};
      nanosleep(&pause, nullptr);
    }
    auto batch = std::make_shared<Batch>();
    __cds_wfcq_init(&batch->head, &batch->tail);
    __cds_wfcq_splice_blocking(__cds_wfcq_head_cast(&batch->head), &batch->tail,
                               __cds_wfcq_head_cast(&retired_head_), &retired_tail_);
    grace_period();
    next_allowed_ns = monotonic_ns() + kGraceSpacingNs;
    {
      const std::lock_guard lock(mutex_);
      if (!cds_wfcq_empty(__cds_wfcq_head_cast(&batch->head), &batch->tail)) {
        batch->number = ++number;
        batch->grace_over_ns = monotonic_ns();
        batches_.push_back(std::move(batch));
        batch_count_.store(number, std::memory_order_relaxed);
      }
    }
    changed_.notify_all();
  }
}

void Reclaim::Teardown::grace_period() {
  const uint64_t begin = monotonic_ns();
  grace_started_.fetch_add(1, std::memory_order_acq_rel);
  grace_began_ns_.store(begin, std::memory_order_relaxed);
  rcu_synchronize();
  grace_began_ns_.store(0, std::memory_order_relaxed);
  grace_completed_.fetch_add(1, std::memory_order_acq_rel);
  const uint64_t lasted = monotonic_ns() - begin;
  last_grace_ns_.store(lasted, std::memory_order_relaxed);
  const auto bucket = static_cast<size_t>(std::bit_width(lasted / kNsPerUs | 1) - 1);
  grace_us_[std::min(bucket, kGraceBuckets - 1)].fetch_add(1, std::memory_order_relaxed);
}

void Reclaim::Teardown::run_worker() {
  settle_thread("mayfly-teardown");
  bool boosted = true;
  std::unique_lock lock(mutex_);
  while (true) {
    apply_priority(boosted);
    if (look_at_waiting(lock)) continue;
    if (!batches_.empty()) {
      work_on_chunk(lock, batches_.front());
      continue;
    }
    if (stopping_) return;
    if (const uint64_t due = next_due_ns(); due == UINT64_MAX) {
      changed_.wait(lock);
    } else {
      const uint64_t now = monotonic_ns();
      changed_.wait_for(lock, std::chrono::nanoseconds(due > now ? due - now : 0));
    }
  }
}

void Reclaim::Teardown::apply_priority(bool& boosted) {
  const bool wanted = boost_.load(std::memory_order_relaxed);
  if (wanted == boosted) return;
  boosted = wanted;
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), wanted ? 0 : config_.nice) == 0)
    return;
  static LogLimit limit;
  log_limited(limit, LogLevel::warning, "reclaim",
              "the backlog is over its mark and teardown stays at nice {}: CAP_SYS_NICE or a nice limit "
              "(RLIMIT_NICE) of 20 would let it hurry",
              config_.nice);
}

void Reclaim::Teardown::work_on_chunk(std::unique_lock<std::mutex>& lock,
                                      const std::shared_ptr<Batch>& front) {
  const std::shared_ptr<Batch> batch = front;
  Retired* objects[kChunkObjects];
  uint32_t count = 0;
  while (count < kChunkObjects) {
    cds_wfcq_node* node = __cds_wfcq_dequeue_blocking(__cds_wfcq_head_cast(&batch->head), &batch->tail);
    if (node == nullptr) break;
    objects[count++] = reinterpret_cast<Retired*>(node);
  }
  batch->nodes += count;
  ++batch->in_flight;
  auto chunk = std::make_unique<FinishedChunk>();
  chunk->batch = batch->number;
  if (cds_wfcq_empty(__cds_wfcq_head_cast(&batch->head), &batch->tail)) {
    batch->emptied = true;
    chunk->batch_nodes = batch->nodes;
    batches_.pop_front();
  }
  lock.unlock();

  std::vector<Waiting> undrained;
  const uint64_t now = monotonic_ns();
  for (uint32_t i = 0; i < count; ++i) {
    Retired& object = *objects[i];
    const RetiredKind& kind = RetiredKind::of(object.kind);
    kind.dismantle(object, chunk->returns);
    if (kind.drained(object))
      finish(*chunk, object);
    else
      undrained.push_back({&object, batch->number, now, grace_started_.load(std::memory_order_acquire) + 1, 0,
                           kFirstBackoffNs, false});
  }
  const uint64_t finished = chunk->objects;
  post(std::move(chunk));

  lock.lock();
  batch->objects += finished;
  if (--batch->in_flight == 0 && batch->emptied) {
    last_dismantle_ns_.store(monotonic_ns() - batch->grace_over_ns, std::memory_order_relaxed);
    last_batch_objects_.store(batch->objects, std::memory_order_relaxed);
  }
  if (!undrained.empty()) {
    waiting_.insert(waiting_.end(), undrained.begin(), undrained.end());
    waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
    grace_wanted_.store(true, std::memory_order_release);
    sem_post(&work_);
  }
}

void Reclaim::Teardown::finish(FinishedChunk& chunk, Retired& object) {
  ++chunk.nodes;
  if (object.kind != barrier_kind_) {
    ++chunk.objects;
    chunk.bytes += object.bytes;
  }
  RetiredKind::of(object.kind).reclaim(object, chunk.returns);
}

bool Reclaim::Teardown::is_due(const Waiting& waiting, uint64_t now_ns) const noexcept {
  return grace_completed_.load(std::memory_order_acquire) >= waiting.after_grace && now_ns >= waiting.due_ns;
}

uint64_t Reclaim::Teardown::next_due_ns() const noexcept {
  uint64_t due = UINT64_MAX;
  // One that still waits for its grace period is woken by the grace thread.
  for (const Waiting& waiting : waiting_)
    if (grace_completed_.load(std::memory_order_acquire) >= waiting.after_grace)
      due = std::min(due, waiting.due_ns);
  return due;
}

bool Reclaim::Teardown::look_at_waiting(std::unique_lock<std::mutex>& lock) {
  const uint64_t now = monotonic_ns();
  std::vector<Waiting> due;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    if (!is_due(waiting, now)) return false;
    due.push_back(waiting);
    return true;
  });
  if (due.empty()) return false;
  lock.unlock();
  std::vector<Waiting> again;
  for (Waiting& waiting : due) {
    if (RetiredKind::of(waiting.object->kind).drained(*waiting.object)) {
      auto chunk = std::make_unique<FinishedChunk>();
      chunk->batch = waiting.batch;
      finish(*chunk, *waiting.object);
      post(std::move(chunk));
      continue;
    }
    waiting.due_ns = now + waiting.backoff_ns;
    waiting.backoff_ns = std::min(waiting.backoff_ns * 2, kLastBackoffNs);
    warn_if_stuck(waiting, now);
    again.push_back(waiting);
  }
  lock.lock();
  waiting_.insert(waiting_.end(), again.begin(), again.end());
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  return true;
}

void Reclaim::Teardown::warn_if_stuck(Waiting& waiting, uint64_t now_ns) {
  if (waiting.warned || now_ns - waiting.since_ns < kStuckNs) return;
  waiting.warned = true;
  const RetiredKind& kind = RetiredKind::of(waiting.object->kind);
  log(LogLevel::warning, "reclaim", "{} has waited {} for its references: {}", kind.describe(*waiting.object),
      format_duration(now_ns - waiting.since_ns), name_holders(kind.holders(*waiting.object)));
}

void Reclaim::Teardown::post(std::unique_ptr<FinishedChunk> chunk) {
  cds_wfcq_node_init(&chunk->link);
  const bool others =
      cds_wfcq_enqueue(__cds_wfcq_head_cast(&finished_head_), &finished_tail_, &chunk.release()->link);
  if (others) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(completion_fd_, &one, sizeof one);
}

void Reclaim::Teardown::describe(ReclaimStatistics& statistics) const {
  statistics.batches = batch_count_.load(std::memory_order_relaxed);
  statistics.last_batch_objects = last_batch_objects_.load(std::memory_order_relaxed);
  statistics.last_grace_ns = last_grace_ns_.load(std::memory_order_relaxed);
  statistics.last_dismantle_ns = last_dismantle_ns_.load(std::memory_order_relaxed);
  statistics.waiting_objects = waiting_count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < kGraceBuckets; ++i)
    statistics.grace_us[i] = grace_us_[i].load(std::memory_order_relaxed);
  const uint64_t now = monotonic_ns();
  if (const uint64_t began = grace_began_ns_.load(std::memory_order_relaxed); began != 0) {
    statistics.grace_running = true;
    statistics.grace_running_ns = now > began ? now - began : 0;
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  // Objects on the list stay allocated while the lock is held: whoever drains one takes it off first.
  for (const Waiting& waiting : waiting_) {
    if (statistics.waiting.size() == 16) break;
    const RetiredKind& kind = RetiredKind::of(waiting.object->kind);
    statistics.waiting.push_back({kind.describe(*waiting.object), now - waiting.since_ns,
                                  waiting.due_ns > now ? waiting.due_ns - now : 0,
                                  kind.holders(*waiting.object)});
  }
}

}  // namespace mayfly
