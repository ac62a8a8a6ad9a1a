// SPDX-License-Identifier: BSD-3-Clause
// `port show`: copies that the port table holds; nothing here touches a device.
#include <linux/genetlink.h>

#include "control/generic_writer.hpp"
#include "control/handlers.hpp"
#include "port/port_table.hpp"

namespace mayfly {
namespace {

using namespace protocol;

void write_port(MessageWriter& writer, const Port& port, uint32_t sequence) {
  begin_generic(writer, sequence, kCmdPortShow, NLM_F_MULTI);
  writer.put_string(kPortName, port.settings.name);
  writer.put_string(kPortState, describe(port.state));
  writer.put_u32(kPortIfindex, port.ifindex);
  writer.put_string(kPortDevargs, port.info.devargs.empty() ? port.settings.devargs : port.info.devargs);
  writer.put_string(kPortDriver, port.info.driver);
  writer.put_u32(kPortNumaNode, static_cast<uint32_t>(port.info.numa_node));
  writer.put_u8(kPortLinkUp, port.info.link_up ? 1 : 0);
  writer.put_u32(kPortSpeed, port.info.speed_mbps == kUnknownSpeed ? 0 : port.info.speed_mbps);
  writer.put_u32(kPortMtu, port.info.mtu);
  uint8_t mac[6];
  store_mac(mac, port.info.mac);
  writer.put(kPortMac, mac, sizeof mac);
  writer.put_u32(kPortRxQueues, port.info.rx_queues);
  writer.put_u32(kPortTxQueues, port.info.tx_queues);
  writer.put_u32(kPortRxDescriptors, port.info.rx_descriptors);
  writer.put_u32(kPortTxDescriptors, port.info.tx_descriptors);
  for (uint32_t queue = 0; queue < port.workers.size(); ++queue) {
    nlattr* nested = writer.begin_nested(kPortQueue);
    writer.put_u32(kPortQueueIndex, queue);
    writer.put_u32(kPortQueueWorker, port.workers[queue]);
    writer.end_nested(nested);
  }
  writer.put_u8(kPortPromiscuous, port.info.promiscuous ? 1 : 0);
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
