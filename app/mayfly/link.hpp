// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Between the files of the object "link", and for "address show", which prints interfaces too.

#include <cstdint>
#include <string>
#include <string_view>

#include "control/client.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "selector.hpp"

namespace mayfly::cli {

std::string link_help();

// link bulk add | del, and "link del" by selector (bulk.cpp).
Status parse_link_bulk(Words& words, const Options& options, Plan& plan);
void plan_delete_selected(Plan& plan, const Selector& selector, std::string operation, bool dry_run,
                          bool force);
void plan_flush(Plan& plan, std::string_view netns, bool dry_run, bool force);
void plan_delete_named(Plan& plan, std::string_view name, bool force);

// link show [NAME | SELECTOR] (link_show.cpp).
Status parse_link_show(Words& words, const Options& options, Plan& plan);
// RTM_GETLINK: for one name, or a dump of what the selector matches.
void begin_get_link(RequestMessage& message, std::string_view name, const Selector& selector);
// [dev] NAME, or conditions.
Status parse_link_choice(Words& words, std::string_view* name, Selector* selector);

// The parts of an interface's description that "link show" and "address show" share.
uint32_t link_index(const nlmsghdr& answer);
std::string link_headline(const nlmsghdr& answer, const Attributes& attributes);
std::string link_state(const Attributes& attributes);
Json link_json(const nlmsghdr& answer, const Attributes& attributes, const Options& options,
               std::string_view boot_id);

}  // namespace mayfly::cli
