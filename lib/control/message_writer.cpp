// SPDX-License-Identifier: BSD-3-Clause
#include "control/message_writer.hpp"

#include <arpa/inet.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace mayfly {

MessageWriter::MessageWriter() : scratch_(protocol::kMaxDatagram) {}

nlmsghdr* MessageWriter::begin(uint16_t type, uint16_t flags, uint32_t sequence) {
  current_ = mnl_nlmsg_put_header(scratch_.data());
  current_->nlmsg_type = type;
  current_->nlmsg_flags = flags;
  current_->nlmsg_seq = sequence;
  return current_;
}

void MessageWriter::put(uint16_t number, const void* data, size_t bytes) {
  if (bytes + NLA_HDRLEN + NLA_ALIGNTO > room()) return;
  mnl_attr_put(current_, number, bytes, data);
}

void MessageWriter::put_address(uint16_t number, IpAddress address) {
  if (address.is_v4()) return put_u32(number, htonl(address.v4()));
  uint8_t octets[sizeof(Ipv6)];
  store_ipv6(octets, address.v6());
  put(number, octets, sizeof octets);
}

void MessageWriter::put_string(uint16_t number, std::string_view text) {
  if (text.size() + 1 + NLA_HDRLEN + NLA_ALIGNTO > room()) return;
  auto* attribute = static_cast<nlattr*>(mnl_nlmsg_get_payload_tail(current_));
  const size_t length = NLA_HDRLEN + text.size() + 1;
  attribute->nla_type = number;
  attribute->nla_len = static_cast<uint16_t>(length);
  char* payload = static_cast<char*>(mnl_attr_get_payload(attribute));
  std::memset(payload, 0, NLA_ALIGN(length) - NLA_HDRLEN);
  std::memcpy(payload, text.data(), text.size());
  current_->nlmsg_len += static_cast<uint32_t>(NLA_ALIGN(length));
}

nlattr* MessageWriter::begin_nested(uint16_t number) {
  return room() < 64 ? nullptr : mnl_attr_nest_start(current_, number);
}

void MessageWriter::end_nested(nlattr* nested) {
  if (nested != nullptr) mnl_attr_nest_end(current_, nested);
}

void MessageWriter::end() {
  const size_t length = NLMSG_ALIGN(current_->nlmsg_len);
  if (filling_.size() + length > protocol::kMaxDatagram) flush();
  if (filling_.capacity() < length) filling_.reserve(std::max<size_t>(length, 4096));
  const auto* bytes = reinterpret_cast<const std::byte*>(current_);
  filling_.insert(filling_.end(), bytes, bytes + length);
  current_ = nullptr;
}

void MessageWriter::acknowledge(const nlmsghdr& request, const Error* error) {
  if (error != nullptr && error->code != 0) ++refusals_;
  write_error(request, error);
}

void MessageWriter::tell_error(const Error& error) {
  write_error(nlmsghdr{}, &error);
}

void MessageWriter::write_error(const nlmsghdr& request, const Error* error) {
  const bool tell = error != nullptr && !error->text.empty();
  begin(NLMSG_ERROR, static_cast<uint16_t>(NLM_F_CAPPED | (tell ? NLM_F_ACK_TLVS : 0)), request.nlmsg_seq);
  auto* answer = header<nlmsgerr>();
  answer->error = error == nullptr ? 0 : -error->code;
  answer->msg = request;
  if (tell) put_string(NLMSGERR_ATTR_MSG, error->text);
  end();
}

void MessageWriter::done(uint32_t sequence, bool interrupted) {
  begin(NLMSG_DONE, static_cast<uint16_t>(NLM_F_MULTI | (interrupted ? NLM_F_DUMP_INTR : 0)), sequence);
  *header<int32_t>() = 0;
  end();
}

void MessageWriter::flush() {
  if (filling_.empty()) return;
  queued_bytes_ += filling_.size();
  datagrams_.push_back(std::move(filling_));
  filling_.clear();
}

void MessageWriter::pop_front() {
  queued_bytes_ -= datagrams_.front().size();
  datagrams_.pop_front();
}

}  // namespace mayfly
