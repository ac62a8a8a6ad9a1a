// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>

#include "base/address.hpp"
#include "base/units.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp = R"(Usage: mayfly port show [NAME]
Ports are configured when the daemon starts (mayflyd --port NAME=DEVARGS, or its configuration file).
)";

std::string mac_text(const Attributes& port) {
  const std::span<const uint8_t> octets = port.bytes(protocol::kPortMac);
  return octets.size() == 6 ? format_mac(load_mac(octets.data())) : "";
}

Json port_json(const Attributes& port, std::string_view boot_id) {
  Json queues = Json::array();
  port.each(protocol::kPortQueue, [&queues](const Attributes& queue) {
    queues.push_back({{"queue", queue.number_or(protocol::kPortQueueIndex, 0)},
                      {"worker", queue.number_or(protocol::kPortQueueWorker, 0)}});
  });
  return {{"ifname", port.string(protocol::kPortName)},
          {"ifindex", port.number_or(protocol::kPortIfindex, 0)},
          {"state", port.string(protocol::kPortState)},
          {"devargs", port.string(protocol::kPortDevargs)},
          {"driver", port.string(protocol::kPortDriver)},
          {"numa_node", static_cast<int32_t>(port.number_or(protocol::kPortNumaNode, UINT64_MAX))},
          {"link_up", port.number_or(protocol::kPortLinkUp, 0) != 0},
          {"speed_mbps", port.number_or(protocol::kPortSpeed, 0)},
          {"mtu", port.number_or(protocol::kPortMtu, 0)},
          {"address", mac_text(port)},
          {"promiscuous", port.number_or(protocol::kPortPromiscuous, 0) != 0},
          {"rx_queues", port.number_or(protocol::kPortRxQueues, 0)},
          {"tx_queues", port.number_or(protocol::kPortTxQueues, 0)},
          {"rx_descriptors", port.number_or(protocol::kPortRxDescriptors, 0)},
          {"tx_descriptors", port.number_or(protocol::kPortTxDescriptors, 0)},
          {"queues", queues},
          {"imissed", port.number_or(protocol::kPortImissed, 0)},
          {"ierrors", port.number_or(protocol::kPortIerrors, 0)},
          {"rx_nombuf", port.number_or(protocol::kPortRxNombuf, 0)},
          {"oerrors", port.number_or(protocol::kPortOerrors, 0)},
          {"boot_id", boot_id}};
}

std::string speed_text(uint64_t speed) {
  if (speed == 0) return "speed unknown";
  return speed % 1000 == 0 ? fmt::format("{} Gbit/s", speed / 1000) : fmt::format("{} Mbit/s", speed);
}

void print_port(Output& out, const Attributes& port) {
  const uint64_t numa = port.number_or(protocol::kPortNumaNode, UINT32_MAX);
  out.print("{}: {} (ifindex {})\n", port.string(protocol::kPortName), port.string(protocol::kPortState),
            port.number_or(protocol::kPortIfindex, 0));
  out.print("    device  {}, driver {}, NUMA node {}\n", port.string(protocol::kPortDevargs),
            port.string(protocol::kPortDriver),
            static_cast<int32_t>(numa) < 0 ? std::string("none") : fmt::format("{}", numa));
  out.print("    link    {}, {}, mtu {}, address {}{}\n",
            port.number_or(protocol::kPortLinkUp, 0) != 0 ? "up" : "down",
            speed_text(port.number_or(protocol::kPortSpeed, 0)), port.number_or(protocol::kPortMtu, 0),
            mac_text(port), port.number_or(protocol::kPortPromiscuous, 0) != 0 ? ", promiscuous" : "");
  std::string queues;
  port.each(protocol::kPortQueue, [&queues](const Attributes& queue) {
    queues +=
        fmt::format("{}{} -> {}", queues.empty() ? "" : ", ", queue.number_or(protocol::kPortQueueIndex, 0),
                    queue.number_or(protocol::kPortQueueWorker, 0));
  });
  out.print("    queues  rx {} of {}, tx {} of {}; rx queue -> worker: {}\n",
            port.number_or(protocol::kPortRxQueues, 0), port.number_or(protocol::kPortRxDescriptors, 0),
            port.number_or(protocol::kPortTxQueues, 0), port.number_or(protocol::kPortTxDescriptors, 0),
            queues.empty() ? "none" : queues);
  out.print("    losses  imissed {}, rx_nombuf {}, ierrors {}, oerrors {}\n",
            port.number_or(protocol::kPortImissed, 0), port.number_or(protocol::kPortRxNombuf, 0),
            port.number_or(protocol::kPortIerrors, 0), port.number_or(protocol::kPortOerrors, 0));
}

Result<int> show_ports(Session& session, Plan& plan, std::string_view wanted) {
  const Options& options = session.options();
  JsonArray array(session.out(), options.pretty);
  bool found = wanted.empty();
  const Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    const Attributes port(answer, sizeof(genlmsghdr));
    if (!wanted.empty() && port.string(protocol::kPortName) != wanted) return;
    found = true;
    if (options.json)
      array.add(port_json(port, session.boot_id()));
    else
      print_port(session.out(), port);
  });
  if (!done) return std::unexpected(done.error());
  if (!found) return fail(ENODEV, "port '{}' does not exist", wanted);
  if (options.json) array.begin();
  return kExitOk;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
  words.take("dev");
  const std::string_view wanted = words.next();
  if (!words.done()) return words.unknown();
  plan.begin_generic(protocol::kCmdPortShow, NLM_F_DUMP);
  plan.present = [wanted](Session& session, Plan& self) { return show_ports(session, self, wanted); };
  return {};
}

constexpr std::array kCommands = {CommandEntry{"show", parse_show}, CommandEntry{"list", parse_show, true}};

}  // namespace

Status parse_port(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of port", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
