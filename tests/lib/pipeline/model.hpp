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
  std::map<Ipv4, Mac> neighbours{};
};

struct ModelRoute {
  int netns = 0;
  Ipv4Prefix prefix;
  RouteValue value;
};

struct Outcome {
  enum class Kind { dropped, sent, swallowed, parked, punted, answered };
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

  // Frames that are received together: our own answers come after what is forwarded.
  std::vector<Outcome> receive(int port, const std::vector<Bytes>& frames);
  // The neighbour has become known: what leaves, in order.
  std::vector<Outcome> resolve(uint32_t ifindex, Ipv4 address, Mac mac);
  size_t parked() const;
  std::vector<std::pair<uint32_t, Ipv4>> waiting() const;

 private:
  Outcome receive_one(int port, const Bytes& frame);
  ModelInterface* find(int port, const std::vector<Tag>& tags);
  ModelInterface& at(uint32_t ifindex);
  const ModelInterface& port_of(const ModelInterface& interface) const;
  bool can_send(const ModelInterface& interface) const;
  const RouteValue* look_up(int netns, Ipv4 address) const;
  Outcome receive_arp(ModelInterface& interface, bool to_group, const Bytes& packet);
  Outcome receive_ipv4(ModelInterface& interface, bool to_group, Bytes packet);
  Outcome forward(const ModelInterface& from, Bytes packet, bool ours);
  Outcome answer_echo(const ModelInterface& from, Bytes packet);
  Outcome send(const ModelInterface& by, Mac to, uint16_t protocol, const Bytes& packet) const;

  std::map<std::pair<uint32_t, Ipv4>, std::vector<Bytes>> parking_;
  std::vector<std::pair<const ModelInterface*, Bytes>> answers_;
};

}  // namespace mayfly::testing
