// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// For tests: a command line, parsed, and what it made of it.

#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#include <string>
#include <string_view>
#include <vector>

#include "mayfly/batch.hpp"
#include "mayfly/plan.hpp"

namespace mayfly::cli::test {

struct Parsed {
  explicit Parsed(std::string_view text, Options given = {}) : line(text), options(std::move(given)) {
    status = split_line(&line, &words);
    if (status) status = parse_command(words, options, plan);
  }

  bool ok() const { return status.has_value(); }
  // Exit status and text of a mistake.
  int exit() const { return status ? kExitOk : exit_status_of(status.error()); }
  std::string error() const { return status ? "" : status.error().text; }
  bool is_simple_change() const { return plan.simple_change(); }

  const nlmsghdr& header() const { return *plan.message.header(); }
  uint16_t type() const { return header().nlmsg_type; }
  uint16_t flags() const { return header().nlmsg_flags; }
  template <class Fixed>
  const Fixed& fixed() const {
    return *reinterpret_cast<const Fixed*>(reinterpret_cast<const char*>(&header()) + NLMSG_HDRLEN);
  }
  template <class Fixed>
  Attributes attributes() const {
    return Attributes(header(), sizeof(Fixed));
  }
  uint8_t command() const { return fixed<genlmsghdr>().cmd; }

  std::string line;
  std::vector<std::string_view> words;
  Options options;
  Plan plan;
  Status status;
};

}  // namespace mayfly::cli::test
