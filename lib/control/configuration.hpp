// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What the daemon knows of its configuration file: its settings, the text that it has loaded, and who is
// changing it. One client at a time: kCmdConfigBegin takes the lock, which goes when the changes are made or
// refused, or with the connection.
//
// The daemon does not read YAML after its start: a client compares files, sends changes as control messages
// (control/change.hpp) and the new text, and kCmdConfigApply makes all of them or none. Control thread.

#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/change.hpp"
#include "control/protocol.hpp"

namespace mayfly {

class Connection;

class Configuration {
 public:
  static constexpr size_t kMostTextBytes = protocol::kMostConfigBytes;
  static constexpr size_t kMostChanges = 16'777'216;

  std::string settings;  // YAML of everything but the network, as it was at start
  std::string file;      // as it was named; empty: none
  std::string text;      // what is loaded

  // EBUSY while another connection holds it; the text names that. Begins anew when it is held already.
  Status begin(Connection& connection, std::string_view new_file);
  void release(const Connection& connection) noexcept;
  bool held_by(const Connection& connection) const noexcept { return holder_ == &connection; }

  // The daemon stops: what is being changed is left as it is.
  void stop() noexcept { stopping_ = true; }
  bool stopping() const noexcept { return stopping_; }

  // Of the holder.
  std::vector<Change>& pending() noexcept { return pending_; }
  Status append_text(std::string_view piece);
  // The changes are made: the new text is what is loaded.
  void adopt() noexcept;

 private:
  Connection* holder_ = nullptr;
  bool stopping_ = false;
  std::vector<Change> pending_;
  std::string pending_file_;
  std::string pending_text_;
};

}  // namespace mayfly
