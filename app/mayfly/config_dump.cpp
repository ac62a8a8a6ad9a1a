// SPDX-License-Identifier: BSD-3-Clause
#include "config_dump.hpp"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "config/config.hpp"
#include "link_spec.hpp"

namespace mayfly::cli {
namespace {

template <class Fixed>
const Fixed& fixed_of(const nlmsghdr& answer) {
  return *static_cast<const Fixed*>(mnl_nlmsg_get_payload(&answer));
}

std::optional<IpAddress> address_in(const Attributes& attributes, uint16_t attribute) {
  const auto bytes = attributes.bytes(attribute);
  if (bytes.size() == sizeof(Ipv6)) return IpAddress(load_ipv6(bytes.data()));
  if (bytes.size() != sizeof(Ipv4)) return std::nullopt;
  Ipv4 address;
  std::memcpy(&address, bytes.data(), sizeof address);
  return IpAddress(ntohl(address));
}

// One interface as it is; which of its settings have to be said is decided when all are known.
struct RunningLink {
  LinkDescription link;
  std::string netns;
  std::string link_netns;
  std::string peer;
  std::string peer_netns;
  Mac mac = 0;
};

using LinkKey = std::pair<std::string, std::string>;  // namespace, name

// One route as it is, the kernel's own, too: others may be behind it.
struct RunningRoute {
  NetworkRoute route;
  bool own = false;     // comes with an address
  uint32_t number = 0;  // 0: the only one of its prefix
  uint32_t behind = 0;
};

// The routes of a namespace in an order in which they can be made: those of one prefix by how they are used,
// and before those with a gateway what their gateways may be behind.
std::vector<NetworkRoute> in_order(const std::vector<RunningRoute>& routes) {
  std::map<uint32_t, const RunningRoute*> behind;  // by the number of the one before
  std::unordered_set<uint32_t> numbers;
  for (const RunningRoute& route : routes) {
    numbers.insert(route.number);
    if (route.behind != 0) behind[route.behind] = &route;
  }
  struct Group {
    std::vector<const RunningRoute*> routes;
    bool has_gateway = false;
    std::string name;
  };
  std::vector<Group> groups;
  for (const RunningRoute& first : routes) {
    // One that has gone since leads what was behind it.
    if (first.behind != 0 && numbers.contains(first.behind)) continue;
    Group& group = groups.emplace_back();
    for (const RunningRoute* at = &first;;) {
      if (!at->own) group.routes.push_back(at);
      group.has_gateway |= !at->own && at->route.gateway.has_value();
      const auto next = at->number == 0 ? behind.end() : behind.find(at->number);
      if (next == behind.end()) break;
      at = next->second;
    }
    if (group.routes.empty()) {
      groups.pop_back();
      continue;
    }
    group.name = words_of(group.routes.front()->route);
  }
  std::ranges::sort(groups, {}, [](const Group& group) { return std::tie(group.has_gateway, group.name); });
  std::vector<NetworkRoute> ordered;
  for (const Group& group : groups)
    for (const RunningRoute* route : group.routes) ordered.push_back(route->route);
  return ordered;
}

// What a gateway can be a neighbour in, while a file is loaded from its beginning: prefixes of addresses,
// then routes to interfaces.
class Connected {
 public:
  explicit Connected(const std::vector<NetworkAddress>& addresses) {
    for (const NetworkAddress& address : addresses) {
      add(address.device, address.prefix);
      own_.insert(format_address(address.prefix.address));
    }
  }
  void add(const std::string& device, const IpPrefix& prefix) {
    lengths_.insert({prefix.is_v4(), prefix.length});
    prefixes_.insert(key(device, prefix.network(), prefix.length));
  }
  bool has(const std::string& device, IpAddress gateway) const {
    if (!gateway.is_v4() && is_link_local(gateway.v6())) return true;
    if (own_.contains(format_address(gateway))) return false;
    return std::ranges::any_of(lengths_, [&](const std::pair<bool, uint8_t>& each) {
      return each.first == gateway.is_v4() &&
             prefixes_.contains(key(device, IpPrefix(gateway, each.second).network(), each.second));
    });
  }

