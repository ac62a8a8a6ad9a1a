// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the CLI writes to standard output: text or JSON, buffered, and streamed, so that a dump of a million
// interfaces starts to appear at once and needs no memory.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "json.hpp"

namespace mayfly::cli {

class Output {
 public:
  // fd < 0 keeps everything for take(): tests.
  explicit Output(int fd) noexcept : fd_(fd) {}
  ~Output() { flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  template <class... Args>
  void print(fmt::format_string<Args...> text, Args&&... args) {
    vprint(text, fmt::make_format_args(args...));
  }
  void write(std::string_view text);
  // One JSON document and a newline.
  void write_json(const Json& document, bool pretty);
  // After a write that failed (a full disk) nothing more is written: what is there has no holes.
  void flush();
  // The errno of that write, 0 when there was none. Asked after the last flush().
  int error() const noexcept { return error_; }
  std::string take() { return std::exchange(buffer_, {}); }
  bool terminal() const noexcept;

 private:
  static constexpr size_t kFlushAt = 64 * 1024;
  // Out of line: {fmt} leaves all of its formatting in whichever source formats to an iterator.
  void vprint(fmt::string_view text, fmt::format_args args);
  int fd_;
  int error_ = 0;
  std::string buffer_;
};

// A JSON array whose elements are written as they arrive. An array that was never begun prints nothing;
// begin() alone prints "[]".
class JsonArray {
 public:
  JsonArray(Output& output, bool pretty) noexcept : output_(output), pretty_(pretty) {}
  ~JsonArray() { end(); }
  JsonArray(const JsonArray&) = delete;
  JsonArray& operator=(const JsonArray&) = delete;

  void begin();
  void add(const Json& element);
  void end();

 private:
  Output& output_;
  bool pretty_;
  bool begun_ = false;
  bool empty_ = true;
};

// "12 s ago", "3 min ago"; "never" for 0.
std::string format_age(uint64_t then_ns, uint64_t now_ns);

}  // namespace mayfly::cli
