// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// -batch FILE: a command a line, '#' comments, quotes, backslashes.
//
// Simple changes are sent ahead: packed into datagrams, and acknowledgements matched back to their lines. So
// a million lines take about as long as the daemon needs. Any other command first waits for what was sent
// before it. Without -force the batch stops at the first error: what was sent ahead is chained
// (protocol::kFlagChained), so the daemon does not execute what follows the refused line.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session.hpp"

namespace mayfly::cli {

// Splits in place: the words point into *line, whose quotes and backslashes are removed. EINVAL for an open
// quote.
Status split_line(std::string* line, std::vector<std::string_view>* words);

// Lines of a file descriptor, joined where one ends in a backslash.
class LineReader {
 public:
  explicit LineReader(int fd);

  // False at the end. before_wait is called when no input is there yet and reading would block.
  Result<bool> next(std::string* line, const std::function<void()>& before_wait);
  // Number of the last line's first line.
  uint64_t number() const noexcept { return number_; }

 private:
  Result<bool> fill(const std::function<void()>& before_wait);
  Result<bool> append_line(std::string* line, const std::function<void()>& before_wait);

  int fd_;
  std::vector<char> buffer_;
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t number_ = 0;
  uint64_t lines_ = 0;
};

class Batch {
 public:
  Batch(Session& session, std::string name) : session_(session), name_(std::move(name)) {}

  // The exit status of the whole batch.
  int run(int fd);

 private:
  struct Sent {
    uint32_t sequence;
    uint64_t line;
  };

  void carry_out(std::span<const std::string_view> words, uint64_t line);
  void send_ahead(uint64_t line);
  void settle();
  void refused(uint32_t sequence, const Error& error);
  void report(const Error& error, uint64_t line, int status);
  bool stopped() const noexcept { return status_ != kExitOk && !session_.options().force; }

  Session& session_;
  std::string name_;
  Plan plan_;
  ControlClient* ahead_ = nullptr;  // the connection that lines were sent ahead on
  std::deque<Sent> unanswered_;
  int status_ = kExitOk;
};

// Opens the file; the exit status.
int run_batch(Session& session, const std::string& name);

}  // namespace mayfly::cli
