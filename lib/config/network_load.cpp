// SPDX-License-Identifier: BSD-3-Clause
#include "config/network_load.hpp"

#include <linux/rtnetlink.h>

#include <set>
#include <unordered_map>

#include "config/nearest.hpp"
#include "iface/name_pattern.hpp"

namespace mayfly {
namespace {

constexpr size_t kMostElements = 4'194'304;
constexpr size_t kMostNamespaces = 131'072;
constexpr size_t kMostNetnsBytes = 255;
constexpr size_t kMostAliasBytes = 255;
constexpr size_t kMostPatternBytes = 64;
constexpr uint32_t kLargestMtu = 65'535;
constexpr uint64_t kMostCount = 1u << 24;

// Keys of an interface beside those of its kind.
constexpr std::string_view kLinkKeys[] = {"name",       "type",      "count",     "link",     "link_netns",
                                          "up",         "mtu",       "address",   "group",    "alias",
                                          "unnumbered", "rp_filter", "proxy_arp", "proxy_nd", "addrgenmode"};

using Keys = std::vector<std::string_view>;

// With every kind's parameters: which of them belong to the kind is looked at later.
const Keys& link_keys() {
  static const Keys keys = [] {
    Keys all(std::begin(kLinkKeys), std::end(kLinkKeys));
    for (const KindDescription& kind : kind_descriptions()) {
      for (const KindParameter& parameter : kind.parameters) all.push_back(parameter.word);
      if (kind.has_peer) all.push_back("peer");
    }
    return all;
  }();
  return keys;
}

Result<std::string> parse_name(std::string_view text) {
  if (const char* rule = broken_name_rule(text))
    return fail(EINVAL, "value '{}': expected {}", shown(text), rule);
  return std::string(text);
}

Result<std::string> parse_pattern(std::string_view text) {
  if (text.empty() || text.size() > kMostPatternBytes)
    return fail(EINVAL, "value '{}': expected a pattern of 1..{} characters", shown(text), kMostPatternBytes);
  if (auto pattern = NamePattern::parse(text); !pattern) return std::unexpected(pattern.error());
  return std::string(text);
}

Result<std::string> parse_netns(std::string_view text) {
  const bool valid = !text.empty() && text.size() <= kMostNetnsBytes && text != "." && text != ".." &&
                     text.find_first_of("/ ") == std::string_view::npos && !has_control_character(text);
  if (!valid)
    return fail(EINVAL, "value '{}': expected a name of 1..{} characters without '/' and white space",
                shown(text), kMostNetnsBytes);
  return std::string(text);
}

Result<Mac> parse_unicast_mac(std::string_view text) {
  auto mac = parse_mac("value", text);
  if (mac && (is_multicast(*mac) || *mac == 0))
    return fail(EINVAL, "value {}: expected a unicast MAC address", format_mac(*mac));
  return mac;
}

// A switch of two words, present or not.
void read_switch(YamlMap& map, std::string_view key, std::string_view no, std::string_view yes,
                 std::optional<bool>& value) {
  if (!map.has(key)) return;
  const YamlMap::Choice<bool> choices[] = {{no, false}, {yes, true}};
  map.choice<bool>(key, value.emplace(), choices);
}

void read_optional_boolean(YamlMap& map, std::string_view key, std::optional<bool>& value) {
  if (map.has(key)) map.boolean(key, value.emplace());
}

void read_mtu(YamlMap& map, std::optional<uint32_t>& mtu) {
  if (map.has("mtu")) map.number("mtu", mtu.emplace(), Range<uint32_t>{kMtuRange.least, kLargestMtu});
}

void read_address(YamlMap& map, std::optional<Mac>& mac) {
  if (map.has("address")) map.read("address", mac.emplace(), parse_unicast_mac);
}

// Those that are the same for both ends of a pair.
void read_settings(YamlMap& map, LinkDescription& link) {
  if (map.has("group")) map.number("group", link.group.emplace(), Range<uint32_t>{0, UINT32_MAX});
  if (map.has("alias"))
    map.read("alias", link.alias.emplace(), [](std::string_view text) -> Result<std::string> {
      if (text.size() > kMostAliasBytes)
        return fail(EINVAL, "value '{}': {} bytes: accepted at most {}", shown(text), text.size(),
                    kMostAliasBytes);
      return std::string(text);
    });
  if (map.has("unnumbered")) map.read("unnumbered", link.unnumbered.emplace(), parse_name);
  read_switch(map, "rp_filter", "off", "strict", link.rp_filter);
  read_optional_boolean(map, "proxy_arp", link.proxy_arp);
  read_optional_boolean(map, "proxy_nd", link.proxy_nd);
  read_switch(map, "addrgenmode", "eui64", "none", link.no_link_local);
}

void read_peer(YamlMap& map, bool bulk, LinkDescription& link, LinkDescription& far) {
  static constexpr std::string_view kKeys[] = {"name",      "netns",     "mtu",      "address",
                                               "up",        "group",     "alias",    "unnumbered",
                                               "rp_filter", "proxy_arp", "proxy_nd", "addrgenmode"};
  static constexpr std::string_view kBulkKeys[] = {"name", "netns", "mtu", "up"};
  if (bulk) {
    map.section("peer", kBulkKeys);
    if (map.failed()) return;
  }
  YamlMap peer_map = map.section("peer", kKeys);
  peer_map.require("name");
  PeerDescription& peer = link.peer.emplace();
  peer_map.read("name", peer.name, bulk ? parse_pattern : parse_name);
  if (peer_map.has("netns")) peer_map.read("netns", peer.netns.emplace(), parse_netns);
  read_mtu(peer_map, peer.mtu);
  read_address(peer_map, peer.address);
  peer_map.boolean("up", peer.up);
  far.name = peer.name;
  read_settings(peer_map, far);
}

void read_parameter(YamlMap& map, const KindParameter& parameter, std::optional<NumberRange>& value) {
  const std::string_view key = parameter.word;
  if (!map.has(key)) return;
  if (parameter.type == KindParameter::Type::ethertype)
    return map.read(key, value.emplace(), [](std::string_view text) -> Result<NumberRange> {
      auto ethertype = parse_ethertype("value", text);
      if (!ethertype) return std::unexpected(ethertype.error());
      return NumberRange{*ethertype, *ethertype};
    });
  map.read(key, value.emplace(), [&](std::string_view text) -> Result<NumberRange> {
    auto range = parse_range("value", text, UINT32_MAX);
    if (!range) return range;
    if (!range->single() && !parameter.ranged)
      return fail(EINVAL, "value {}: expected a single number", text);
    if (range->first < parameter.least || range->last > parameter.most)
      return fail(EINVAL, "value {}: accepted {}..{}", text, parameter.least, parameter.most);
    return *range;
  });
}

// Keys that this kind has not.
void refuse_foreign_keys(YamlMap& map, const NetworkLink& element) {
  const KindDescription& kind = *element.link.kind;
  const auto refuse = [&](std::string_view key) {
    if (map.has(key)) map.refuse(key, fmt::format("an interface of type {} has no such key", kind.name));
  };
  for (const KindDescription& other : kind_descriptions())
    for (const KindParameter& parameter : other.parameters)
      if (std::ranges::find(kind.parameters, parameter.word, &KindParameter::word) == kind.parameters.end())
        refuse(parameter.word);
  if (!kind.has_peer) refuse("peer");
  if (!kind.needs_parent) refuse("link");
  if (!kind.needs_parent) refuse("link_netns");
  if (!kind.creatable) refuse("count");
}

void check_link(YamlMap& map, NetworkLink& element) {
  const LinkDescription& link = element.link;
  if (map.failed()) return;
  if (link.kind->needs_parent) map.require("link");
  if (link.kind->has_peer) map.require("peer");
  for (size_t at = 0; at < link.kind->parameters.size(); ++at)
    if (link.kind->parameters[at].required && !link.values[at]) map.require(link.kind->parameters[at].word);
  if (!element.bulk() || map.failed()) return;
  if (link.address) map.refuse("address", "it would be the same for all: leave it to the daemon");
  uint64_t product = 0;
  if (link.has_range()) {
    product = 1;
    for (const auto& value : link.values)
      if (value && !value->single()) product *= uint64_t{value->last} - value->first + 1;
  }
  const uint64_t count = element.count.value_or(product);
  if (count > kMostCount)
    return map.refuse("count", fmt::format("{} interfaces: accepted 1..{}", count, kMostCount));
  if (product != 0 && count > product)
    return map.refuse("count", fmt::format("value {}: the ranges give {} interfaces only", count, product));
  const auto pattern = NamePattern::parse(link.name);
  if (count > 1 && pattern && !pattern->varies())
    map.refuse("name", fmt::format("value '{}': {} interfaces need a field like {{}} to differ in", link.name,
                                   count));
  // Names grow with the number.
  for (const uint64_t member : {uint64_t{0}, count - 1}) {
    const LinkDescription last = member_of(element, member);
    if (last.name.empty() || (last.peer && last.peer->name.empty()))
      return map.refuse(
          "name", fmt::format("value '{}': longer than 15 characters for member {}", link.name, member));
  }
}

NetworkLink read_link(YamlMap& map) {
  NetworkLink element;
  LinkDescription& link = element.link;
  element.line = map.line();
  map.require("type");
  map.read("type", link.kind, [](std::string_view text) -> Result<const KindDescription*> {
    const KindDescription* kind = find_kind_description(text);
    if (kind != nullptr) return kind;
    std::vector<std::string_view> names;
    for (const KindDescription& known : kind_descriptions()) names.push_back(known.name);
    return fail(EINVAL, "value '{}': expected one of {}", shown(text), fmt::join(names, ", "));
  });
  if (map.failed() || link.kind == nullptr) return element;
  refuse_foreign_keys(map, element);
  if (map.has("count")) map.number("count", element.count.emplace(), Range<uint64_t>{1, kMostCount});
  for (size_t at = 0; at < link.kind->parameters.size(); ++at)
    read_parameter(map, link.kind->parameters[at], link.values[at]);
  if (!element.bulk() || map.has("name")) map.require("name");
  map.read("link", link.parent, parse_name);
  map.read("link_netns", element.link_netns, parse_netns);
  map.read("name", link.name, element.bulk() ? parse_pattern : parse_name);
  if (element.bulk()) link.name = name_pattern_of(link);
  read_optional_boolean(map, "up", link.up);
  read_mtu(map, link.mtu);
  read_address(map, link.address);
  read_settings(map, link);
  if (link.kind->has_peer && map.has("peer")) read_peer(map, element.bulk(), link, element.far);
  check_link(map, element);
  return element;
}

NetworkAddress read_network_address(YamlMap& map) {
  NetworkAddress address;
  address.line = map.line();
  map.require("address");
  map.require("dev");
  map.read("address", address.prefix, [](std::string_view text) { return parse_ip_prefix("value", text); });
  map.read("dev", address.device, parse_name);
  map.boolean("nodad", address.nodad);
  if (address.nodad && address.prefix.is_v4()) map.refuse("nodad", "only IPv6 addresses have it");
  return address;
}

// "default" is of the gateway's family.
void read_destination(YamlMap& map, NetworkRoute& route) {
  map.read("to", route.destination, [&](std::string_view text) -> Result<IpPrefix> {
    if (text == "default") {
      if (route.gateway && !route.gateway->is_v4()) return IpPrefix(Ipv6Prefix{{}, 0});
      return IpPrefix(Ipv4Prefix{0, 0});
    }
    auto prefix = parse_ip_prefix("value", text);
    if (prefix && prefix->network() != prefix->address)
      return fail(EINVAL, "value {}: bits are set behind the prefix; expected {}", text,
                  format_prefix(IpPrefix(prefix->network(), prefix->length)));
    return prefix;
  });
}

void check_route(YamlMap& map, const NetworkRoute& route) {
  if (map.failed()) return;
  const bool v4 = route.destination.is_v4();
  if (route.gateway && route.gateway->is_v4() != v4)
    map.refuse("via", fmt::format("value {}: expected an address of the family of {}",
                                  format_address(*route.gateway), format_prefix(route.destination)));
  if (route.source && route.source->is_v4() != v4)
    map.refuse("src", fmt::format("value {}: expected an address of the family of {}",
                                  format_address(*route.source), format_prefix(route.destination)));
  if (route.type != RTN_UNICAST) {
    for (const std::string_view key : {"via", "dev", "onlink"})
      if (map.has(key)) map.refuse(key, "blackhole, unreachable and prohibit routes have none");
  } else if (!route.gateway && route.device.empty()) {
    map.refuse("to", "where to: expected 'via', 'dev' or both beside it");
  }
  if (route.onlink && (route.device.empty() || !route.gateway))
    map.refuse("onlink", "expected 'via' and 'dev' beside it");
}

NetworkRoute read_route(YamlMap& map) {
  NetworkRoute route;
  route.line = map.line();
  map.require("to");
  if (map.has("type"))
    map.read("type", route.type, [](std::string_view text) -> Result<uint8_t> {
      if (const auto type = find_route_type(text)) return *type;
      return fail(EINVAL, "value '{}': expected one of unicast, blackhole, unreachable, prohibit",
                  shown(text));
    });
  const auto address = [](std::string_view text) { return parse_address("value", text); };
  if (map.has("via")) map.read("via", route.gateway.emplace(), address);
  if (map.has("src")) map.read("src", route.source.emplace(), address);
  read_destination(map, route);
  map.read("dev", route.device, parse_name);
  map.boolean("onlink", route.onlink);
  if (map.has("metric")) map.number("metric", route.metric.emplace(), Range<uint32_t>{0, UINT32_MAX});
  map.read("protocol", route.protocol, parse_route_protocol);
  check_route(map, route);
  return route;
}

// Its words without the metric, which may be given or not.
std::string same_route(const NetworkRoute& route) {
  RouteDescription bare = route;
  bare.metric.reset();
  return words_of(bare);
}

NetworkNeighbour read_neighbour(YamlMap& map) {
  NetworkNeighbour neighbour;
  neighbour.line = map.line();
  for (const std::string_view key : {"address", "lladdr", "dev"}) map.require(key);
  map.read("address", neighbour.address, [](std::string_view text) { return parse_address("value", text); });
  map.read("lladdr", neighbour.mac, parse_unicast_mac);
  map.read("dev", neighbour.device, parse_name);
  map.boolean("router", neighbour.router);
  if (neighbour.router && neighbour.address.is_v4()) map.refuse("router", "only IPv6 neighbours have it");
  return neighbour;
}

// The same thing said twice is refused where it is said again.
class Seen {
 public:
  explicit Seen(std::string_view file) : file_(file) {}
  void add(YamlMap& map, std::string_view key, int line, std::string what) {
    if (map.failed()) return;
    const auto [at, added] = lines_.try_emplace(std::move(what), line);
    if (!added) map.refuse(key, fmt::format("{} is there already, at {}:{}", at->first, file_, at->second));
  }

