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

Status check_family(const Options& options, IpAddress address) {
  if (options.family() == AF_UNSPEC || options.family() == family_of(address)) return {};
  return fail(EINVAL, "'{}': an {} address is expected", format_address(address),
              options.ipv6 ? "IPv6" : "IPv4");
}

void put_address(RequestMessage& message, uint16_t attribute, IpAddress address) {
  if (address.is_v4()) return message.put_u32(attribute, htonl(address.v4()));
  uint8_t octets[sizeof(Ipv6)];
  store_ipv6(octets, address.v6());
  message.put(attribute, octets, sizeof octets);
}

std::optional<IpAddress> address_of(const Attributes& attributes, uint16_t attribute) {
  const std::span<const uint8_t> bytes = attributes.bytes(attribute);
  if (bytes.size() == sizeof(Ipv6)) return IpAddress(load_ipv6(bytes.data()));
  if (bytes.size() != sizeof(Ipv4)) return std::nullopt;
  Ipv4 address = 0;
  memcpy(&address, bytes.data(), sizeof address);
  return IpAddress(ntohl(address));
}

std::string name_of(std::span<const Named> names, uint32_t number) {
  for (const Named& entry : names)
    if (entry.number == number) return std::string(entry.name);
  return fmt::format("{}", number);
}

const Named* find_name(std::span<const Named> names, std::string_view word) {
  for (const Named& entry : names)
    if (entry.name == word) return &entry;
  return nullptr;
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
