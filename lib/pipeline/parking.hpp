// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Packets that wait for a neighbour's MAC address: at most three for one neighbour, so many mbufs in all. A
// long packet takes as many mbufs as it has segments.
//
// One a worker, used by it alone; memory is fixed and touched at construction. A queue is known by (ifindex,
// id, address): no pointer to an interface is kept across loops. Parking moves mbufs; who calls it counts and
// frees them and holds the references of their interfaces (neighbour.cpp, parked.cpp).
//
// Senders choose the addresses: the hash that finds a queue has the secret seed of the neighbours' tables.

#include <array>
#include <cstdint>
#include <vector>

#include "base/ip_address.hpp"

struct rte_mbuf;

namespace mayfly {

class Parking {
 public:
  static constexpr uint32_t kPacketsPerNeighbour = 3;  // what Linux kept for decades

  // One cache line. Its times are milliseconds that wrap after a minute: compare differences, more often.
  struct alignas(64) Queue {
    uint64_t id : 56 = 0;
    uint64_t count : 8 = 0;  // 0: the queue is free
    IpAddress address{};
    std::array<rte_mbuf*, kPacketsPerNeighbour> mbufs{};  // oldest first; each begins with its IP header
    uint32_t ifindex = 0;
    uint32_t next = 0;  // hash chain or free list, a queue's number plus one
    std::array<uint16_t, kPacketsPerNeighbour> parked_ms{};
    uint16_t asked_ms = 0;  // when control was last told that the neighbour is wanted
  };
  static_assert(sizeof(Queue) == 64);

  // limit: mbufs in all; at least one.
  explicit Parking(uint32_t limit);

  uint32_t packets() const noexcept { return packets_; }
  uint32_t mbufs() const noexcept { return mbufs_; }
  // Whether an interface that has so many packets here may add one of so many mbufs: while at least as many
  // are left for all others. Alone it gets half of them, n interfaces that want everything get one in n + 1
  // each, and the next one finds as many.
  bool has_room(uint64_t held, uint32_t mbufs) const noexcept {
    return mbufs <= limit_ - mbufs_ && held * mbufs < limit_ - mbufs_;
  }

  // nullptr when nothing waits there.
  Queue* find(uint32_t ifindex, uint64_t id, IpAddress address) noexcept;
  // A new queue with its first packet: has_room(), find() said nullptr.
  Queue& open(uint32_t ifindex, uint64_t id, IpAddress address, rte_mbuf* mbuf, uint32_t now_ms) noexcept;
  // Behind the others: has_room() and the queue has less than kPacketsPerNeighbour. The packet stays as it is
  // until it is taken out.
  void push(Queue& queue, rte_mbuf* mbuf, uint32_t now_ms) noexcept;
  // Takes the oldest out; the queue is closed (free) with its last packet.
  rte_mbuf* pop(Queue& queue) noexcept;

  // All queues by number, for a walk in slices; those with count 0 are free.
  uint32_t queues() const noexcept { return limit_; }
  Queue& queue(uint32_t number) noexcept { return queues_[number]; }

  // The most queues that a look-up may have to pass. Walks everything: for tests.
  uint32_t longest_chain() const noexcept;

 private:
  uint32_t& bucket_of(uint32_t ifindex, IpAddress address) noexcept;
  void close(Queue& queue) noexcept;

  uint32_t limit_;
  uint32_t packets_ = 0;
  uint32_t mbufs_ = 0;
  uint32_t free_ = 0;
  std::vector<Queue> queues_;
  std::vector<uint32_t> buckets_;
};

}  // namespace mayfly
