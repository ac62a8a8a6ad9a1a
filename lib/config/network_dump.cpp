// SPDX-License-Identifier: BSD-3-Clause
#include "config/network.hpp"

namespace mayfly {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// A map on one line: {key: value, key: value}.
class FlowMap {
 public:
  template <class T>
  void put(std::string_view key, const T& value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
  }
  void put_text(std::string_view key, std::string_view value) { put(key, quoted(value)); }
  std::string take() { return "{" + std::move(text_) + "}"; }

 private:
  std::string text_;
};

std::string range_text(const KindParameter& parameter, const NumberRange& value) {
  if (parameter.type == KindParameter::Type::ethertype)
    return format_ethertype(static_cast<uint16_t>(value.first));
  return value.single() ? fmt::format("{}", value.first) : fmt::format("{}-{}", value.first, value.last);
}

void put_settings(FlowMap& map, const LinkDescription& link) {
  if (link.group) map.put("group", *link.group);
  if (link.alias) map.put_text("alias", *link.alias);
  if (link.unnumbered) map.put_text("unnumbered", *link.unnumbered);
  if (link.rp_filter) map.put("rp_filter", *link.rp_filter ? "strict" : "off");
  if (link.proxy_arp) map.put("proxy_arp", *link.proxy_arp);
  if (link.proxy_nd) map.put("proxy_nd", *link.proxy_nd);
  if (link.no_link_local) map.put("addrgenmode", *link.no_link_local ? "none" : "eui64");
}

std::string dump_peer(const PeerDescription& peer, const LinkDescription& far) {
  FlowMap map;
  map.put_text("name", peer.name);
  if (peer.netns) map.put_text("netns", *peer.netns);
  if (peer.mtu) map.put("mtu", *peer.mtu);
  if (peer.address) map.put_text("address", format_mac(*peer.address));
  if (peer.up) map.put("up", peer.up);
  put_settings(map, far);
  return map.take();
}

std::string dump(const NetworkLink& element) {
  const LinkDescription& link = element.link;
  FlowMap map;
  map.put_text("name", link.name);
  map.put("type", link.kind->name);
  if (element.count) map.put("count", *element.count);
  if (!link.parent.empty()) map.put_text("link", link.parent);
  if (!element.link_netns.empty()) map.put_text("link_netns", element.link_netns);
  for (size_t at = 0; at < link.kind->parameters.size(); ++at)
    if (link.values[at])
      map.put(link.kind->parameters[at].word, range_text(link.kind->parameters[at], *link.values[at]));
  if (link.up) map.put("up", *link.up);
  if (link.mtu) map.put("mtu", *link.mtu);
  if (link.address) map.put_text("address", format_mac(*link.address));
  put_settings(map, link);
  if (link.peer) map.put("peer", dump_peer(*link.peer, element.far));
  return map.take();
}

std::string dump(const NetworkAddress& address) {
  FlowMap map;
  map.put_text("address", format_prefix(address.prefix));
  map.put_text("dev", address.device);
  if (address.nodad) map.put("nodad", true);
  return map.take();
}

std::string dump(const NetworkRoute& route) {
  FlowMap map;
  map.put_text("to", format_prefix(route.destination));
  if (route.type != RTN_UNICAST) map.put("type", route_type_name(route.type));
  if (route.gateway) map.put_text("via", format_address(*route.gateway));
  if (!route.device.empty()) map.put_text("dev", route.device);
  if (route.source) map.put_text("src", format_address(*route.source));
  if (route.onlink) map.put("onlink", true);
  if (route.metric) map.put("metric", *route.metric);
  if (route.protocol != RTPROT_STATIC) map.put("protocol", route_protocol_name(route.protocol));
  return map.take();
}

std::string dump(const NetworkNeighbour& neighbour) {
  FlowMap map;
  map.put_text("address", format_address(neighbour.address));
  map.put_text("lladdr", format_mac(neighbour.mac));
  map.put_text("dev", neighbour.device);
  if (neighbour.router) map.put("router", true);
  return map.take();
}

template <class Item>
void dump_list(std::string& out, std::string_view key, const std::vector<Item>& items) {
  if (items.empty()) return;
  out += fmt::format("    {}:\n", key);
  for (const Item& item : items) out += fmt::format("      - {}\n", dump(item));
}

}  // namespace

std::string dump_network(const NetworkConfig& network) {
  if (network.empty()) return {};
  std::string out = "network:\n";
  for (const NetworkNamespace& netns : network.namespaces) {
    out += fmt::format("  - netns: {}\n", quoted(netns.name));
    dump_list(out, "interfaces", netns.links);
    dump_list(out, "addresses", netns.addresses);
    dump_list(out, "routes", netns.routes);
    dump_list(out, "neighbours", netns.neighbours);
  }
  return out;
}

}  // namespace mayfly
