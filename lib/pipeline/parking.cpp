// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parking.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/index_hash.hpp"
#include "neigh/neighbour.hpp"

namespace mayfly {

Parking::Parking(uint32_t limit)
    : limit_(std::max(limit, 1u)), queues_(limit_), buckets_(std::bit_ceil(uint64_t{limit_})) {
  for (uint32_t number = 0; number < limit_; ++number)
    queues_[number].next = number + 1 < limit_ ? number + 2 : 0;
  free_ = 1;
}

uint32_t& Parking::bucket_of(uint32_t ifindex, IpAddress address) noexcept {
  return buckets_[mix_hash(uint64_t{neighbour_hash(address)} << 32 | ifindex) & (buckets_.size() - 1)];
}

uint32_t Parking::longest_chain() const noexcept {
  uint32_t longest = 0;
  for (uint32_t link : buckets_) {
    uint32_t length = 0;
    for (; link != 0; link = queues_[link - 1].next) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

Parking::Queue* Parking::find(uint32_t ifindex, uint64_t id, IpAddress address) noexcept {
  for (uint32_t link = bucket_of(ifindex, address); link != 0; link = queues_[link - 1].next) {
    Queue& queue = queues_[link - 1];
    if (queue.address == address && queue.ifindex == ifindex && queue.id == id) return &queue;
  }
  return nullptr;
}

Parking::Queue& Parking::open(uint32_t ifindex, uint64_t id, IpAddress address, rte_mbuf* mbuf,
                              uint32_t now_ms) noexcept {
  MAYFLY_DEBUG_CHECK(free_ != 0, "a queue was opened while parking was full");
  const uint32_t link = free_;
  Queue& queue = queues_[link - 1];
  free_ = queue.next;
  queue.id = id;
  queue.ifindex = ifindex;
  queue.address = address;
  queue.asked_ms = static_cast<uint16_t>(now_ms);
  uint32_t& bucket = bucket_of(ifindex, address);
  queue.next = bucket;
  bucket = link;
  push(queue, mbuf, now_ms);
  return queue;
}

void Parking::push(Queue& queue, rte_mbuf* mbuf, uint32_t now_ms) noexcept {
  MAYFLY_DEBUG_CHECK(has_room(0, mbuf->nb_segs) && queue.count < kPacketsPerNeighbour,
                     "a packet was parked where no room is");
  queue.mbufs[queue.count] = mbuf;
  queue.parked_ms[queue.count] = static_cast<uint16_t>(now_ms);
  ++queue.count;
  ++packets_;
  mbufs_ += mbuf->nb_segs;
}

rte_mbuf* Parking::pop(Queue& queue) noexcept {
  MAYFLY_DEBUG_CHECK(queue.count != 0, "a packet was taken out of an empty queue");
  rte_mbuf* const oldest = queue.mbufs[0];
  std::copy(queue.mbufs.begin() + 1, queue.mbufs.end(), queue.mbufs.begin());
  std::copy(queue.parked_ms.begin() + 1, queue.parked_ms.end(), queue.parked_ms.begin());
  --packets_;
  mbufs_ -= oldest->nb_segs;
  if (--queue.count == 0) close(queue);
  return oldest;
}

void Parking::close(Queue& queue) noexcept {
  const auto link = static_cast<uint32_t>(&queue - queues_.data()) + 1;
  uint32_t* at = &bucket_of(queue.ifindex, queue.address);
  while (*at != link) at = &queues_[*at - 1].next;
  *at = queue.next;
  queue.next = free_;
  free_ = link;
}

}  // namespace mayfly
