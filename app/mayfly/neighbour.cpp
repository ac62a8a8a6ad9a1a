// SPDX-License-Identifier: BSD-3-Clause
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <array>

#include "device.hpp"
#include "plan.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: mayfly neighbour add|replace|change ADDRESS lladdr MAC dev NAME [nud STATE] [router]
       mayfly neighbour del ADDRESS dev NAME
       mayfly neighbour show [dev NAME] [nud STATE]
       mayfly neighbour flush dev NAME     (permanent ones stay)
STATE: permanent | reachable | stale | delay | probe | incomplete | failed | noarp
)";

struct StateName {
  std::string_view name;
  std::string_view shown;
  uint16_t state;
};

constexpr std::array kStates = {
    StateName{"incomplete", "INCOMPLETE", NUD_INCOMPLETE},
    StateName{"reachable", "REACHABLE", NUD_REACHABLE},
    StateName{"stale", "STALE", NUD_STALE},
    StateName{"delay", "DELAY", NUD_DELAY},
    StateName{"probe", "PROBE", NUD_PROBE},
    StateName{"failed", "FAILED", NUD_FAILED},
    StateName{"noarp", "NOARP", NUD_NOARP},
    StateName{"permanent", "PERMANENT", NUD_PERMANENT},
};

const ndmsg& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const ndmsg*>(mnl_nlmsg_get_payload(&answer));
}

uint16_t take_state(Words& words) {
  const std::string_view word = words.text();
  for (const StateName& entry : kStates)
    if (entry.name == word) return entry.state;
  words.fail(EINVAL,
             "nud '{}': expected permanent, reachable, stale, delay, probe, incomplete, failed or noarp",
             word);
  return 0;
}

struct NeighbourSpec {
  std::optional<IpAddress> address;
  std::optional<Mac> mac;
  std::optional<uint16_t> state;
  std::string_view device;
  bool router = false;
};

Status read_neighbour(Words& words, const Options& options, NeighbourSpec& spec) {
  while (!words.done()) {
    if (words.take("dev")) {
      spec.device = words.text();
    } else if (words.take("lladdr")) {
      spec.mac = words.mac();
    } else if (words.take({"nud", "state"})) {
      spec.state = take_state(words);
    } else if (words.take("router")) {
      spec.router = true;
    } else if (words.take("to") || !spec.address) {
      spec.address = words.address();
    } else {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (!spec.address) return fail(EINVAL, "the neighbour's address is missing");
  if (spec.device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  return check_family(options, *spec.address);
}

Status parse_change(Words& words, const Options& options, Plan& plan, uint16_t type, uint16_t flags) {
  NeighbourSpec spec;
  if (Status understood = read_neighbour(words, options, spec); !understood) return understood;
  if (type == RTM_NEWNEIGH && !spec.mac) return fail(EINVAL, "'lladdr MAC' is missing");
  ndmsg fixed{};
  fixed.ndm_family = family_of(*spec.address);
  fixed.ndm_flags = spec.router ? NTF_ROUTER : 0;
  fixed.ndm_state = type == RTM_NEWNEIGH ? spec.state.value_or(NUD_PERMANENT) : 0;
  plan.begin_route(type, flags, fixed);
  put_address(plan.message, NDA_DST, *spec.address);
  if (spec.mac) {
    uint8_t octets[6];
    store_mac(octets, *spec.mac);
    plan.message.put(NDA_LLADDR, octets, sizeof octets);
  }
  put_device(plan.message, spec.device);
  return {};
}

Status parse_add(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL);
}
Status parse_replace(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
}
Status parse_modify(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_NEWNEIGH, NLM_F_REPLACE);
}
Status parse_delete(Words& words, const Options& options, Plan& plan) {
  return parse_change(words, options, plan, RTM_DELNEIGH, 0);
}

std::vector<std::string_view> state_names(uint16_t state) {
  std::vector<std::string_view> names;
  for (const StateName& entry : kStates)
    if ((state & entry.state) != 0) names.push_back(entry.shown);
  return names;
}

Result<int> show_neighbours(Session& session, Plan& plan, uint16_t states) {
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  const Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    const ndmsg& fixed = fixed_of(answer);
    if (answer.nlmsg_type != RTM_NEWNEIGH || (states != 0 && (fixed.ndm_state & states) == 0)) return;
    const Attributes attributes(answer, sizeof(ndmsg));
    const std::string address = format_address(address_of(attributes, NDA_DST).value_or(IpAddress{}));
    const std::string device = device_name(attributes, static_cast<uint64_t>(fixed.ndm_ifindex));
    const std::span<const uint8_t> octets = attributes.bytes(NDA_LLADDR);
    const std::string mac = octets.size() == 6 ? format_mac(load_mac(octets.data())) : "";
    const bool router = (fixed.ndm_flags & NTF_ROUTER) != 0;
    if (options.json) {
      Json neighbour{{"dst", address}, {"dev", device}};
      if (!mac.empty()) neighbour.set("lladdr", mac);
      if (router) neighbour.set("router", nullptr);
      neighbour.set("state", state_names(fixed.ndm_state));
      array.add(neighbour);
    } else {
      session.out().print("{} dev {}{}{}{} {}\n", address, device, mac.empty() ? "" : " lladdr ", mac,
                          router ? " router" : "", fmt::join(state_names(fixed.ndm_state), ","));
    }
  });
  if (!done) return std::unexpected(done.error());
  if (options.json) array.begin();
  return kExitOk;
}

void begin_dump(Plan& plan, uint8_t family, std::string_view device) {
  ndmsg fixed{};
  fixed.ndm_family = family;
  plan.begin_route(RTM_GETNEIGH, NLM_F_DUMP, fixed);
  put_device(plan.message, device);
}

Status parse_show(Words& words, const Options& options, Plan& plan) {
  std::string_view device;
  uint16_t states = 0;
  while (!words.done()) {
    if (words.take("dev")) {
      device = words.text();
    } else if (words.take({"nud", "state"})) {
      states |= take_state(words);
    } else {
      return words.unknown();
    }
  }
  begin_dump(plan, options.family(), device);
  plan.present = [states](Session& session, Plan& self) { return show_neighbours(session, self, states); };
  return words.status();
}

Status parse_flush(Words& words, const Options& options, Plan& plan) {
  std::string_view device;
  if (words.take("dev")) device = words.text();
  if (!words.done()) return words.unknown();
  if (Status understood = words.status(); !understood) return understood;
  if (device.empty()) return fail(EINVAL, "'dev NAME' is missing");
  begin_dump(plan, options.family(), device);
  plan.present = [](Session& session, Plan& self) {
    return flush_listed(session, self, [](const nlmsghdr& answer, RequestMessage& deletion) {
      const ndmsg& fixed = fixed_of(answer);
      const auto address = address_of(Attributes(answer, sizeof(ndmsg)), NDA_DST);
      if (answer.nlmsg_type != RTM_NEWNEIGH || (fixed.ndm_state & NUD_PERMANENT) != 0 || !address) return;
      deletion.begin_route(RTM_DELNEIGH, 0, fixed);
      put_address(deletion, NDA_DST, *address);
    });
  };
  return {};
}

constexpr std::array kCommands = {
    CommandEntry{"add", parse_add},         CommandEntry{"replace", parse_replace},
    CommandEntry{"change", parse_modify},   CommandEntry{"delete", parse_delete},
    CommandEntry{"show", parse_show},       CommandEntry{"flush", parse_flush},
    CommandEntry{"list", parse_show, true}, CommandEntry{"lst", parse_show, true},
};

}  // namespace

Status parse_neighbour(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of neighbour", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
