// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstring>
#include <vector>

#include "batch.hpp"
#include "control/protocol.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

int run_command(Session& session, std::span<const std::string_view> words) {
  Plan plan;
  const Status understood = parse_command(words, session.options(), plan);
  if (understood) return session.execute(plan);
  session.complain(understood.error());
  const int status = exit_status_of(understood.error());
  const bool known = !understood.error().text.starts_with("unknown object");
  if (status == kExitUsage)
    session.note(known && !words.empty() ? fmt::format("See 'mayfly {} help'.", words.front())
                                         : "See 'mayfly help'.");
  return status;
}

int run(std::span<const std::string_view> words, Output& output) {
  const auto options = parse_options(&words);
  if (!options) {
    fmt::print(stderr, "Error: {}\nSee 'mayfly help'.\n", options.error().text);
    return kExitUsage;
  }
  if (options->version) {
    output.print("mayfly {}, control protocol {}\n", MAYFLY_VERSION, protocol::kVersion);
    return kExitOk;
  }
  if (options->help) {
    output.write(general_help());
    return kExitOk;
  }
  Session session(*options, output);
  if (!options->batch.empty()) return run_batch(session, options->batch);
  if (words.empty()) {
    fmt::print(stderr, "{}", general_help());
    return kExitUsage;
  }
  return run_command(session, words);
}

// Half of a dump is the dump of another network: whoever keeps one is to know.
int run(std::span<const std::string_view> words) {
  Output output(STDOUT_FILENO);
  const int status = run(words, output);
  output.flush();
  if (output.error() == 0) return status;
  fmt::print(stderr, "Error: standard output: {}\n", std::strerror(output.error()));
  return status == kExitOk ? kExitRefused : status;
}

}  // namespace
}  // namespace mayfly::cli

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  return mayfly::cli::run(words);
}
