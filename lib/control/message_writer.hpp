// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Answers on their way to one client: messages packed into datagrams of at most 64 KiB.
//
// A message is begun, filled with libmnl's attribute functions or the calls here, and ended; answers are
// coalesced until flush() seals the datagram. Control thread only. The queue is bounded by its user: the
// server stops reading and dumping for a client whose queue is over kHighWater.

#include <libmnl/libmnl.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "base/ip_address.hpp"
#include "control/protocol.hpp"

namespace mayfly {

class MessageWriter {
 public:
  static constexpr size_t kHighWater = 256 * 1024;  // bytes queued
  static constexpr size_t kMostMessage = 60'000;    // nla_len is 16 bit, a datagram 64 KiB

  MessageWriter();

  // A message under construction; only one at a time. An attribute that would make it longer than
  // kMostMessage is left out.
  nlmsghdr* begin(uint16_t type, uint16_t flags, uint32_t sequence);
  // The fixed header that follows, zeroed.
  template <class Header>
  Header* header() {
    return static_cast<Header*>(mnl_nlmsg_put_extra_header(current_, sizeof(Header)));
  }
  void put_u8(uint16_t number, uint8_t value) { put(number, &value, sizeof value); }
  void put_u16(uint16_t number, uint16_t value) { put(number, &value, sizeof value); }
  void put_u32(uint16_t number, uint32_t value) { put(number, &value, sizeof value); }
  void put_u64(uint16_t number, uint64_t value) { put(number, &value, sizeof value); }
  // 4 bytes or 16, in network order.
  void put_address(uint16_t number, IpAddress address);
  void put_string(uint16_t number, std::string_view text);
  void put(uint16_t number, const void* data, size_t bytes);
  nlattr* begin_nested(uint16_t number);
  void end_nested(nlattr* nested);
  size_t room() const noexcept { return kMostMessage - current_->nlmsg_len; }
  void end();

  // NLMSG_ERROR in answer to a request: nullptr acknowledges, an error of code 0 does so with a warning, any
  // other refuses; the extended acknowledgement has the text.
  void acknowledge(const nlmsghdr& request, const Error* error);
  // An error that answers no request.
  void tell_error(const Error& error);
  // Errors acknowledged so far.
  uint64_t refusals() const noexcept { return refusals_; }
  void done(uint32_t sequence, bool interrupted);

  // Datagrams to send. flush() seals the one being filled.
  void flush();
  bool empty() const noexcept { return datagrams_.empty(); }
  std::span<const std::byte> front() const noexcept { return datagrams_.front(); }
  void pop_front();
  size_t queued_bytes() const noexcept { return queued_bytes_ + filling_.size(); }
  bool over_high_water() const noexcept { return queued_bytes() > kHighWater; }

 private:
  void write_error(const nlmsghdr& request, const Error* error);

  std::vector<std::byte> scratch_;
  nlmsghdr* current_ = nullptr;
  std::vector<std::byte> filling_;
  std::deque<std::vector<std::byte>> datagrams_;
  size_t queued_bytes_ = 0;
  uint64_t refusals_ = 0;
};

}  // namespace mayfly
