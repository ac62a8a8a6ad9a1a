// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A client of the daemon that speaks the command line's language: a run says what it does in the same words
// as a person would, and they are understood by the same parser (app/mayfly) and sent over the same socket.
//
//   Console console(socket);
//   console.run("link bulk add name c{} link port0 type vlan id 1-1000 inner 1-100");
//   console.read("reclaim show")["backlog_objects"]
//
// One thread a console. Blocks until the daemon has answered.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"
#include "control/client.hpp"

namespace mayfly::perf {

class Console {
 public:
  // netns: where the lines are meant; empty: `default`.
  explicit Console(std::string socket, std::string netns = {});
  ~Console();
  Console(Console&& other) noexcept;

  // The line's answer with -j; empty where it has none. An error begins with the line.
  Result<std::string> answer(std::string_view line);
  Status run(std::string_view line);
  Result<nlohmann::ordered_json> read(std::string_view line);
  // The same, where the line cannot fail while the daemon lives: null when it does.
  nlohmann::ordered_json look(std::string_view line);

  // A connection for messages that no line stands for.
  Result<ControlClient> connect(uint32_t family) const;
  const std::string& socket() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly::perf
