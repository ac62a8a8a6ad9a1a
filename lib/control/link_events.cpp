// SPDX-License-Identifier: BSD-3-Clause
#include "control/link_events.hpp"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>

#include "control/connection.hpp"
#include "control/dataplane.hpp"
#include "control/link_dump.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

void write_merged(MessageWriter& writer, uint16_t type, uint64_t count) {
  if (count == 0) return;
  writer.begin(type, 0, 0);
  writer.header<ifinfomsg>();
  writer.put_u64(kAttrMerged, count);
  writer.end();
}

}  // namespace

void LinkEvents::leave(const Connection& connection) noexcept {
  std::erase_if(listeners_, [&](const Listener& listener) { return listener.connection == &connection; });
}

void LinkEvents::appeared(const Dataplane& dataplane, uint32_t ifindex) {
  if (!listeners_.empty()) gather(dataplane, ifindex, false);
}

void LinkEvents::going(const Dataplane& dataplane, uint32_t ifindex) {
  if (!listeners_.empty()) gather(dataplane, ifindex, true);
}

void LinkEvents::gather(const Dataplane& dataplane, uint32_t ifindex, bool gone) {
  const Interface& interface = dataplane.interfaces.interface(ifindex);
  const InterfaceRecord& record = dataplane.interfaces.record(ifindex);
  if (events_.size() >= kMostSingle) {
    ++(gone ? merged_gone_ : merged_new_);
    return;
  }
  // Nobody needs to hear of the changes of what is gone at the end of the round.
  const uint64_t netns_id = interface.netns.own()->id;
  const auto known = std::ranges::find_if(
      events_, [&](const Event& event) { return event.id == interface.id && event.netns_id == netns_id; });
  if (known != events_.end()) {
    if (!gone) return;
    events_.erase(known);
  }
  events_.push_back({ifindex, interface.id, netns_id, gone, gone ? std::string(record.name) : std::string(),
                     record.parent});
}

void LinkEvents::tell(Dataplane& dataplane, Connection& connection) const {
  MessageWriter& writer = connection.writer();
  const InterfaceTable& table = dataplane.interfaces;
  for (const Event& event : events_) {
    if (event.netns_id != connection.netns_id()) continue;
    if (!event.gone) {
      if (table.exists(event.ifindex) && table.interface(event.ifindex).id == event.id)
        write_link(connection, event.ifindex, 0, 0, false);
      continue;
    }
    writer.begin(RTM_DELLINK, 0, 0);
    writer.header<ifinfomsg>()->ifi_index = static_cast<int>(event.ifindex);
    writer.put_string(IFLA_IFNAME, event.name);
    if (event.parent != kNoInterface) writer.put_u32(IFLA_LINK, event.parent);
    writer.put_u64(kAttrId, event.id);
    writer.put_string(kAttrNetns, connection.netns_name());
    writer.end();
  }
  write_merged(writer, RTM_NEWLINK, merged_new_);
  write_merged(writer, RTM_DELLINK, merged_gone_);
}

void LinkEvents::flush(Dataplane& dataplane) {
  const bool some = !events_.empty() || merged_new_ + merged_gone_ != 0;
  for (Listener& listener : listeners_) {
    MessageWriter& writer = listener.connection->writer();
    if (listener.lost && writer.empty()) {
      writer.tell_error({ENOBUFS, "events were lost: list the interfaces afresh"});
      listener.lost = false;
    }
    if (!some) continue;
    if (listener.lost || writer.over_high_water())
      listener.lost = true;
    else
      tell(dataplane, *listener.connection);
  }
  events_.clear();
  merged_new_ = merged_gone_ = 0;
}

}  // namespace mayfly
