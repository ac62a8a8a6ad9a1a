// SPDX-License-Identifier: BSD-3-Clause
#include "output.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/clock.hpp"

namespace mayfly::cli {

void Output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kFlushAt) flush();
}

void Output::vprint(fmt::string_view text, fmt::format_args args) {
  fmt::vformat_to(std::back_inserter(buffer_), text, args);
  if (buffer_.size() >= kFlushAt) flush();
}

void Output::write_json(const Json& document, bool pretty) {
  write(pretty ? document.pretty() : document.text());
  write("\n");
}

void Output::flush() {
  if (fd_ < 0) return;
  std::string_view left = buffer_;
  while (!left.empty() && error_ == 0) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written >= 0)
      left.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR)
      error_ = errno;
  }
  buffer_.clear();
}

bool Output::terminal() const noexcept {
  return fd_ >= 0 && isatty(fd_) == 1;
}

void JsonArray::begin() {
  if (begun_) return;
  begun_ = true;
  output_.write("[");
}

void JsonArray::add(const Json& element) {
  begin();
  if (!empty_) output_.write(",");
  empty_ = false;
  if (!pretty_) {
    output_.write(element.text());
    return;
  }
  std::string text = element.pretty();
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1 + Json::kIndent))
    text.insert(at + 1, Json::kIndent, ' ');
  output_.print("\n{:{}}{}", "", Json::kIndent, text);
}

void JsonArray::end() {
  if (!begun_) return;
  output_.write(pretty_ && !empty_ ? "\n]\n" : "]\n");
  begun_ = false;
  empty_ = true;
}

std::string format_age(uint64_t then_ns, uint64_t now_ns) {
  if (then_ns == 0) return "never";
  const uint64_t seconds = now_ns > then_ns ? (now_ns - then_ns) / kNsPerSecond : 0;
  if (seconds < 120) return fmt::format("{} s ago", seconds);
  if (seconds < 120 * 60) return fmt::format("{} min ago", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h ago", seconds / 3600);
  return fmt::format("{} d ago", seconds / 86400);
}

}  // namespace mayfly::cli