 private:
  static std::string key(const std::string& device, IpAddress network, uint8_t length) {
    return fmt::format("{} {}", device, format_prefix(IpPrefix(network, length)));
  }
  std::set<std::pair<bool, uint8_t>> lengths_;
  std::unordered_set<std::string> prefixes_;
  std::unordered_set<std::string> own_;
};

// A route outlives what its gateway was found by, as in the kernel; whoever makes it again has to say that it
// is to be believed.
void say_what_is_onlink(const std::vector<NetworkAddress>& addresses, std::vector<NetworkRoute>& routes) {
  Connected connected(addresses);
  for (NetworkRoute& route : routes) {
    if (route.type != RTN_UNICAST) continue;
    if (!route.gateway)
      connected.add(route.device, route.destination);
    else if (!connected.has(route.device, *route.gateway))
      route.onlink = true;
  }
}

class RunningNetwork {
 public:
  // changed_macs: of ports that have another MAC address than when they were opened.
  RunningNetwork(const Config& config, const std::map<std::string, Mac>& changed_macs)
      : config_(config), changed_macs_(changed_macs) {}

  Status read(Session& session, const std::string& netns) {
    auto client = ControlClient::connect({.socket = session.options().socket,
                                          .family = NETLINK_ROUTE,
                                          .netns = netns,
                                          .client_name = "mayfly config dump"});
    if (!client) return std::unexpected(client.error());
    NetworkNamespace& target = namespaces_.emplace_back();
    target.name = netns;
    std::vector<RunningRoute> routes;
    Status done = each<ifinfomsg>(
        *client, RTM_GETLINK,
        [&](const nlmsghdr& answer, const Attributes& attributes) { read_link(netns, answer, attributes); });
    if (done)
      done = each<ifaddrmsg>(*client, RTM_GETADDR, [&](const nlmsghdr& answer, const Attributes& attributes) {
        read_address(target, answer, attributes);
      });
    if (done)
      done = each<rtmsg>(*client, RTM_GETROUTE, [&](const nlmsghdr& answer, const Attributes& attributes) {
        read_route(answer, attributes, routes);
      });
    if (done)
      done = each<ndmsg>(*client, RTM_GETNEIGH, [&](const nlmsghdr& answer, const Attributes& attributes) {
        read_neighbour(target, answer, attributes);
      });
    target.routes = in_order(routes);
    say_what_is_onlink(target.addresses, target.routes);
    return done;
  }

  NetworkConfig finish() {
    NetworkConfig network;
    for (NetworkNamespace& netns : namespaces_) {
      for (const auto& [key, running] : links_)
        if (key.first == netns.name && wanted(key, running)) netns.links.push_back(element_of(running));
      std::ranges::sort(netns.addresses, {}, [](const NetworkAddress& a) { return words_of(a); });
      std::ranges::sort(netns.neighbours, {}, [](const NetworkNeighbour& n) { return words_of(n); });
    }
    network.namespaces = std::move(namespaces_);
    return network;
  }

 private:
  template <class Fixed, class Visit>
  static Status each(ControlClient& client, uint16_t type, Visit visit) {
    RequestMessage message;
    message.begin_route(type, NLM_F_DUMP, Fixed{});
    return client.request(message, [&](const nlmsghdr& answer) {
      if (answer.nlmsg_type != NLMSG_DONE && answer.nlmsg_type != NLMSG_ERROR)
        visit(answer, Attributes(answer, sizeof(Fixed)));
    });
  }

  void read_link(const std::string& netns, const nlmsghdr& answer, const Attributes& attributes) {
    const auto info = attributes.nested(IFLA_LINKINFO);
    if (!info) return;
    RunningLink running;
    LinkDescription& link = running.link;
    link.kind = find_kind_description(info->string(IFLA_INFO_KIND));
    if (link.kind == nullptr) return;
    link.name = attributes.string(IFLA_IFNAME);
    running.netns = netns;
    if (link.kind->needs_parent) link.parent = attributes.string(protocol::kAttrDevice);
    running.link_netns = attributes.string(protocol::kAttrLinkNetns);
    running.peer = attributes.string(protocol::kAttrPeer);
    running.peer_netns = attributes.string(protocol::kAttrPeerNetns);
    if (const auto mac = attributes.bytes(IFLA_ADDRESS); mac.size() == 6) running.mac = load_mac(mac.data());
    read_settings(answer, attributes, link);
    if (const auto data = info->nested(IFLA_INFO_DATA))
      for (size_t at = 0; at < link.kind->parameters.size(); ++at)
        if (const auto value = parameter_value(link.kind->parameters[at], *data))
          link.values[at] = NumberRange{*value, *value};
    links_[{netns, link.name}] = std::move(running);
  }

