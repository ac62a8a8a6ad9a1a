// SPDX-License-Identifier: BSD-3-Clause
#include "words.hpp"

#include <linux/if_ether.h>
#include <strings.h>

#include "base/units.hpp"

namespace mayfly::cli {

bool Words::take(std::string_view word) noexcept {
  if (done() || words_[at_] != word) return false;
  subject_ = words_[at_++];
  return true;
}

bool Words::take(std::initializer_list<std::string_view> words) noexcept {
  for (const std::string_view word : words)
    if (take(word)) return true;
  return false;
}

std::string_view Words::text() {
  if (error_) return {};
  if (at_ == words_.size()) {
    fail(EINVAL, "'{}': a value must follow", subject_);
    return {};
  }
  return words_[at_++];
}

uint64_t Words::number(uint64_t least, uint64_t most) {
  const std::string_view value = text();
  return error_ ? 0 : value_or_fail(parse_number(subject_, value, least, most));
}

uint64_t Words::duration(uint64_t least_ns, uint64_t most_ns) {
  const std::string_view value = text();
  return error_ ? 0 : value_or_fail(parse_duration(subject_, value, least_ns, most_ns));
}

Mac Words::mac() {
  const std::string_view value = text();
  return error_ ? 0 : value_or_fail(parse_mac(subject_, value));
}

IpAddress Words::address() {
  const std::string_view value = text();
  return error_ ? IpAddress{} : value_or_fail(parse_address(subject_, value));
}

IpPrefix Words::prefix() {
  const std::string_view value = text();
  return error_ ? IpPrefix{} : value_or_fail(parse_ip_prefix(subject_, value));
}

bool Words::choice(std::string_view no, std::string_view yes) {
  const std::string_view value = text();
  if (!error_ && value != no && value != yes)
    fail(EINVAL, "{} '{}': expected {} or {}", subject_, value, yes, no);
  return value == yes;
}

NumberRange Words::range(uint32_t most) {
  const std::string_view value = text();
  return error_ ? NumberRange{} : value_or_fail(parse_range(subject_, value, most));
}

uint16_t Words::ethertype() {
  const std::string_view value = text();
  return error_ ? uint16_t{0} : value_or_fail(parse_ethertype(subject_, value));
}

Status Words::unknown() {
  if (!error_ && at_ < words_.size()) fail(EINVAL, "unknown word '{}'", words_[at_]);
  return status();
}

Status Words::status() const {
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace mayfly::cli
