// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// Events for clients that joined rtnetlink's group RTNLGRP_LINK in their hello: interfaces that appeared or
// changed as RTM_NEWLINK, those that went as RTM_DELLINK, with sequence number 0.
//
//   appeared() / changed() / going()  ->  gathered for one round of the control loop  ->  flush()
//
// Merged: an interface that changed three times in a round is told of once, as it is then; of a deleted
// parent only itself, since what was stacked on it goes with it; and of a link that goes down only the port,
// since what is stacked on it is derived from that. When a round brings more than kMostSingle, the rest
// becomes one message that has their number only (kAttrMerged, ifindex 0). A client that does not read loses
// events, and gets ENOBUFS as soon as it reads again: it lists afresh.
//
// Control thread. Without a listener a call costs one comparison.

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

class Connection;
struct Dataplane;

class LinkEvents {
 public:
  static constexpr size_t kMostSingle = 256;

  void join(Connection& connection) { listeners_.push_back({&connection, false}); }
  // Of a connection that closes; also when it never joined.
  void leave(const Connection& connection) noexcept;

  void appeared(const Dataplane& dataplane, uint32_t ifindex);
  void changed(const Dataplane& dataplane, uint32_t ifindex) { appeared(dataplane, ifindex); }
  // Before it is retired.
  void going(const Dataplane& dataplane, uint32_t ifindex);
  // Once a round: hands what was gathered to the listeners' writers.
  void flush(Dataplane& dataplane);

 private:
  struct Listener {
    Connection* connection;
    bool lost;
  };
  struct Event {
    uint32_t ifindex;
    uint64_t id;
    uint64_t netns_id;
    bool gone;
    std::string name;  // of one that is gone
    uint32_t parent;
  };

  void gather(const Dataplane& dataplane, uint32_t ifindex, bool gone);
  void tell(Dataplane& dataplane, Connection& connection) const;

  std::vector<Listener> listeners_;
  std::vector<Event> events_;
  uint64_t merged_new_ = 0;
  uint64_t merged_gone_ = 0;
};

}  // namespace mayfly
