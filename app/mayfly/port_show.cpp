// SPDX-License-Identifier: BSD-3-Clause
#include <linux/genetlink.h>

#include <array>
#include <cstring>
#include <optional>

#include "base/address.hpp"
#include "base/units.hpp"
#include "port.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr size_t kTagCounts = 3;  // 0, 1, 2 tags

std::string mac_text(const Attributes& port) {
  const std::span<const uint8_t> octets = port.bytes(protocol::kPortMac);
  return octets.size() == 6 ? format_mac(load_mac(octets.data())) : "";
}

// nullopt: the device belongs to no node.
std::optional<uint32_t> numa_node(const Attributes& port) {
  const auto node = static_cast<uint32_t>(port.number_or(protocol::kPortNumaNode, UINT32_MAX));
  return static_cast<int32_t>(node) < 0 ? std::nullopt : std::optional(node);
}

std::array<uint32_t, kTagCounts> mtu_by_tags(const Attributes& port) {
  std::array<uint32_t, kTagCounts> mtu{};
  const std::span<const uint8_t> bytes = port.bytes(protocol::kPortMtuByTags);
  if (bytes.size() == sizeof mtu) std::memcpy(mtu.data(), bytes.data(), sizeof mtu);
  return mtu;
}

std::vector<std::string> texts(const Attributes& port, uint16_t attribute) {
  std::vector<std::string> all;
  port.each(attribute, [&all](const Attributes& one) { all.emplace_back(one.string(protocol::kPortText)); });
  return all;
}

Json words_json(std::string_view words) {
  Json array = Json::array();
  while (!words.empty()) {
    const size_t blank = words.find(' ');
    array.push_back(words.substr(0, blank));
    words.remove_prefix(blank == std::string_view::npos ? words.size() : blank + 1);
  }
  return array;
}

bool is_set(const Attributes& port, uint16_t attribute) {
  return port.number_or(attribute, 0) != 0;
}

void add_device_json(Json& json, const Attributes& port) {
  const auto number = [&port](uint16_t attribute) { return port.number_or(attribute, 0); };
  const auto node = numa_node(port);
  const auto mtu = mtu_by_tags(port);
  json.update({{"driver", port.string(protocol::kPortDriver)},
               {"numa_node", node ? static_cast<int64_t>(*node) : -1},
               {"link_up", is_set(port, protocol::kPortLinkUp)},
               {"speed_mbps", number(protocol::kPortSpeed)},
               {"full_duplex", is_set(port, protocol::kPortFullDuplex)},
               {"mtu", number(protocol::kPortMtu)},
               {"mtu_min", number(protocol::kPortLeastMtu)},
               {"mtu_max", number(protocol::kPortMostMtu)},
               {"mtu_by_tags", mtu},
               {"address", mac_text(port)},
               {"promiscuous", is_set(port, protocol::kPortPromiscuous)},
               {"promiscuous_wanted", is_set(port, protocol::kPortPromiscuousWanted)},
               {"mac_filters", number(protocol::kPortMacFilters)},
               {"mac_filters_max", number(protocol::kPortMostMacFilters)},
               {"rx_queues", number(protocol::kPortRxQueues)},
               {"tx_queues", number(protocol::kPortTxQueues)},
               {"rx_queues_max", number(protocol::kPortMostRxQueues)},
               {"tx_queues_max", number(protocol::kPortMostTxQueues)},
               {"rx_descriptors", number(protocol::kPortRxDescriptors)},
               {"tx_descriptors", number(protocol::kPortTxDescriptors)},
               {"rx_offloads", words_json(port.string(protocol::kPortRxOffloads))},
               {"tx_offloads", words_json(port.string(protocol::kPortTxOffloads))},
               {"rss_types", words_json(port.string(protocol::kPortRssTypes))},
               {"rss_offered", words_json(port.string(protocol::kPortRssOffered))},
               {"imissed", number(protocol::kPortImissed)},
               {"ierrors", number(protocol::kPortIerrors)},
               {"rx_nombuf", number(protocol::kPortRxNombuf)},
               {"oerrors", number(protocol::kPortOerrors)},
               {"rx_packets", number(protocol::kPortRxPackets)},
               {"rx_bytes", number(protocol::kPortRxBytes)},
               {"tx_packets", number(protocol::kPortTxPackets)},
               {"tx_bytes", number(protocol::kPortTxBytes)},
               {"notes", texts(port, protocol::kPortNote)},
               {"warnings", texts(port, protocol::kPortWarning)}});
  for (const auto& [key, attribute] : {std::pair{"kernel_interface", protocol::kPortKernelInterface},
                                       std::pair{"driver_devargs", protocol::kPortDriverDevargs},
                                       std::pair{"promiscuous_reason", protocol::kPortPromiscuousReason}})
    if (!port.string(attribute).empty()) json.set(key, port.string(attribute));
}

