// SPDX-License-Identifier: BSD-3-Clause
#include "dressing.hpp"

#include <arpa/inet.h>
#include <linux/if_addr.h>

#include "base/units.hpp"

namespace mayfly::cli {
namespace {

using Step = DressingSpec::Step;

template <class T>
T value_or_fail(Words& words, Result<T> result) {
  if (result) return *result;
  words.fail(result.error().code, "{}", result.error().text);
  return T{};
}

IpPrefix take_prefix(Words& words, std::string_view what) {
  const std::string_view text = words.text();
  return words.status() ? value_or_fail(words, parse_ip_prefix(what, text)) : IpPrefix{};
}

// For the address that was taken just before.
Step take_step(Words& words, std::string_view what, IpAddress address) {
  if (!words.status() || !words.take("step")) return {};
  const std::string_view text = words.text();
  if (!words.status()) return {};
  const std::string subject = fmt::format("{} step", what);
  if (!text.starts_with('/')) return {value_or_fail(words, parse_number(subject, text, 0, UINT64_MAX)), 0};
  const uint8_t bits = IpPrefix(address, 0).most_length();
  const uint64_t length = value_or_fail(words, parse_number(subject, text.substr(1), 1, bits));
  if (!words.status()) return {};
  return {1, static_cast<uint8_t>(bits - length)};
}

DressingSpec::Address take_address(Words& words, std::string_view what, bool steps) {
  DressingSpec::Address address;
  address.prefix = take_prefix(words, what);
  if (steps) address.step = take_step(words, what, address.prefix.address);
  return address;
}

DressingSpec::Neighbour take_neighbour(Words& words, bool steps) {
  DressingSpec::Neighbour neighbour;
  const std::string_view text = words.text();
  if (!words.status()) return neighbour;
  neighbour.address = value_or_fail(words, parse_address("neigh", text));
  if (steps) neighbour.step = take_step(words, "neigh", neighbour.address);
  if (!words.status()) return neighbour;
  if (!words.take("lladdr")) {
    words.fail(EINVAL, "neigh {}: expected 'lladdr MAC'", text);
    return neighbour;
  }
  neighbour.mac = words.mac();
  if (steps && words.status() && words.take("step")) neighbour.mac_step = words.number(0, UINT64_MAX);
  return neighbour;
}

void put_address(RequestMessage& message, IpAddress address) {
  if (address.is_v4()) {
    const uint32_t network = htonl(address.v4());
    message.put(protocol::kDressAddress, &network, sizeof network);
    return;
  }
  uint8_t octets[16];
  store_ipv6(octets, address.v6());
  message.put(protocol::kDressAddress, octets, sizeof octets);
}

void put_step(RequestMessage& message, Step step) {
  if (step.step == 0) return;
  message.put_u64(protocol::kDressStep, step.step);
  if (step.shift != 0) message.put_u8(protocol::kDressStepShift, step.shift);
}

void put_prefixes(RequestMessage& message, uint16_t attribute,
                  const std::vector<DressingSpec::Address>& prefixes) {
  for (const DressingSpec::Address& each : prefixes) {
    const RequestMessage::Nest nest(message, attribute);
    put_address(message, each.prefix.address);
    message.put_u8(protocol::kDressLength, each.prefix.length);
    put_step(message, each.step);
    if (each.nodad) message.put_u32(protocol::kDressFlags, IFA_F_NODAD);
  }
}

}  // namespace

bool take_dressing_word(Words& words, DressingSpec& dressing) {
  if (words.take("addr")) {
    dressing.addresses.push_back(take_address(words, "addr", true));
    if (words.status() && words.take("nodad")) dressing.addresses.back().nodad = true;
  } else if (words.take("route")) {
    dressing.routes.push_back(take_address(words, "route", true));
  } else if (words.take({"neigh", "neighbour"})) {
    dressing.neighbours.push_back(take_neighbour(words, true));
  } else {
    return false;
  }
  return true;
}

bool take_dressing_cell(std::string_view column, Words& words, DressingSpec& dressing) {
  if (column == "addr") {
    while (!words.done()) {
      dressing.addresses.push_back(take_address(words, column, false));
      if (words.status() && words.take("nodad")) dressing.addresses.back().nodad = true;
    }
  } else if (column == "route") {
    while (!words.done()) dressing.routes.push_back(take_address(words, column, false));
  } else if (column == "neigh") {
    while (!words.done()) dressing.neighbours.push_back(take_neighbour(words, false));
  } else {
    return false;
  }
  return true;
}

void put_dressing(RequestMessage& message, const DressingSpec& dressing) {
  put_prefixes(message, protocol::kBulkAddress, dressing.addresses);
  put_prefixes(message, protocol::kBulkRoute, dressing.routes);
  for (const DressingSpec::Neighbour& neighbour : dressing.neighbours) {
    const RequestMessage::Nest nest(message, protocol::kBulkNeighbour);
    put_address(message, neighbour.address);
    put_step(message, neighbour.step);
    uint8_t octets[6];
    store_mac(octets, neighbour.mac);
    message.put(protocol::kDressLladdr, octets, sizeof octets);
    if (neighbour.mac_step != 0) message.put_u64(protocol::kDressLladdrStep, neighbour.mac_step);
  }
}

}  // namespace mayfly::cli
