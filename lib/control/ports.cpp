// SPDX-License-Identifier: BSD-3-Clause
// `port show`: copies that the port table holds; nothing here touches a device.
#include <linux/genetlink.h>

#include "control/generic_writer.hpp"
#include "control/handlers.hpp"
#include "port/port_table.hpp"

namespace mayfly {
namespace {

using namespace protocol;

void write_texts(MessageWriter& writer, uint16_t number, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    nlattr* nested = writer.begin_nested(number);
    writer.put_string(kPortText, text);
    writer.end_nested(nested);
  }
}

void write_port(MessageWriter& writer, const Port& port, uint32_t sequence) {
  begin_generic(writer, sequence, kCmdPortShow, NLM_F_MULTI);
  writer.put_string(kPortName, port.settings.name);
  writer.put_string(kPortState, describe(port.state));
  if (!port.error.text.empty()) writer.put_string(kPortReason, port.error.text);
  writer.put_u32(kPortIfindex, port.ifindex);
  writer.put_string(kPortDevargs, port.settings.devargs);
  if (!port.info.devargs.empty() && port.info.devargs != port.settings.devargs)
    writer.put_string(kPortDriverDevargs, port.info.devargs);
  writer.put_string(kPortDriver, port.info.driver);
  writer.put_u32(kPortNumaNode, static_cast<uint32_t>(port.info.numa_node));
  writer.put_u8(kPortLinkUp, port.info.link_up ? 1 : 0);
  writer.put_u32(kPortSpeed, port.info.speed_mbps == kUnknownSpeed ? 0 : port.info.speed_mbps);
  writer.put_u8(kPortFullDuplex, port.info.full_duplex ? 1 : 0);
  writer.put_u32(kPortMtu, port.info.mtu);
  writer.put_u32(kPortLeastMtu, port.info.least_mtu);
  writer.put_u32(kPortMostMtu, port.info.most_mtu);
  writer.put(kPortMtuByTags, port.info.mtu_by_tags.data(), sizeof port.info.mtu_by_tags);
  if (!port.info.kernel_interface.empty())
    writer.put_string(kPortKernelInterface, port.info.kernel_interface);
  uint8_t mac[6];
  store_mac(mac, port.info.mac);
  writer.put(kPortMac, mac, sizeof mac);
  store_mac(mac, port.info.first_mac);
  writer.put(kPortFirstMac, mac, sizeof mac);
  writer.put_u32(kPortRxQueues, port.info.rx_queues);
  writer.put_u32(kPortTxQueues, port.info.tx_queues);
  writer.put_u32(kPortRxDescriptors, port.info.rx_descriptors);
  writer.put_u32(kPortTxDescriptors, port.info.tx_descriptors);
  writer.put_u32(kPortAskedRxDescriptors, port.settings.rx_descriptors);
  writer.put_u32(kPortAskedTxDescriptors, port.settings.tx_descriptors);
  for (uint32_t queue = 0; queue < port.workers.size(); ++queue) {
    nlattr* nested = writer.begin_nested(kPortQueue);
    writer.put_u32(kPortQueueIndex, queue);
    writer.put_u32(kPortQueueWorker, port.workers[queue]);
    writer.end_nested(nested);
  }
  writer.put_u32(kPortMostRxQueues, port.info.most_rx_queues);
  writer.put_u32(kPortMostTxQueues, port.info.most_tx_queues);
  writer.put_string(kPortRxOffloads, fmt::format("{}", fmt::join(port.info.rx_offloads, " ")));
  writer.put_string(kPortTxOffloads, fmt::format("{}", fmt::join(port.info.tx_offloads, " ")));
  writer.put_string(kPortRssTypes, fmt::format("{}", fmt::join(port.info.rss_types, " ")));
  writer.put_string(kPortRssOffered, fmt::format("{}", fmt::join(port.info.rss_offered, " ")));
  writer.put_u8(kPortPromiscuous, port.info.promiscuous ? 1 : 0);
  writer.put_u8(kPortPromiscuousWanted, port.info.promiscuous_wanted ? 1 : 0);
  if (!port.info.promiscuous_reason.empty())
    writer.put_string(kPortPromiscuousReason, port.info.promiscuous_reason);
  writer.put_u32(kPortMacFilters, port.info.mac_filters);
  writer.put_u32(kPortMostMacFilters, port.info.most_mac_filters);
  write_texts(writer, kPortNote, port.info.notes);
  write_texts(writer, kPortWarning, port.info.warnings);
  writer.put_u64(kPortRxPackets, port.counters.rx_packets);
  writer.put_u64(kPortRxBytes, port.counters.rx_bytes);
  writer.put_u64(kPortTxPackets, port.counters.tx_packets);
  writer.put_u64(kPortTxBytes, port.counters.tx_bytes);
  writer.put_u64(kPortImissed, port.counters.imissed);
  writer.put_u64(kPortIerrors, port.counters.ierrors);
  writer.put_u64(kPortRxNombuf, port.counters.rx_nombuf);
  writer.put_u64(kPortOerrors, port.counters.oerrors);
  writer.end();
}

}  // namespace

HandlerResult handle_ports(Connection& connection, const Request& request) {
  for (const Port* port : connection.dataplane().ports.all())
    write_port(connection.writer(), *port, request.header.nlmsg_seq);
  connection.writer().done(request.header.nlmsg_seq, false);
  return Handled::operation;
}

}  // namespace mayfly
