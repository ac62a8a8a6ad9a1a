// SPDX-License-Identifier: BSD-3-Clause
#include "batch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

namespace mayfly::cli {
namespace {

constexpr size_t kReadBuffer = 256 * 1024;

constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

}  // namespace

Status split_line(std::string* line, std::vector<std::string_view>* words) {
  words->clear();
  char* const text = line->data();
  const size_t size = line->size();
  size_t in = 0;
  size_t out = 0;
  while (in < size) {
    if (is_space(text[in])) {
      ++in;
      continue;
    }
    if (text[in] == '#') break;
    const size_t start = out;
    char quote = 0;
    for (; in < size && (quote != 0 || !is_space(text[in])); ++in) {
      const char c = text[in];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else if (c == '\\' && quote != '\'' && in + 1 < size) {
        text[out++] = text[++in];
      } else {
        text[out++] = c;
      }
    }
    if (quote != 0) return fail(EINVAL, "a {} is not closed", quote);
    words->emplace_back(text + start, out - start);
  }
  return {};
}

LineReader::LineReader(int fd) : fd_(fd), buffer_(kReadBuffer) {}

Result<bool> LineReader::fill(const std::function<void()>& before_wait) {
  pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, 0) == 0) before_wait();
  for (;;) {
    const ssize_t got = read(fd_, buffer_.data(), buffer_.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(errno, "{}", strerror(errno));
    at_ = 0;
    end_ = static_cast<size_t>(got);
    return got > 0;
  }
}

Result<bool> LineReader::append_line(std::string* line, const std::function<void()>& before_wait) {
  bool any = false;
  for (;;) {
    if (at_ == end_) {
      const auto more = fill(before_wait);
      if (!more) return more;
      if (!*more) return any;
    }
    any = true;
    const char* const start = buffer_.data() + at_;
    const auto* newline = static_cast<const char*>(memchr(start, '\n', end_ - at_));
    const size_t length = newline != nullptr ? static_cast<size_t>(newline - start) : end_ - at_;
    line->append(start, length);
    at_ += length;
    if (newline == nullptr) continue;
    ++at_;
    ++lines_;
    return true;
  }
}

Result<bool> LineReader::next(std::string* line, const std::function<void()>& before_wait) {
  line->clear();
  number_ = lines_ + 1;
  for (;;) {
    const auto more = append_line(line, before_wait);
    if (!more || !*more) return more ? Result<bool>(!line->empty()) : more;
    size_t backslashes = 0;
    while (backslashes < line->size() && (*line)[line->size() - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) return true;
    line->back() = ' ';
  }
}

void Batch::report(const Error& error, uint64_t line, int status) {
  session_.complain(error);
  session_.note(fmt::format("Command failed {}:{}", name_, line));
  status_ = session_.options().force ? kExitRefused : status;
}

void Batch::refused(uint32_t sequence, const Error& error) {
  while (!unanswered_.empty() && unanswered_.front().sequence < sequence) unanswered_.pop_front();
  if (unanswered_.empty() || unanswered_.front().sequence != sequence || stopped()) return;
  report(error, unanswered_.front().line, kExitRefused);
}

// Waits for the answers to everything that was sent ahead.
void Batch::settle() {
  if (ahead_ == nullptr) return;
  if (stopped()) ahead_->discard();
  const Status done = ahead_->drain();
  for (const std::string& warning : ahead_->take_warnings()) session_.note("Warning: " + warning);
  if (!done && !stopped()) {
    while (!unanswered_.empty() && unanswered_.front().sequence <= ahead_->answered())
      unanswered_.pop_front();
    report(done.error(), unanswered_.empty() ? 0 : unanswered_.front().line, kExitRefused);
  }
  unanswered_.clear();
}

void Batch::send_ahead(uint64_t line) {
  if (ahead_ == nullptr) {
    const auto client = session_.client(Plan::Family::route);
    if (!client) return report(client.error(), line, kExitRefused);
    ahead_ = *client;
    ahead_->on_refused([this](uint32_t sequence, const Error& error) { refused(sequence, error); });
  }
  const bool chained = !session_.options().force && !unanswered_.empty();
  const auto sequence = ahead_->enqueue(plan_.message, chained ? protocol::kFlagChained : 0);
  if (!sequence) return report(sequence.error(), line, kExitRefused);
  while (!unanswered_.empty() && unanswered_.front().sequence <= ahead_->answered()) unanswered_.pop_front();
  unanswered_.push_back({*sequence, line});
}

void Batch::carry_out(std::span<const std::string_view> words, uint64_t line) {
  plan_.reset();
  if (const Status understood = parse_command(words, session_.options(), plan_); !understood) {
    settle();
    if (!stopped()) report(understood.error(), line, exit_status_of(understood.error()));
    return;
  }
  if (plan_.simple_change()) return send_ahead(line);
  settle();
  if (stopped()) return;
  const int status = session_.execute(plan_);
  if (status == kExitOk) return;
  session_.note(fmt::format("Command failed {}:{}", name_, line));
  status_ = session_.options().force ? kExitRefused : status;
}

int Batch::run(int fd) {
  LineReader reader(fd);
  std::string line;
  std::vector<std::string_view> words;
  const std::function<void()> before_wait = [this] {
    settle();
    session_.out().flush();
  };
  while (!stopped()) {
    const auto more = reader.next(&line, before_wait);
    if (!more) {
      settle();
      report(more.error(), reader.number(), kExitUsage);
      break;
    }
    if (!*more || stopped()) break;
    if (const Status split = split_line(&line, &words); !split) {
      settle();
      if (!stopped()) report(split.error(), reader.number(), kExitUsage);
    } else if (!words.empty()) {
      carry_out(words, reader.number());
    }
  }
  settle();
  return status_;
}

int run_batch(Session& session, const std::string& name) {
  if (name == "-") return Batch(session, name).run(STDIN_FILENO);
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    session.complain({errno, fmt::format("{}: {}", name, strerror(errno))});
    return kExitUsage;
  }
  const int status = Batch(session, name).run(fd);
  close(fd);
  return status;
}

}  // namespace mayfly::cli
