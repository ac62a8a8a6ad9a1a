// SPDX-License-Identifier: BSD-3-Clause
#include "reclaim/reclaim.hpp"

#include <poll.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/log.hpp"
#include "reclaim/teardown.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kTokensPerLook = 256;  // tokens taken back between two looks at the clock

}  // namespace

// A barrier travels the pipeline like an object; what comes back tells control which batch it was in.
struct Reclaim::Barrier {
  Retired retired;
  uint32_t number;
  Returnable* owner;
};

class Reclaim::BarrierKind final : public RetiredKind {
 public:
  BarrierKind() : RetiredKind("barrier") {}
  void dismantle(Retired&, Returns&) const override {}
  void reclaim(Retired& object, Returns& returns) const override {
    auto* barrier = reinterpret_cast<Barrier*>(&object);
    returns.add(*barrier->owner, barrier->number);
    delete barrier;
  }
  static BarrierKind instance;
};

Reclaim::BarrierKind Reclaim::BarrierKind::instance;

class Reclaim::BarrierReturns final : public Returnable {
 public:
  explicit BarrierReturns(Reclaim& reclaim) : reclaim_(reclaim) {}
  void take_back(uint32_t token) noexcept override {
    reclaim_.open_batches_[reclaim_.collecting_batch_].barriers.push_back(token);
    std::erase(reclaim_.barriers_travelling_, token);
  }

 private:
  Reclaim& reclaim_;
};

Reclaim::Reclaim(TeardownConfig config)
    : config_(std::move(config)),
      barrier_returns_(std::make_unique<BarrierReturns>(*this)),
      teardown_(std::make_unique<Teardown>(config_, BarrierKind::instance.id())) {}

Reclaim::~Reclaim() = default;

Status Reclaim::start() {
  return teardown_->start();
}

bool Reclaim::stop(uint64_t timeout_ns) {
  const Deadline deadline = Deadline::after_ns(timeout_ns);
  while (backlog_.objects > 0 || !barriers_open_.empty()) {
    pollfd ready{completion_fd(), POLLIN, 0};
    poll(&ready, 1, 10);
    collect(Deadline::never());
    if (deadline.over()) break;
  }
  const bool clean = backlog_.objects == 0;
  if (!clean)
    log(LogLevel::warning, "reclaim", "{} objects are still referenced at the end", backlog_.objects);
  teardown_->stop();
  return clean;
}

void Reclaim::submit(RetireList& list) noexcept {
  if (list.objects_ == 0) return;
  backlog_.objects += list.objects_;
  backlog_.bytes += list.bytes_;
  objects_retired_ += list.objects_;
  list.objects_ = 0;
  list.bytes_ = 0;
  teardown_->set_boost(over_high_mark());
  teardown_->push(list.head_, list.tail_);
}

int Reclaim::completion_fd() const noexcept {
  return teardown_->completion_fd();
}

bool Reclaim::collect(const Deadline& deadline) {
  teardown_->clear_completion();
  while (true) {
    if (partial_ == nullptr) {
      bool more = false;
      partial_ = teardown_->pop(&more);
      partial_group_ = partial_token_ = 0;
      if (partial_ == nullptr) return more;
      collecting_batch_ = partial_->batch;
    }
    if (!take_back_chunk(deadline)) return true;
    finish_chunk(*partial_);
    partial_.reset();
    if (deadline.over()) return true;
  }
}

// False when the deadline came first; the position is kept.
bool Reclaim::take_back_chunk(const Deadline& deadline) {
  auto& groups = partial_->returns.groups();
  for (; partial_group_ < groups.size(); ++partial_group_, partial_token_ = 0) {
    const Returns::Group& group = groups[partial_group_];
    while (partial_token_ < group.tokens.size()) {
      group.owner->take_back(group.tokens[partial_token_++]);
      if (partial_token_ % kTokensPerLook == 0 && deadline.over()) return false;
    }
  }
  return true;
}

void Reclaim::finish_chunk(const FinishedChunk& chunk) {
  backlog_.objects -= chunk.objects;
  backlog_.bytes -= chunk.bytes;
  objects_reclaimed_ += chunk.objects;
  last_progress_ns_ = monotonic_ns();
  if (under_low_mark()) teardown_->set_boost(false);
  OpenBatch& batch = open_batches_[chunk.batch];
  batch.taken_back += chunk.nodes;
  if (chunk.batch_nodes != 0) batch.total = chunk.batch_nodes;
  // Batches complete in any order; a barrier passes when its own and every earlier one are complete.
  for (auto first = open_batches_.begin();
       first != open_batches_.end() && first->first == complete_below_ && first->second.total != 0 &&
       first->second.taken_back == first->second.total;
       first = open_batches_.begin()) {
    for (const uint32_t passed : first->second.barriers) std::erase(barriers_open_, passed);
    open_batches_.erase(first);
    ++complete_below_;
  }
}

bool Reclaim::over_high_mark() const noexcept {
  return backlog_.objects > config_.high_objects || backlog_.bytes > config_.high_bytes;
}

bool Reclaim::admits(uint64_t objects) const noexcept {
  return under_low_mark() ||
         (backlog_.objects + objects <= config_.high_objects && backlog_.bytes <= config_.high_bytes);
}

bool Reclaim::under_low_mark() const noexcept {
  return backlog_.objects <= config_.low_objects && backlog_.bytes <= config_.low_bytes;
}

uint32_t Reclaim::barrier() {
  const uint32_t number = ++barriers_started_;
  barriers_open_.push_back(number);
  barriers_travelling_.push_back(number);
  auto* barrier = new Barrier{{{}, 0, BarrierKind::instance.id(), 0}, number, barrier_returns_.get()};
  RetireList list;
  list.retire(barrier->retired);
  list.objects_ = 0;  // a barrier is no backlog
  teardown_->push(list.head_, list.tail_);
  return number;
}

bool Reclaim::grace_passed(uint32_t number) const noexcept {
  return std::ranges::find(barriers_travelling_, number) == barriers_travelling_.end();
}

bool Reclaim::barrier_passed(uint32_t number) const noexcept {
  return std::ranges::find(barriers_open_, number) == barriers_open_.end();
}

ReclaimStatistics Reclaim::statistics() const {
  ReclaimStatistics statistics;
  teardown_->describe(statistics);
  statistics.objects_retired = objects_retired_;
  statistics.objects_reclaimed = objects_reclaimed_;
  statistics.backlog = backlog_;
  return statistics;
}

}  // namespace mayfly
