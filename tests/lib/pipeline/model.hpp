// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a worker must do with a frame, said as slowly and plainly as possible: lists that are searched from
// end to end, bytes by offset. For comparison with the real one.

#include <map>
#include <optional>
#include <vector>

#include "fib/fib.hpp"
#include "frames.hpp"
#include "stats/drop_reason.hpp"

namespace mayfly::testing {

struct ModelInterface {
  uint32_t ifindex = 0;
  int port = -1;  // -1: a dummy
  std::vector<Tag> tags{};
  Mac mac = 0;
  uint32_t mtu = 1500;
  bool up = true;
  int netns = 0;
  std::vector<Ipv4> addresses{};
  std::map<IpAddress, Mac> neighbours{};
  std::vector<Ipv6> addresses6{};  // beside the link-local one of its MAC
};

struct ModelRoute {
  int netns = 0;
  Ipv4Prefix prefix;
  RouteValue value;
};

struct ModelRoute6 {
  int netns = 0;
  Ipv6Prefix prefix;
  RouteValue6 value;
};

struct Outcome {
  // later: another outcome of the same frames tells.
  enum class Kind { dropped, sent, swallowed, parked, punted, later };
  Kind kind = Kind::dropped;
  DropReason reason = DropReason::count;
  int port = -1;
  Bytes frame{};
  bool displaced = false;  // parking it pushed an older one out
};

class Model {
 public:
  std::vector<ModelInterface> interfaces;
  std::vector<ModelRoute> routes;
  std::vector<ModelRoute6> routes6;
  uint64_t errors_sent = 0, errors_limited = 0, errors_unsent = 0;

  // Frames that are received together: first IPv4 is forwarded, then IPv6, then we answer, then we complain.
  std::vector<Outcome> receive(int port, const std::vector<Bytes>& frames, uint64_t now_ns);
  // The neighbour has become known: what leaves, in order.
  std::vector<Outcome> resolve(uint32_t ifindex, IpAddress address, Mac mac);
  size_t parked() const;
  std::vector<std::pair<uint32_t, IpAddress>> waiting() const;

 private:
  struct Held {
    const ModelInterface* from;
    Bytes packet;
    bool to_group = false;
    Mac sender = 0;  // the frame's
  };

  Outcome receive_one(int port, const Bytes& frame);
  ModelInterface* find(int port, const std::vector<Tag>& tags);
  ModelInterface& at(uint32_t ifindex);
  const ModelInterface& port_of(const ModelInterface& interface) const;
  bool can_send(const ModelInterface& interface) const;
  const RouteValue* look_up(int netns, Ipv4 address) const;
  Outcome receive_arp(ModelInterface& interface, bool to_group, const Bytes& packet);
  Outcome receive_ipv4(ModelInterface& interface, bool to_group, Bytes packet);
  Outcome receive_ipv6(const Held& held);
  Outcome receive_own(const ModelInterface& from, Bytes packet);
  Outcome receive_own6(const Held& held);
  Outcome receive_solicitation(const Held& held, size_t at);
  Outcome forward(const ModelInterface& from, Bytes packet, bool ours);
  Outcome forward6(const ModelInterface& from, Bytes packet, bool ours);
  Outcome pass_on(ModelInterface& by, IpAddress next_hop, const Bytes& packet);
  Outcome send(const ModelInterface& by, Mac to, uint16_t protocol, const Bytes& packet) const;
  const RouteValue6* look_up6(int netns, Ipv6 address) const;
  bool owns(const ModelInterface& interface, Ipv6 address) const;

  // ICMP errors about a packet that `met` received, from `own`, when it was to us.
  void complain(const ModelInterface& met, const Bytes& packet, uint8_t type, uint8_t code, uint32_t rest = 0,
                Ipv4 own = 0);
  void complain6(const ModelInterface& met, const Bytes& packet, uint8_t type, uint8_t code,
                 uint32_t rest = 0, Ipv6 own = {});
  bool within_limits(uint32_t ifindex, bool take);

  // What is left of a rate that refills with time up to its burst.
  struct Allowance {
    uint64_t ns = 0;
    uint64_t at_ns = 0;
  };

  uint64_t now_ns_ = 0;
  std::map<std::pair<uint32_t, IpAddress>, std::vector<Bytes>> parking_;
  // Those to groups and link-local addresses (link6_) come before those a FIB has told to be ours (own6_).
  std::vector<Held> ipv6_, own_, link6_, own6_, answers_, answers6_, errors_, errors6_;
  Allowance in_all_;
  std::map<uint32_t, Allowance> of_interface_;
};

}  // namespace mayfly::testing