Json port_json(const Attributes& port, std::string_view boot_id) {
  Json json{{"ifname", port.string(protocol::kPortName)},
            {"ifindex", port.number_or(protocol::kPortIfindex, 0)},
            {"state", port.string(protocol::kPortState)},
            {"devargs", port.string(protocol::kPortDevargs)}};
  if (!port.string(protocol::kPortReason).empty()) json.set("reason", port.string(protocol::kPortReason));
  add_device_json(json, port);
  Json queues = Json::array();
  port.each(protocol::kPortQueue, [&queues](const Attributes& queue) {
    queues.push_back({{"queue", queue.number_or(protocol::kPortQueueIndex, 0)},
                      {"worker", queue.number_or(protocol::kPortQueueWorker, 0)}});
  });
  json.set("queues", queues);
  json.set("boot_id", boot_id);
  return json;
}

std::string speed_text(uint64_t speed) {
  if (speed == 0) return "speed unknown";
  return speed % 1000 == 0 ? fmt::format("{} Gbit/s", speed / 1000) : fmt::format("{} Mbit/s", speed);
}

std::string link_text(const Attributes& port) {
  return fmt::format("{}, {}, {} duplex", is_set(port, protocol::kPortLinkUp) ? "up" : "down",
                     speed_text(port.number_or(protocol::kPortSpeed, 0)),
                     is_set(port, protocol::kPortFullDuplex) ? "full" : "half");
}

std::string queues_text(const Attributes& port) {
  std::string queues;
  port.each(protocol::kPortQueue, [&queues](const Attributes& queue) {
    queues +=
        fmt::format("{}{} -> {}", queues.empty() ? "" : ", ", queue.number_or(protocol::kPortQueueIndex, 0),
                    queue.number_or(protocol::kPortQueueWorker, 0));
  });
  return queues.empty() ? "none" : queues;
}

std::string promiscuous_text(const Attributes& port) {
  std::string text = is_set(port, protocol::kPortPromiscuous) ? "on" : "off";
  if (!is_set(port, protocol::kPortPromiscuousWanted))
    text += fmt::format(", further MAC addresses {} of {}", port.number_or(protocol::kPortMacFilters, 0),
                        port.number_or(protocol::kPortMostMacFilters, 0));
  const std::string_view reason = port.string(protocol::kPortPromiscuousReason);
  if (!reason.empty()) text += fmt::format(" (off was asked for; {})", reason);
  return text;
}

std::string_view or_none(std::string_view words) {
  return words.empty() ? "none" : words;
}

