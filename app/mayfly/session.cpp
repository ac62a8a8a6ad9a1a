// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <cstdio>

namespace mayfly::cli {

Result<ControlClient*> Session::client(Plan::Family family) {
  std::optional<ControlClient>& wanted = family == Plan::Family::route ? route_ : generic_;
  if (!wanted) {
    auto connected = ControlClient::connect(
        {.socket = options_.socket,
         .family = static_cast<uint32_t>(family == Plan::Family::route ? NETLINK_ROUTE : NETLINK_GENERIC),
         .netns = options_.netns,
         .client_name = "mayfly"});
    if (!connected) return std::unexpected(connected.error());
    wanted.emplace(std::move(*connected));
    boot_id_ = wanted->daemon().boot_id;
  }
  return &*wanted;
}

Result<ControlClient> Session::listen(uint32_t groups) {
  auto connected = ControlClient::connect({.socket = options_.socket,
                                           .family = NETLINK_ROUTE,
                                           .netns = options_.netns,
                                           .client_name = "mayfly monitor",
                                           .groups = groups});
  if (connected) boot_id_ = connected->daemon().boot_id;
  return connected;
}

Status Session::request(Plan::Family family, RequestMessage& message,
                        const ControlClient::Answer& on_answer) {
  const auto connection = client(family);
  if (!connection) return std::unexpected(connection.error());
  Status done = (*connection)->request(message, on_answer);
  for (const std::string& warning : (*connection)->take_warnings()) note("Warning: " + warning);
  if ((*connection)->dump_interrupted())
    note("The set changed while it was listed: what is shown may not be of one moment.");
  return done;
}

int Session::execute(Plan& plan) {
  Result<int> status = kExitOk;
  if (plan.present) {
    status = plan.present(*this, plan);
  } else if (Status done = request(plan.family, plan.message); !done) {
    status = std::unexpected(done.error());
  }
  if (status) return *status;
  complain(status.error());
  return kExitRefused;
}

void Session::complain(const Error& error) {
  note("Error: " + error.text);
}

void Session::note(std::string_view text) {
  output_.flush();
  fmt::print(stderr, "{}\n", text);
}

}  // namespace mayfly::cli
