// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>

#include "base/address.hpp"
#include "base/units.hpp"
#include "port.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: mayfly port show [NAME]           (-s: with the device's own packet counters; -br: a line each)
       mayfly port show NAME xstats
       mayfly port add NAME DEVARGS [rx_queues N] [rx_descriptors N] [tx_descriptors N] [mtu N]
                       [promiscuous on|off]
       mayfly port del NAME              with its interface and everything stacked on it
DEVARGS: DPDK's: net_af_packet0,iface=eth1 | 0000:03:00.0 | net_bonding0,mode=1,slave=(DEVARGS),slave=(DEVARGS)
MTU, MAC address and promiscuous mode of a running port: mayfly link set NAME mtu N | address MAC | promisc on|off
)";

Status parse_show(Words& words, const Options&, Plan& plan) {
  words.take("dev");
  const std::string_view wanted = words.next();
  if (words.take("xstats")) {
    if (!words.done()) return words.unknown();
    plan.begin_generic(protocol::kCmdPortXstats, NLM_F_DUMP);
    plan.message.put_string(protocol::kPortName, wanted);
    plan.present = show_xstats;
    return {};
  }
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdPortShow, NLM_F_DUMP);
  plan.present = [wanted](Session& session, Plan& self) { return show_ports(session, self, wanted); };
  return {};
}

// A change that is only acknowledged, by the family of which a batch does not send ahead.
Result<int> change(Session& session, Plan& plan) {
  if (Status done = session.request(plan.family, plan.message); !done) return std::unexpected(done.error());
  return kExitOk;
}

bool take_number(Words& words, RequestMessage& message, std::string_view word, uint16_t attribute) {
  if (!words.take(word)) return false;
  message.put_u32(attribute, static_cast<uint32_t>(words.number(0, UINT32_MAX)));
  return true;
}

Status parse_add(Words& words, const Options&, Plan& plan) {
  const std::string_view name = words.next();
  const std::string_view devargs = words.next();
  if (name.empty() || devargs.empty()) return fail(EINVAL, "expected NAME DEVARGS: see 'mayfly port help'");
  plan.begin_generic(protocol::kCmdPortAdd);
  RequestMessage& message = plan.message;
  message.put_string(protocol::kPortName, name);
  message.put_string(protocol::kPortDevargs, devargs);
  while (!words.done()) {
    if (words.take({"promiscuous", "promisc"})) {
      const std::string_view value = words.text();
      if (value != "on" && value != "off") return fail(EINVAL, "promiscuous '{}': accepted on, off", value);
      message.put_u8(protocol::kPortPromiscuous, value == "on" ? 1 : 0);
    } else if (!take_number(words, message, "rx_queues", protocol::kPortRxQueues) &&
               !take_number(words, message, "rx_descriptors", protocol::kPortRxDescriptors) &&
               !take_number(words, message, "tx_descriptors", protocol::kPortTxDescriptors) &&
               !take_number(words, message, "mtu", protocol::kPortMtu)) {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  plan.present = change;
  return {};
}

Status parse_delete(Words& words, const Options&, Plan& plan) {
  words.take("dev");
  const std::string_view name = words.next();
  if (name.empty()) return fail(EINVAL, "the name of the port is missing");
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdPortDel);
  plan.message.put_string(protocol::kPortName, name);
  plan.present = change;
  return {};
}

constexpr std::array kCommands = {CommandEntry{"show", parse_show}, CommandEntry{"add", parse_add},
                                  CommandEntry{"delete", parse_delete},
                                  CommandEntry{"list", parse_show, true}};

}  // namespace

Status parse_port(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of port", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
