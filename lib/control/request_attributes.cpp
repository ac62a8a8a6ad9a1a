// SPDX-License-Identifier: BSD-3-Clause
#include "control/request_attributes.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace mayfly {
namespace {

size_t exact_bytes(const AttributeSpec& spec) {
  switch (spec.type) {
    case AttributeSpec::Type::u8:
      return 1;
    case AttributeSpec::Type::u16:
      return 2;
    case AttributeSpec::Type::u32:
      return 4;
    case AttributeSpec::Type::u64:
      return 8;
    default:
      return spec.bytes;
  }
}

constexpr size_t kIpv4Bytes = sizeof(Ipv4);
constexpr size_t kIpv6Bytes = sizeof(Ipv6);

IpAddress read_address(const nlattr& attribute) {
  const auto* octets = reinterpret_cast<const uint8_t*>(RequestAttributes::payload(attribute));
  if (RequestAttributes::bytes(attribute).size() == kIpv6Bytes) return IpAddress(load_ipv6(octets));
  Ipv4 address;
  std::memcpy(&address, octets, sizeof address);
  return IpAddress(ntohl(address));
}

Status check_address(const AttributeSpec& spec, const nlattr& attribute) {
  const size_t length = RequestAttributes::bytes(attribute).size();
  if (length == kIpv4Bytes) return {};
  if (length != kIpv6Bytes)
    return fail_attribute(spec.number, EINVAL, "{}: {} bytes, accepted {} (IPv4) or {} (IPv6)", spec.name,
                          length, kIpv4Bytes, kIpv6Bytes);
  if (const IpAddress address = read_address(attribute); address.is_v4())
    return fail_attribute(spec.number, EINVAL, "{} {}: an IPv4-mapped address", spec.name,
                          format_ipv6(address.v6()));
  return {};
}

Status check_attribute(const AttributeSpec& spec, const nlattr& attribute) {
  const size_t length = RequestAttributes::bytes(attribute).size();
  switch (spec.type) {
    case AttributeSpec::Type::flag:
    case AttributeSpec::Type::nested:
      return {};
    case AttributeSpec::Type::address:
      return check_address(spec, attribute);
    case AttributeSpec::Type::string:
      if (length == 0 || RequestAttributes::payload(attribute)[length - 1] != std::byte{0})
        return fail_attribute(spec.number, EINVAL, "{}: the string does not end with a NUL", spec.name);
      if (spec.bytes != 0 && length - 1 > spec.bytes)
        return fail_attribute(spec.number, EINVAL, "{} '{}': {} characters, accepted 1..{}", spec.name,
                              RequestAttributes::text(attribute).substr(0, 64), length - 1, spec.bytes);
      return {};
    default:
      if (length != exact_bytes(spec))
        return fail_attribute(spec.number, EINVAL, "{}: {} bytes, accepted {}", spec.name, length,
                              exact_bytes(spec));
      return {};
  }
}

}  // namespace

std::optional<IpAddress> RequestAttributes::address(uint16_t number) const noexcept {
  const nlattr* attribute = find(number);
  if (attribute == nullptr) return std::nullopt;
  return read_address(*attribute);
}

Result<RequestAttributes> RequestAttributes::parse(std::span<const std::byte> bytes,
                                                   std::span<const AttributeSpec> specs) {
  RequestAttributes parsed;
  parsed.all_ = bytes;
  Status status;
  const bool well_formed = walk(bytes, [&](const nlattr& attribute) {
    const auto number = static_cast<uint16_t>(attribute.nla_type & NLA_TYPE_MASK);
    const auto spec = std::ranges::find(specs, number, &AttributeSpec::number);
    if (spec == specs.end()) {
      status = fail_attribute(number, EINVAL, "attribute {}: unknown here", number);
      return false;
    }
    if (status = check_attribute(*spec, attribute); !status) return false;
    if (const nlattr* first = parsed.find(number); first != nullptr) {
      if (spec->repeated) return true;
      status = fail_attribute(number, EINVAL, "{}: given twice", spec->name);
      return false;
    }
    if (parsed.count_ == kMost) {
      status = fail_attribute(number, EINVAL, "more than {} attributes", kMost);
      return false;
    }
    parsed.numbers_[parsed.count_] = number;
    parsed.attributes_[parsed.count_++] = &attribute;
    return true;
  });
  if (!status) return std::unexpected(status.error());
  if (!well_formed) return fail(EINVAL, "attributes: the lengths do not add up to the message");
  return parsed;
}

Result<RequestAttributes> RequestAttributes::parse_nested(const nlattr& nested,
                                                          std::span<const AttributeSpec> specs) {
  return parse(bytes(nested), specs);
}

}  // namespace mayfly