void print_device(Output& out, const Attributes& port, bool statistics) {
  const auto number = [&port](uint16_t attribute) { return port.number_or(attribute, 0); };
  const auto mtu = mtu_by_tags(port);
  const auto node = numa_node(port);
  out.print("    driver  {}, NUMA node {}{}\n", port.string(protocol::kPortDriver),
            node ? fmt::format("{}", *node) : "none",
            port.string(protocol::kPortKernelInterface).empty()
                ? std::string()
                : fmt::format(", on the kernel's {}", port.string(protocol::kPortKernelInterface)));
  out.print("    link    {}, address {}\n", link_text(port), mac_text(port));
  out.print("    mtu     {} (accepted {}..{}); largest IP packet with 0 / 1 / 2 tags: {} / {} / {}\n",
            number(protocol::kPortMtu), number(protocol::kPortLeastMtu), number(protocol::kPortMostMtu),
            mtu[0], mtu[1], mtu[2]);
  out.print("    queues  rx {} of {}, tx {} of {}; rx queue -> worker: {}\n", number(protocol::kPortRxQueues),
            number(protocol::kPortRxDescriptors), number(protocol::kPortTxQueues),
            number(protocol::kPortTxDescriptors), queues_text(port));
  out.print("    promiscuous {}\n", promiscuous_text(port));
  out.print("    offload rx {}; tx {}\n", or_none(port.string(protocol::kPortRxOffloads)),
            or_none(port.string(protocol::kPortTxOffloads)));
  out.print("    rss     in use: {}; offered: {}\n", or_none(port.string(protocol::kPortRssTypes)),
            or_none(port.string(protocol::kPortRssOffered)));
  if (statistics)
    out.print("    device  rx {} packets {} bytes, tx {} packets {} bytes\n",
              number(protocol::kPortRxPackets), number(protocol::kPortRxBytes),
              number(protocol::kPortTxPackets), number(protocol::kPortTxBytes));
  out.print("    losses  imissed {}, rx_nombuf {}, ierrors {}, oerrors {}\n", number(protocol::kPortImissed),
            number(protocol::kPortRxNombuf), number(protocol::kPortIerrors), number(protocol::kPortOerrors));
}

void print_port(Session& session, const Attributes& port) {
  Output& out = session.out();
  const std::string_view reason = port.string(protocol::kPortReason);
  out.print("{}: {}{}{} (ifindex {})\n", port.string(protocol::kPortName), port.string(protocol::kPortState),
            reason.empty() ? "" : ": ", reason, port.number_or(protocol::kPortIfindex, 0));
  out.print("    devargs {}\n", port.string(protocol::kPortDevargs));
  if (!port.string(protocol::kPortDriver).empty()) print_device(out, port, session.options().statistics);
  for (const std::string& note : texts(port, protocol::kPortNote)) out.print("    note    {}\n", note);
  for (const std::string& warning : texts(port, protocol::kPortWarning))
    out.print("    warning {}\n", warning);
}

void print_brief(Output& out, const Attributes& port) {
  out.print("{:<15} {:<8} {:<4} {:<12} {:<18} mtu {:<5} rx {} tx {} {}\n", port.string(protocol::kPortName),
            port.string(protocol::kPortState), is_set(port, protocol::kPortLinkUp) ? "up" : "down",
            port.number_or(protocol::kPortSpeed, 0) == 0
                ? "-"
                : speed_text(port.number_or(protocol::kPortSpeed, 0)),
            mac_text(port), port.number_or(protocol::kPortMtu, 0), port.number_or(protocol::kPortRxQueues, 0),
            port.number_or(protocol::kPortTxQueues, 0), port.string(protocol::kPortDriver));
}

}  // namespace

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
    else if (options.brief)
      print_brief(session.out(), port);
    else
      print_port(session, port);
  });
  if (!done) return std::unexpected(done.error());
  if (!found) return fail(ENODEV, "port '{}' does not exist", wanted);
  if (options.json) array.begin();
  return kExitOk;
}

Result<int> show_xstats(Session& session, Plan& plan) {
  Json json = Json::object();
  const Status done = session.request(plan.family, plan.message, [&](const nlmsghdr& answer) {
    Attributes(answer, sizeof(genlmsghdr)).each(protocol::kPortXstat, [&](const Attributes& counter) {
      const std::string_view name = counter.string(protocol::kPortXstatName);
      const uint64_t value = counter.number_or(protocol::kPortXstatValue, 0);
      if (session.options().json)
        json.set(name, value);
      else
        session.out().print("{:<40} {}\n", name, value);
    });
  });
  if (!done) return std::unexpected(done.error());
  if (session.options().json) session.out().write_json(json, session.options().pretty);
  return kExitOk;
}

}  // namespace mayfly::cli
