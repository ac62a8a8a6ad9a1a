// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// An element of `interfaces` together with the namespace it stands in: what it is called, what it makes and
// what it stands on. For network_change alone; the references are to a NetworkConfig that outlives it.

#include <string>
#include <string_view>
#include <vector>

#include "config/network.hpp"

namespace mayfly {

// A name within its namespace.
inline std::string scoped(std::string_view netns, std::string_view name) {
  return fmt::format("{}/{}", netns, name);
}

struct PlacedLink {
  const NetworkLink* link;
  const NetworkNamespace* netns;

  const std::string& parent_netns() const noexcept {
    return link->link_netns.empty() ? netns->name : link->link_netns;
  }
  std::string far_netns() const {
    return link->link.peer ? link->link.peer->netns.value_or(netns->name) : netns->name;
  }
  // visit(netns, name) for whatever it needs to be there before it.
  template <class Visit>
  void each_need(Visit visit) const {
    if (!link->link.parent.empty()) visit(parent_netns(), link->link.parent);
    if (link->link.unnumbered) visit(netns->name, *link->link.unnumbered);
    if (link->far.unnumbered) visit(far_netns(), *link->far.unnumbered);
  }
  // A port is one wherever it is.
  std::string key() const {
    return link->port() ? fmt::format("port {}", link->link.name) : scoped(netns->name, link->link.name);
  }
  std::string words() const {
    return name_words() + link_words(link->link) + link_words(link->far) +
           (link->link_netns.empty() ? "" : fmt::format(" (link in netns {})", link->link_netns));
  }
  std::string name_words() const {
    if (!link->bulk()) return link->link.name;
    return fmt::format("name {}{}", link->link.name,
                       link->count ? fmt::format(" count {}", *link->count) : "");
  }
  // The description as it is sent from the namespace of its parent.
  LinkDescription sent(const LinkDescription& link_or_member) const {
    LinkDescription description = link_or_member;
    if (parent_netns() != netns->name) description.netns = netns->name;
    // The peer's namespace is its own affair.
    if (description.peer && !description.peer->netns && description.netns)
      description.peer->netns = netns->name;
    return description;
  }
  // visit(netns, name) for each interface that it makes, peers too.
  template <class Visit>
  void each_name(Visit visit) const {
    const uint64_t members = link->members();
    for (uint64_t i = 0; i < members; ++i) each_name_of(i, visit);
  }
  template <class Visit>
  void each_name_of(uint64_t i, Visit visit) const {
    if (!link->bulk()) {
      visit(netns->name, link->link.name);
      if (link->link.peer) visit(link->link.peer->netns.value_or(netns->name), link->link.peer->name);
      return;
    }
    const LinkDescription member = member_of(*link, i);
    visit(netns->name, member.name);
    if (member.peer) visit(member.peer->netns.value_or(netns->name), member.peer->name);
  }
};

std::vector<PlacedLink> elements_of(const NetworkConfig& network);

// What interfaces stand on comes before them: parents, and those whose addresses they use. Otherwise the
// order of the file. A circle is left as it is: the daemon refuses it.
std::vector<PlacedLink> in_order(const std::vector<PlacedLink>& elements);

}  // namespace mayfly
