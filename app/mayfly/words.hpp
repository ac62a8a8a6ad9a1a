// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The words of one command, read from left to right.
//
// Parsers read what they know and go on; the first mistake sticks, makes done() true and every later value
// zero, and is what status() returns. So a parser is a loop over take() without an error path at every word:
//
//   while (!words.done()) {
//     if (words.take("mtu")) spec.mtu = words.number(0, UINT32_MAX);
//     else if (words.take("dev")) spec.device = words.text();
//     else return words.unknown();
//   }
//   return words.status();
//
// EINVAL is a command that cannot be understood (exit status 2); ERANGE a value that could not even be sent
// (exit status 1, as when the daemon refuses it). The views point into the command line. No allocation but
// for mistakes.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "base/ip_address.hpp"
#include "base/result.hpp"
#include "control/link_description.hpp"

namespace mayfly::cli {

class Words {
 public:
  explicit Words(std::span<const std::string_view> words) noexcept : words_(words) {}

  bool done() const noexcept { return error_.has_value() || at_ == words_.size(); }
  // The next word; empty at the end.
  std::string_view peek() const noexcept { return done() ? std::string_view{} : words_[at_]; }
  // Everything that is left, without taking it.
  std::span<const std::string_view> rest() const noexcept { return words_.subspan(at_); }
  std::string_view next() noexcept { return done() ? std::string_view{} : words_[at_++]; }

  // Whether the next word is this one, which is then taken and names the value in mistakes.
  bool take(std::string_view word) noexcept;
  bool take(std::initializer_list<std::string_view> words) noexcept;

  // The value after the word just taken.
  std::string_view text();
  uint64_t number(uint64_t least, uint64_t most);
  uint64_t duration(uint64_t least_ns, uint64_t most_ns);
  Mac mac();
  IpAddress address();  // of either family
  IpPrefix prefix();
  bool choice(std::string_view no, std::string_view yes);  // one of two words
  NumberRange range(uint32_t most);                        // A or A-B
  uint16_t ethertype();                                    // 802.1Q, 802.1ad or a number

  // A mistake of the parser's own.
  template <class... Args>
  void fail(int code, fmt::format_string<Args...> text, Args&&... args) {
    if (!error_) error_ = Error{code, fmt::format(text, std::forward<Args>(args)...)};
  }
  // "unknown word 'x'"
  Status unknown();
  Status status() const;

 private:
  template <class T>
  T value_or_fail(Result<T> result) {
    if (result) return *result;
    if (!error_) error_ = std::move(result.error());
    return T{};
  }

  std::span<const std::string_view> words_;
  size_t at_ = 0;
  std::string_view subject_;
  std::optional<Error> error_;
};

// What a word means among the entries' names: the entry of that name, or the only one whose name begins with
// it. Entries with the same meaning (aliases) do not make a word ambiguous.
template <class Entry>
Result<const Entry*> find_abbreviated(std::span<const Entry> entries, std::string_view what,
                                      std::string_view word) {
  const Entry* found = nullptr;
  std::string candidates;
  bool ambiguous = false;
  for (const Entry& entry : entries) {
    if (entry.name == word) return &entry;
    if (word.empty() || !entry.name.starts_with(word)) continue;
    if (found != nullptr && entry.parse != found->parse) ambiguous = true;
    if (found == nullptr) found = &entry;
  }
  if (found != nullptr && !ambiguous) return found;
  for (const Entry& entry : entries) {
    if (ambiguous && !entry.name.starts_with(word)) continue;
    if (entry.hidden) continue;
    candidates += candidates.empty() ? "" : ", ";
    candidates += entry.name;
  }
  if (ambiguous) return fail(EINVAL, "{} '{}' is ambiguous: {}", what, word, candidates);
  return fail(EINVAL, "unknown {} '{}': expected one of {}", what, word, candidates);
}

}  // namespace mayfly::cli
