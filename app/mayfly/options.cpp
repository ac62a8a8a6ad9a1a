// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <array>

namespace mayfly::cli {
namespace {

struct OptionEntry {
  std::string_view name;  // without dashes
  size_t shortest;        // how much of it must be there
  bool Options::*flag;
  std::string Options::*value;
};

constexpr std::array kOptions = {
    OptionEntry{"netns", 1, nullptr, &Options::netns},
    OptionEntry{"json", 1, &Options::json, nullptr},
    OptionEntry{"pretty", 1, &Options::pretty, nullptr},
    OptionEntry{"statistics", 1, &Options::statistics, nullptr},
    OptionEntry{"stats", 1, &Options::statistics, nullptr},
    OptionEntry{"details", 1, &Options::details, nullptr},
    OptionEntry{"brief", 2, &Options::brief, nullptr},
    OptionEntry{"batch", 1, nullptr, &Options::batch},
    OptionEntry{"force", 2, &Options::force, nullptr},
    OptionEntry{"socket", 2, nullptr, &Options::socket},
    OptionEntry{"4", 1, &Options::ipv4, nullptr},
    OptionEntry{"6", 1, &Options::ipv6, nullptr},
    OptionEntry{"help", 1, &Options::help, nullptr},
    OptionEntry{"version", 3, &Options::version, nullptr},
    OptionEntry{"Version", 1, &Options::version, nullptr},
};

}  // namespace

Result<Options> parse_options(std::span<const std::string_view>* words) {
  Options options;
  while (!words->empty() && words->front().starts_with('-')) {
    const std::string_view word = words->front();
    const std::string_view name = word.substr(word.starts_with("--") ? 2 : 1);
    *words = words->subspan(1);
    const OptionEntry* found = nullptr;
    for (const OptionEntry& entry : kOptions) {
      if (name.size() < entry.shortest || !entry.name.starts_with(name)) continue;
      found = &entry;
      break;
    }
    if (found == nullptr) return fail(EINVAL, "unknown option '{}'", word);
    if (found->flag != nullptr) {
      options.*found->flag = true;
      continue;
    }
    if (words->empty()) return fail(EINVAL, "option '{}': a value must follow", word);
    options.*found->value = words->front();
    *words = words->subspan(1);
  }
  if (options.ipv4 && options.ipv6) return fail(EINVAL, "options -4 and -6 exclude each other");
  return options;
}

}  // namespace mayfly::cli