  static void read_settings(const nlmsghdr& answer, const Attributes& attributes, LinkDescription& link) {
    link.up = (fixed_of<ifinfomsg>(answer).ifi_flags & IFF_UP) != 0;
    link.mtu = static_cast<uint32_t>(attributes.number_or(IFLA_MTU, 0));
    if (const uint64_t group = attributes.number_or(IFLA_GROUP, 0); group != 0)
      link.group = static_cast<uint32_t>(group);
    if (const std::string_view alias = attributes.string(IFLA_IFALIAS); !alias.empty()) link.alias = alias;
    if (const std::string_view lender = attributes.string(protocol::kAttrUnnumbered); !lender.empty())
      link.unnumbered = lender;
    if (attributes.number_or(protocol::kAttrRpFilter, 0) != 0) link.rp_filter = true;
    if (attributes.number_or(protocol::kAttrProxyArp, 0) != 0) link.proxy_arp = true;
    if (attributes.number_or(protocol::kAttrProxyNd, 0) != 0) link.proxy_nd = true;
    if (attributes.number_or(protocol::kAttrAddrGenMode, 0) != 0) link.no_link_local = true;
  }

  void read_address(NetworkNamespace& netns, const nlmsghdr& answer, const Attributes& attributes) {
    const auto address = address_in(attributes, attributes.has(IFA_LOCAL) ? IFA_LOCAL : IFA_ADDRESS);
    if (!address) return;
    NetworkAddress found;
    found.prefix = IpPrefix(*address, fixed_of<ifaddrmsg>(answer).ifa_prefixlen);
    found.device = attributes.string(protocol::kAttrDevice);
    found.nodad = !address->is_v4() && (attributes.number_or(IFA_FLAGS, 0) & IFA_F_NODAD) != 0;
    // The one that follows from the MAC comes by itself.
    const auto link = links_.find({netns.name, found.device});
    if (link != links_.end() && !link->second.link.no_link_local &&
        *address == IpAddress(link_local_of(link->second.mac)))
      return;
    netns.addresses.push_back(std::move(found));
  }

  static void read_route(const nlmsghdr& answer, const Attributes& attributes,
                         std::vector<RunningRoute>& routes) {
    const rtmsg& fixed = fixed_of<rtmsg>(answer);
    RunningRoute& running = routes.emplace_back();
    running.own = fixed.rtm_protocol == RTPROT_KERNEL || route_type_name(fixed.rtm_type).empty();
    running.number = static_cast<uint32_t>(attributes.number_or(protocol::kAttrRouteNumber, 0));
    running.behind = static_cast<uint32_t>(attributes.number_or(protocol::kAttrRouteBehind, 0));
    NetworkRoute& route = running.route;
    const IpAddress any = fixed.rtm_family == AF_INET ? IpAddress(Ipv4{0}) : IpAddress(Ipv6{});
    route.destination = IpPrefix(address_in(attributes, RTA_DST).value_or(any), fixed.rtm_dst_len);
    route.type = fixed.rtm_type;
    route.protocol = fixed.rtm_protocol;
    route.gateway = address_in(attributes, RTA_GATEWAY);
    route.source = address_in(attributes, RTA_PREFSRC);
    route.device = attributes.string(protocol::kAttrDevice);
    route.onlink = (fixed.rtm_flags & RTNH_F_ONLINK) != 0;
    if (const auto metric = attributes.number(RTA_PRIORITY)) route.metric = static_cast<uint32_t>(*metric);
  }

  static void read_neighbour(NetworkNamespace& netns, const nlmsghdr& answer, const Attributes& attributes) {
    const ndmsg& fixed = fixed_of<ndmsg>(answer);
    const auto address = address_in(attributes, NDA_DST);
    const auto mac = attributes.bytes(NDA_LLADDR);
    if ((fixed.ndm_state & NUD_PERMANENT) == 0 || !address || mac.size() != 6) return;
    NetworkNeighbour neighbour;
    neighbour.address = *address;
    neighbour.mac = load_mac(mac.data());
    neighbour.device = attributes.string(protocol::kAttrDevice);
    neighbour.router = (fixed.ndm_flags & NTF_ROUTER) != 0;
    netns.neighbours.push_back(std::move(neighbour));
  }

  // Of a pair one end is described, with the other as its peer.
  static bool wanted(const LinkKey& key, const RunningLink& running) {
    return !running.link.kind->has_peer || running.peer.empty() ||
           key <= LinkKey{running.peer_netns, running.peer};
  }

