// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// One run of the CLI: its options, its output, and its connections to the daemon, which are opened when first
// needed (a connection speaks one family, and a batch may need both).

#include <optional>
#include <string>
#include <string_view>

#include "control/client.hpp"
#include "options.hpp"
#include "output.hpp"
#include "plan.hpp"

namespace mayfly::cli {

class Session {
 public:
  Session(const Options& options, Output& output) noexcept : options_(options), output_(output) {}

  const Options& options() const noexcept { return options_; }
  Output& out() noexcept { return output_; }

  Result<ControlClient*> client(Plan::Family family);
  // A connection of its own, of family route, that hears of these groups of events.
  Result<ControlClient> listen(uint32_t groups);
  // Sends one message, prints the daemon's warnings, and says when a dump may be inconsistent.
  Status request(Plan::Family family, RequestMessage& message, const ControlClient::Answer& on_answer = {});
  // The boot id of the daemon that answered; empty before the first request.
  const std::string& boot_id() const noexcept { return boot_id_; }

  // Carries the plan out; the exit status. Errors are printed.
  int execute(Plan& plan);

  // Lines on standard error, after what was printed so far.
  void complain(const Error& error);
  void note(std::string_view text);

 private:
  const Options& options_;
  Output& output_;
  std::optional<ControlClient> route_;
  std::optional<ControlClient> generic_;
  std::string boot_id_;
};

}  // namespace mayfly::cli
