// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the daemon knows of its configuration file: its settings, the text that it has loaded, and who is
// changing it. One client at a time: kCmdConfigBegin takes the lock, which goes when the changes are made or
// refused, or with the connection.
//
// The daemon does not read YAML after its start: a client compares files, sends changes as control messages
// (control/change.hpp) and the new text, and kCmdConfigApply makes all of them or none.
//
// There may be a million changes and hundreds of megabytes of text. They are kept in pieces that are never
// moved together, and taken apart by teardown, since to free them takes tens of milliseconds. Control thread.

#include <deque>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "control/change.hpp"
#include "control/protocol.hpp"
#include "reclaim/retire.hpp"

namespace mayfly {

class Connection;

// Text of any length. A copy costs nothing, since it shares the pieces: whoever reads them over several
// slices takes one, and goes on reading them whatever is assigned to the original. Nothing is appended to
// what was copied.
class ConfigText {
 public:
  using Pieces = std::deque<std::string>;

  ConfigText() = default;
  explicit ConfigText(std::string_view text) { append(text); }
  // At the start of the daemon, and in tests.
  ConfigText& operator=(std::string_view text) { return *this = ConfigText(text); }
  void append(std::string_view piece);

  size_t size() const noexcept { return bytes_; }
  const Pieces& pieces() const noexcept { return *pieces_; }
  std::string whole() const;

 private:
  std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
  size_t bytes_ = 0;
};

using Changes = std::deque<Change>;

class Configuration {
 public:
  static constexpr size_t kMostTextBytes = protocol::kMostConfigBytes;
  static constexpr size_t kMostChanges = 16'777'216;

  std::string settings;  // YAML of everything but the network, as it was at start
  std::string file;      // as it was named; empty: none
  ConfigText text;       // what is loaded

  // EBUSY while another connection holds it; the text names that. Begins anew when it is held already.
  Status begin(Connection& connection, std::string_view new_file, RetireList& retired);
  void release(const Connection& connection, RetireList& retired);
  bool held_by(const Connection& connection) const noexcept { return holder_ == &connection; }

  // The daemon stops: what is being changed is left as it is.
  void stop() noexcept { stopping_ = true; }
  bool stopping() const noexcept { return stopping_; }

  // Of the holder.
  Changes& pending() noexcept { return pending_; }
  Status append_text(std::string_view piece);
  // The changes are made: the new text is what is loaded.
  void adopt(RetireList& retired);

  // For what was taken from here and is needed no more.
  static void discard(Changes changes, ConfigText text, RetireList& retired);

 private:
  Connection* holder_ = nullptr;
  bool stopping_ = false;
  Changes pending_;
  std::string pending_file_;
  ConfigText pending_text_;
};

}  // namespace mayfly