  const RunningLink* find(const std::string& netns, const std::string& name) const {
    const auto found = links_.find({netns, name});
    return found == links_.end() ? nullptr : &found->second;
  }

  NetworkLink element_of(const RunningLink& running) const {
    NetworkLink element;
    element.link = running.link;
    element.link_netns = running.link_netns;
    if (element.port()) {
      const auto port = std::ranges::find(config_.ports, running.link.name, &PortConfig::name);
      if (port != config_.ports.end() && port->mtu == running.link.mtu) element.link.mtu.reset();
      if (const auto mac = changed_macs_.find(running.link.name); mac != changed_macs_.end())
        element.link.address = mac->second;
      return element;
    }
    element.link.address = running.mac;
    if (running.link.kind->needs_parent) leave_to_parent(running, element.link);
    if (!running.link.kind->has_peer) return element;
    PeerDescription& peer = element.link.peer.emplace();
    peer.name = running.peer;
    peer.netns = running.peer_netns;
    if (const RunningLink* other = find(running.peer_netns, running.peer)) {
      peer.mtu = other->link.mtu;
      peer.address = other->mac;
      peer.up = other->link.up.value_or(false);
      element.far = far_settings(other->link);
    }
    return element;
  }

  static LinkDescription far_settings(const LinkDescription& other) {
    LinkDescription far = other;
    far.parent.clear();
    far.up.reset();
    far.mtu.reset();
    far.peer.reset();
    far.kind = nullptr;
    return far;
  }

  const RunningLink* parent_of(const RunningLink& running) const {
    if (running.link.parent.empty()) return nullptr;
    return find(running.link_netns.empty() ? running.netns : running.link_netns, running.link.parent);
  }

  // What a frame of it can be long, which is what it will be given: one whose parent was lowered after it
  // still has its own MTU, but could not be created with it any more.
  uint32_t most_mtu(const RunningLink& running) const {
    uint32_t most = running.link.mtu.value_or(0);
    for (const RunningLink* parent = parent_of(running); parent != nullptr; parent = parent_of(*parent))
      most = std::min(most, parent->link.mtu.value_or(most));
    return most;
  }

  // On a parent with a tag, which is the outer one, only the inner one is its own: `id` means that there.
  static void leave_tag_to_parent(const LinkDescription& parent, LinkDescription& link) {
    const auto value = [](auto& of, KindParameter::Role role) {
      const auto parameters = of.kind->parameters;
      const auto found = std::ranges::find(parameters, role, &KindParameter::role);
      return found == parameters.end() ? nullptr
                                       : &of.values[static_cast<size_t>(found - parameters.begin())];
    };
    const auto* tag = value(parent, KindParameter::Role::outer);
    auto* outer = value(link, KindParameter::Role::outer);
    auto* inner = value(link, KindParameter::Role::inner);
    if (tag == nullptr || !*tag || outer == nullptr || inner == nullptr || !*inner) return;
    *outer = std::exchange(*inner, std::nullopt);
    for (size_t at = 0; at < link.kind->parameters.size(); ++at)
      if (link.kind->parameters[at].type == KindParameter::Type::ethertype) link.values[at].reset();
  }

  // What an interface has from the one it is stacked on.
  void leave_to_parent(const RunningLink& running, LinkDescription& link) const {
    const RunningLink* parent = parent_of(running);
    if (parent == nullptr) return;
    leave_tag_to_parent(parent->link, link);
    if (parent->mac == running.mac) link.address.reset();
    if (running.link.mtu.value_or(0) >= most_mtu(*parent)) link.mtu.reset();
  }

