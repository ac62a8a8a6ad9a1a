// SPDX-License-Identifier: BSD-3-Clause
#include "config/network_element.hpp"

#include <algorithm>
#include <unordered_map>

#include "iface/name_pattern.hpp"

namespace mayfly {

std::vector<PlacedLink> elements_of(const NetworkConfig& network) {
  std::vector<PlacedLink> elements;
  for (const NetworkNamespace& netns : network.namespaces)
    for (const NetworkLink& link : netns.links) elements.push_back({&link, &netns});
  return elements;
}

std::vector<PlacedLink> in_order(const std::vector<PlacedLink>& elements) {
  std::unordered_map<std::string, size_t> owners;
  const auto enter = [&](size_t at) {
    elements[at].each_name(
        [&](std::string_view netns, std::string_view name) { owners.try_emplace(scoped(netns, name), at); });
  };
  bool needed = false;
  for (size_t at = 0; at < elements.size(); ++at) {
    if (!elements[at].link->bulk()) enter(at);
    elements[at].each_need([&](const std::string&, const std::string&) { needed = true; });
  }
  // Members of templates are listed only when somebody might stand on one.
  if (needed) {
    const bool missing = std::ranges::any_of(elements, [&](const PlacedLink& element) {
      bool unknown = false;
      element.each_need([&](const std::string& netns, const std::string& name) {
        unknown |= !owners.contains(scoped(netns, name));
      });
      return unknown;
    });
    for (size_t at = 0; missing && at < elements.size(); ++at)
      if (elements[at].link->bulk()) enter(at);
  }
  std::vector<PlacedLink> ordered;
  std::vector<bool> visited(elements.size());
  std::vector<size_t> path;
  const auto needs = [&](const PlacedLink& element) {
    std::optional<size_t> found;
    element.each_need([&](const std::string& netns, const std::string& name) {
      const auto owner = owners.find(scoped(netns, name));
      if (!found && owner != owners.end() && !visited[owner->second]) found = owner->second;
    });
    return found;
  };
  for (size_t first = 0; first < elements.size(); ++first) {
    if (visited[first]) continue;
    visited[first] = true;
    path.push_back(first);
    while (!path.empty()) {
      const PlacedLink& element = elements[path.back()];
      if (const auto next = needs(element)) {
        visited[*next] = true;
        path.push_back(*next);
        continue;
      }
      ordered.push_back(element);
      path.pop_back();
    }
  }
  return ordered;
}

uint32_t NetworkRoute::metric_or_default() const noexcept {
  constexpr uint32_t kDefaultMetric6 = 1024;  // the kernel's
  const uint32_t given = metric.value_or(0);
  return given == 0 && !destination.is_v4() ? kDefaultMetric6 : given;
}

void rank_routes(std::vector<NetworkRoute>& routes) {
  std::unordered_map<std::string, uint64_t> last;  // by prefix and metric: what stands behind the last one
  for (NetworkRoute& route : routes) {
    uint64_t& digest =
        last[fmt::format("{} {}", format_prefix(route.destination), route.metric_or_default())];
    route.behind = digest;
    digest = std::hash<std::string>{}(fmt::format("{} {}", digest, words_of(route))) | 1;
  }
}

uint64_t NetworkLink::members() const noexcept {
  if (count) return *count;
  uint64_t product = 1;
  for (const auto& value : link.values)
    if (value) product *= uint64_t{value->last} - value->first + 1;
  return product;
}

LinkDescription member_of(const NetworkLink& element, uint64_t i) {
  LinkDescription member = element.link;
  NameFields fields{i, element.link.parent, 0, 0};
  for (size_t at = kMostKindParameters; at-- > 0;) {
    std::optional<NumberRange>& value = member.values[at];
    if (!value) continue;
    const uint64_t size = uint64_t{value->last} - value->first + 1;
    const auto number = static_cast<uint32_t>(value->first + i % size);
    i /= size;
    value = NumberRange{number, number};
    const KindParameter::Role role = element.link.kind->parameters[at].role;
    if (role == KindParameter::Role::outer) fields.outer = static_cast<uint16_t>(number);
    if (role == KindParameter::Role::inner) fields.inner = static_cast<uint16_t>(number);
  }
  const auto format = [&](std::string& name) {
    const auto pattern = NamePattern::parse(name);
    std::array<char, kInterfaceNameBytes> buffer;
    name = pattern ? std::string(pattern->format(fields, buffer)) : std::string();
  };
  format(member.name);
  if (member.peer) format(member.peer->name);
  return member;
}

NetworkSize size_of(const NetworkConfig& network) {
  NetworkSize size;
  for (const NetworkNamespace& netns : network.namespaces) {
    if (netns.name != kDefaultNamespace) ++size.namespaces;
    for (const NetworkLink& link : netns.links)
      if (!link.port()) size.interfaces += link.members() * (link.link.peer ? 2 : 1);
    size.addresses += netns.addresses.size();
    size.routes += netns.routes.size();
    size.neighbours += netns.neighbours.size();
  }
  return size;
}

}  // namespace mayfly