 private:
  std::string_view file_;
  std::unordered_map<std::string, int> lines_;
};

class NetworkReader {
 public:
  NetworkReader(YamlMap& root, NetworkConfig& network)
      : root_(root), network_(network), seen_(network.file) {}

  void read() {
    static constexpr std::string_view kKeys[] = {"netns", "interfaces", "addresses", "routes", "neighbours"};
    for (const auto& element : root_.list("network", kMostNamespaces)) {
      YamlMap map = root_.element_map(element, kKeys);
      map.require("netns");
      NetworkNamespace& netns = network_.namespaces.emplace_back();
      netns.line = element.line;
      map.read("netns", netns.name, parse_netns);
      seen_.add(map, "netns", netns.line, fmt::format("netns '{}'", netns.name));
      read_links(map, netns);
      read_addresses(map, netns);
      read_routes(map, netns);
      read_neighbours(map, netns);
    }
  }

 private:
  void read_links(YamlMap& map, NetworkNamespace& netns) {
    for (const auto& element : map.list("interfaces", kMostElements)) {
      YamlMap link = map.element_map(element, link_keys());
      netns.links.push_back(read_link(link));
      const NetworkLink& read = netns.links.back();
      if (read.port()) seen_.add(link, "name", read.line, fmt::format("port '{}'", read.link.name));
      seen_.add(link, "name", read.line,
                fmt::format("interface '{}' of netns '{}'", read.link.name, netns.name));
      if (read.link.peer)
        seen_.add(link, "peer", read.line,
                  fmt::format("interface '{}' of netns '{}'", read.link.peer->name,
                              read.link.peer->netns.value_or(netns.name)));
    }
  }
  void read_addresses(YamlMap& map, NetworkNamespace& netns) {
    static constexpr std::string_view kKeys[] = {"address", "dev", "nodad"};
    for (const auto& element : map.list("addresses", kMostElements)) {
      YamlMap address = map.element_map(element, kKeys);
      netns.addresses.push_back(read_network_address(address));
      const NetworkAddress& read = netns.addresses.back();
      seen_.add(address, "address", read.line,
                fmt::format("address {} on '{}' of netns '{}'", format_prefix(read.prefix), read.device,
                            netns.name));
    }
  }
  void read_routes(YamlMap& map, NetworkNamespace& netns) {
    static constexpr std::string_view kKeys[] = {"to",  "type",   "via",    "dev",
                                                 "src", "onlink", "metric", "protocol"};
    for (const auto& element : map.list("routes", kMostElements)) {
      YamlMap route = map.element_map(element, kKeys);
      netns.routes.push_back(read_route(route));
      const NetworkRoute& read = netns.routes.back();
      seen_.add(route, "to", read.line,
                fmt::format("route {} metric {} in netns '{}'", same_route(read), read.metric_or_default(),
                            netns.name));
    }
    rank_routes(netns.routes);
  }
  void read_neighbours(YamlMap& map, NetworkNamespace& netns) {
    static constexpr std::string_view kKeys[] = {"address", "lladdr", "dev", "router"};
    for (const auto& element : map.list("neighbours", kMostElements)) {
      YamlMap neighbour = map.element_map(element, kKeys);
      netns.neighbours.push_back(read_neighbour(neighbour));
      const NetworkNeighbour& read = netns.neighbours.back();
      seen_.add(neighbour, "address", read.line,
                fmt::format("neighbour {} on '{}' of netns '{}'", format_address(read.address), read.device,
                            netns.name));
    }
  }

  YamlMap& root_;
  NetworkConfig& network_;
  Seen seen_;
};

}  // namespace

void read_network(YamlMap& root, NetworkConfig& network) {
  NetworkReader(root, network).read();
}

}  // namespace mayfly
