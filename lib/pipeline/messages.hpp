// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What workers and the control thread tell each other, through one SPSC ring per direction and worker.
//
// A message carries (ifindex, id), never a pointer; the receiver drops it when the id differs. A full ring
// loses the message, never blocks: everything said here is said again (a neighbour is asked for by the next
// packet, ARP is repeated by timer).

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/ip_address.hpp"

namespace mayfly {

struct WorkerMessage {
  enum class Type : uint8_t {
    neighbour_wanted,  // a packet waits for `address` on the interface; nothing is known about it
    neighbour_seen,    // somebody on the interface said that `address` is at `mac`
    address_conflict,  // `mac` uses `address`, which is the interface's and not yet known to be so alone
  };
  Type type;
  // neighbour_seen: NeighbourEvidence.
  bool solicited = false;     // an answer to us
  bool overrides = true;      // counts against another MAC
  bool creates = false;       // a new neighbour may come of it
  bool tells_router = false;  // `router` says something
  bool router = false;
  uint32_t ifindex;
  uint64_t id;
  Mac mac;
  IpAddress address;
};

struct ControlMessage {
  enum class Type : uint8_t {
    // ARP request or neighbour solicitation for `address`, from `source`; to `mac`, to everyone (IPv6: the
    // solicited-node group) when that is kBroadcastMac. An IPv6 one without a source asks whether somebody
    // else has the interface's own address.
    ask_neighbour,
    neighbour_resolved,  // packets parked for `address` can go
    neighbour_failed,    // they are dropped
  };
  Type type;
  uint32_t ifindex;
  uint64_t id;
  Mac mac;
  IpAddress address;
  IpAddress source;
};

// Single producer, single consumer, wait-free, fixed size; copies values. Producer and consumer indexes live
// on lines of their own and each side caches the other's.
template <class T, uint32_t kCapacity = 4096>
class MessageRing {
  static_assert((kCapacity & (kCapacity - 1)) == 0);

 public:
  MessageRing() : slots_(new T[kCapacity]{}) {}

  // Producer: false when full.
  bool push(const T& message) noexcept {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - cached_head_ == kCapacity) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail - cached_head_ == kCapacity) return false;
    }
    slots_[tail % kCapacity] = message;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Consumer: false when empty.
  bool pop(T* message) noexcept {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == cached_tail_) {
      cached_tail_ = tail_.load(std::memory_order_acquire);
      if (head == cached_tail_) return false;
    }
    *message = slots_[head % kCapacity];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  std::unique_ptr<T[]> slots_;
  alignas(64) std::atomic<uint32_t> tail_{0};
  uint32_t cached_head_ = 0;
  alignas(64) std::atomic<uint32_t> head_{0};
  uint32_t cached_tail_ = 0;
};

}  // namespace mayfly
