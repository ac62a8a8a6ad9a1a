// SPDX-License-Identifier: BSD-3-Clause
#include "device.hpp"

#include <arpa/inet.h>

#include <cstring>
#include <vector>

namespace mayfly::cli {

std::string device_name(const Attributes& attributes, uint64_t ifindex) {
  const std::string_view name = attributes.string(protocol::kAttrDevice);
  if (!name.empty()) return std::string(name);
  return ifindex == 0 ? "" : fmt::format("if{}", ifindex);
}

void put_device(RequestMessage& message, std::string_view device) {
  if (!device.empty()) message.put_string(protocol::kAttrDevice, device);
}

void put_ipv4(RequestMessage& message, uint16_t attribute, Ipv4 address) {
  message.put_u32(attribute, htonl(address));
}

std::optional<Ipv4> ipv4_of(const Attributes& attributes, uint16_t attribute) {
  const std::span<const uint8_t> bytes = attributes.bytes(attribute);
  if (bytes.size() != sizeof(Ipv4)) return std::nullopt;
  Ipv4 address = 0;
  memcpy(&address, bytes.data(), sizeof address);
  return ntohl(address);
}

Result<int> flush_listed(Session& session, Plan& plan, const Deletion& build) {
  std::vector<char> deletions;
  RequestMessage deletion;
  Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    deletion.clear();
    build(answer, deletion);
    const char* const bytes = reinterpret_cast<const char*>(deletion.header());
    if (!deletion.empty()) deletions.insert(deletions.end(), bytes, bytes + NLMSG_ALIGN(deletion.size()));
  });
  if (!done) return std::unexpected(done.error());
  const auto client = session.client(plan.family);
  if (!client) return std::unexpected(client.error());
  std::optional<Error> refusal;
  (*client)->on_refused([&refusal](uint32_t, const Error& error) {
    const bool gone = error.code == ESRCH || error.code == EADDRNOTAVAIL || error.code == ENOENT;
    if (!gone && !refusal) refusal = error;
  });
  for (size_t at = 0; at < deletions.size() && done;) {
    const auto* next = reinterpret_cast<const nlmsghdr*>(deletions.data() + at);
    deletion.assign(*next);
    at += NLMSG_ALIGN(next->nlmsg_len);
    if (const auto queued = (*client)->enqueue(deletion); !queued) done = std::unexpected(queued.error());
  }
  if (done) done = (*client)->drain();
  (*client)->on_refused({});
  if (!done) return std::unexpected(done.error());
  if (refusal) return std::unexpected(*refusal);
  return kExitOk;
}

}  // namespace mayfly::cli
