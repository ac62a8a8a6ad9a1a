// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Values from one thread to another, in order, without a lock: the sender never waits for the receiver, even
// one that was preempted (liburcu's wait-free queue, whose nodes come from the heap; no worker may use it).

#include <urcu/wfcqueue.h>

#include <memory>
#include <utility>

namespace mayfly {

template <class T>
class HandoverQueue {
 public:
  HandoverQueue() noexcept { __cds_wfcq_init(&head_, &tail_); }
  ~HandoverQueue() {
    T discarded;
    while (pop(&discarded)) continue;
  }
  HandoverQueue(const HandoverQueue&) = delete;
  HandoverQueue& operator=(const HandoverQueue&) = delete;

  // Any thread; wait-free.
  void push(T value) {
    auto* node = new Node{{}, std::move(value)};
    cds_wfcq_node_init(&node->link);
    cds_wfcq_enqueue(__cds_wfcq_head_cast(&head_), &tail_, &node->link);
  }

  // One receiver. False when empty, or when the next value is only just arriving: whoever pushed it says so
  // afterwards.
  bool pop(T* value) {
    cds_wfcq_node* link = __cds_wfcq_dequeue_nonblocking(__cds_wfcq_head_cast(&head_), &tail_);
    if (link == nullptr || link == CDS_WFCQ_WOULDBLOCK) return false;
    const std::unique_ptr<Node> node(reinterpret_cast<Node*>(link));
    *value = std::move(node->value);
    return true;
  }

 private:
  struct Node {
    cds_wfcq_node link;
    T value;
  };
  __cds_wfcq_head head_;
  cds_wfcq_tail tail_;
};

}  // namespace mayfly