  const Config& config_;
  const std::map<std::string, Mac>& changed_macs_;
  std::map<LinkKey, RunningLink> links_;
  std::vector<NetworkNamespace> namespaces_;
};

std::optional<Mac> mac_in(const Attributes& port, uint16_t attribute) {
  const auto bytes = port.bytes(attribute);
  if (bytes.size() != 6) return std::nullopt;
  return load_mac(bytes.data());
}

// One that runs, as it would have to be asked for.
PortConfig port_of(const Attributes& attributes, const Config& config) {
  const std::string_view name = attributes.string(protocol::kPortName);
  const std::string_view devargs = attributes.string(protocol::kPortDevargs);
  PortConfig port;
  const auto known = std::ranges::find(config.ports, name, &PortConfig::name);
  const auto number = [&](uint16_t attribute, uint32_t absent) {
    return static_cast<uint32_t>(attributes.number_or(attribute, absent));
  };
  if (known != config.ports.end() && known->devargs == devargs) {
    port = *known;
  } else {
    port.name = name;
    port.devargs = devargs;
    port.rx_queues = number(protocol::kPortRxQueues, 0);
    port.rx_descriptors = number(protocol::kPortAskedRxDescriptors, port.rx_descriptors);
    port.tx_descriptors = number(protocol::kPortAskedTxDescriptors, port.tx_descriptors);
    port.mtu = number(protocol::kPortMtu, port.mtu);
  }
  port.promiscuous = number(protocol::kPortPromiscuousWanted, 1) != 0;
  return port;
}

// Ports come and go while the daemon runs. One that has no device has nothing in the network either, but for
// one whose device vanished: what is stacked on that waits for it.
Status read_ports(Session& session, Config& config, std::map<std::string, Mac>& changed_macs) {
  std::vector<PortConfig> ports;
  std::vector<std::string> notes;
  RequestMessage message;
  message.begin_generic(protocol::kCmdPortShow, NLM_F_DUMP);
  Status done = session.request(Plan::Family::generic, message, [&](const nlmsghdr& answer) {
    const Attributes attributes(answer, sizeof(genlmsghdr));
    const std::string name(attributes.string(protocol::kPortName));
    const std::string_view state = attributes.string(protocol::kPortState);
    if (state != "running" && state != "gone") {
      notes.push_back(fmt::format("Warning: port '{}' is {}: it is left out", name, state));
      return;
    }
    if (state == "gone")
      notes.push_back(
          fmt::format("Warning: port '{}' is gone: this loads once its device is there again", name));
    ports.push_back(port_of(attributes, config));
    const auto mac = mac_in(attributes, protocol::kPortMac);
    if (mac && mac != mac_in(attributes, protocol::kPortFirstMac)) changed_macs[name] = *mac;
  });
  for (const std::string& note : notes) session.note(note);
  config.ports = std::move(ports);
  return done;
}

Result<std::vector<std::string>> read_namespaces(Session& session) {
  std::vector<std::string> names;
  RequestMessage message;
  message.begin_generic(protocol::kCmdNetnsShow, NLM_F_DUMP);
  Status done = session.request(Plan::Family::generic, message, [&names](const nlmsghdr& answer) {
    names.emplace_back(Attributes(answer, sizeof(genlmsghdr)).string(protocol::kNetnsName));
  });
  if (!done) return std::unexpected(done.error());
  std::ranges::sort(names, {},
                    [](const std::string& name) { return std::pair(name != kDefaultNamespace, name); });
  return names;
}

}  // namespace

Result<LoadedConfig> read_loaded(Session& session) {
  LoadedConfig loaded;
  RequestMessage message;
  message.begin_generic(protocol::kCmdConfigShow, NLM_F_DUMP);
  Status done = session.request(Plan::Family::generic, message, [&loaded](const nlmsghdr& answer) {
    const Attributes attributes(answer, sizeof(genlmsghdr));
    loaded.settings += attributes.string(protocol::kConfigSettings);
    loaded.text += attributes.string(protocol::kConfigText);
    if (attributes.has(protocol::kConfigFile)) loaded.file = attributes.string(protocol::kConfigFile);
  });
  if (!done) return std::unexpected(done.error());
  return loaded;
}

Result<std::string> dump_running(Session& session) {
  const auto loaded = read_loaded(session);
  if (!loaded) return std::unexpected(loaded.error());
  auto config = mayfly::parse_config(loaded->settings, "the daemon's settings");
  if (!config) return std::unexpected(config.error());
  std::map<std::string, Mac> changed_macs;
  if (auto read = read_ports(session, *config, changed_macs); !read) return std::unexpected(read.error());
  const auto names = read_namespaces(session);
  if (!names) return std::unexpected(names.error());
  RunningNetwork network(*config, changed_macs);
  for (const std::string& name : *names)
    if (auto read = network.read(session, name); !read) return std::unexpected(read.error());
  config->network = network.finish();
  std::string text = dump_config(*config);
  if (text.size() > kMaxConfigBytes)
    return fail(EFBIG, "the dump has {} bytes, of which mayflyd accepts at most {}", text.size(),
                kMaxConfigBytes);
  return text;
}

}  // namespace mayfly::cli
