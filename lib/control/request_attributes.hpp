// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Netlink attributes, read strictly from bytes a client sent.
//
// A message's attributes are described by a table of AttributeSpec. parse() walks them once and refuses what
// the table does not allow (unknown type, wrong length, string without end, the same attribute twice) with
// the errno and the name of the attribute; afterwards get functions cannot fail for malformed input. The
// views point into the message. Control thread; no allocation except for an error's text.

#include <linux/netlink.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/ip_address.hpp"

namespace mayfly {

struct AttributeSpec {
  enum class Type : uint8_t { u8, u16, u32, u64, string, binary, nested, flag, address };
  uint16_t number;
  Type type;
  const char* name;
  uint16_t bytes =
      0;  // binary: exact length; address: either family's; string: longest, 0: no limit of its own
  bool repeated = false;  // read it with each()
};

class RequestAttributes {
 public:
  static Result<RequestAttributes> parse(std::span<const std::byte> bytes,
                                         std::span<const AttributeSpec> specs);
  // The attributes inside a nested one.
  static Result<RequestAttributes> parse_nested(const nlattr& nested, std::span<const AttributeSpec> specs);

  bool has(uint16_t number) const noexcept { return find(number) != nullptr; }
  const nlattr* find(uint16_t number) const noexcept {
    for (size_t i = 0; i < count_; ++i)
      if (numbers_[i] == number) return attributes_[i];
    return nullptr;
  }

  template <class T>
  std::optional<T> get(uint16_t number) const noexcept {
    const nlattr* attribute = find(number);
    if (attribute == nullptr) return std::nullopt;
    T value;
    std::memcpy(&value, payload(*attribute), sizeof value);
    return value;
  }
  std::optional<uint8_t> u8(uint16_t number) const noexcept { return get<uint8_t>(number); }
  std::optional<uint16_t> u16(uint16_t number) const noexcept { return get<uint16_t>(number); }
  std::optional<uint32_t> u32(uint16_t number) const noexcept { return get<uint32_t>(number); }
  std::optional<uint64_t> u64(uint16_t number) const noexcept { return get<uint64_t>(number); }
  // 4 bytes are IPv4, 16 IPv6: an IPv4-mapped address was refused.
  std::optional<IpAddress> address(uint16_t number) const noexcept;
  std::optional<std::string_view> string(uint16_t number) const noexcept {
    const nlattr* attribute = find(number);
    if (attribute == nullptr) return std::nullopt;
    return text(*attribute);
  }
  std::span<const std::byte> binary(uint16_t number) const noexcept {
    const nlattr* attribute = find(number);
    return attribute == nullptr ? std::span<const std::byte>{} : bytes(*attribute);
  }

  // visit(const nlattr&) for each attribute of a repeated number, in order.
  template <class Visit>
  void each(uint16_t number, Visit visit) const {
    walk(all_, [&](const nlattr& attribute) {
      if ((attribute.nla_type & NLA_TYPE_MASK) == number) visit(attribute);
      return true;
    });
  }

  static const std::byte* payload(const nlattr& attribute) noexcept {
    return reinterpret_cast<const std::byte*>(&attribute) + NLA_HDRLEN;
  }
  static std::span<const std::byte> bytes(const nlattr& attribute) noexcept {
    return {payload(attribute), attribute.nla_len - static_cast<size_t>(NLA_HDRLEN)};
  }
  static std::string_view text(const nlattr& attribute) noexcept {
    return {reinterpret_cast<const char*>(payload(attribute)),
            strnlen(reinterpret_cast<const char*>(payload(attribute)), bytes(attribute).size())};
  }

 private:
  // False when the bytes are no row of attributes; visit returns whether to go on.
  template <class Visit>
  static bool walk(std::span<const std::byte> bytes, Visit visit);

  static constexpr size_t kMost = 40;
  std::span<const std::byte> all_;
  size_t count_ = 0;
  std::array<uint16_t, kMost> numbers_;
  std::array<const nlattr*, kMost> attributes_;
};

template <class Visit>
bool RequestAttributes::walk(std::span<const std::byte> bytes, Visit visit) {
  while (bytes.size() >= static_cast<size_t>(NLA_HDRLEN)) {
    const auto* attribute = reinterpret_cast<const nlattr*>(bytes.data());
    if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > bytes.size()) return false;
    if (!visit(*attribute)) return true;
    bytes = bytes.subspan(std::min<size_t>(NLA_ALIGN(attribute->nla_len), bytes.size()));
  }
  return bytes.empty();
}

}  // namespace mayfly
