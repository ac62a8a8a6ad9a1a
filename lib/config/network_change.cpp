// SPDX-License-Identifier: BSD-3-Clause
// From one network section to another. Elements are told apart by what they are called and compared by the
// words that describe them.
//
// What is to go goes first, in the order opposite to its making: neighbours, routes, addresses, interfaces,
// namespaces. An interface that is made anew takes with it what is stacked on it, its addresses, routes and
// neighbours: those are taken away and made again, although nothing changed about them.
#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "config/network_element.hpp"

namespace mayfly {
namespace {

// How much of an interface is lost on the way: routes and neighbours (it goes down), its addresses too (it
// moves to another namespace), or all of it.
enum class Loss : uint8_t { none, routes, addresses, all };

constexpr uint32_t kDefaultMtu = 1'500;

// Builds changes: every message goes through one buffer.
class ChangeWriter {
 public:
  using Fill = std::function<void(RequestMessage&)>;

  void begin(Change::Kind kind, bool generic, std::string netns, const std::string& file, int line,
             std::string what) {
    Change& change = changes_.emplace_back();
    change.kind = kind;
    change.generic = change.undo_generic = generic;
    change.netns = std::move(netns);
    change.where = fmt::format("{}:{}", file, line);
    change.what = std::move(what);
  }
  void send(const Fill& fill) { append(changes_.back().messages, fill); }
  void undo(const Fill& fill) { append(changes_.back().undo, fill); }
  Change& last() noexcept { return changes_.back(); }
  std::vector<Change> take() { return std::move(changes_); }

 private:
  void append(Change::Messages& messages, const Fill& fill) {
    fill(message_);
    message_.header()->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    const auto* bytes = reinterpret_cast<const std::byte*>(message_.header());
    messages.insert(messages.end(), bytes, bytes + NLMSG_ALIGN(message_.size()));
  }

  RequestMessage message_;
  std::vector<Change> changes_;
};

using Put = std::function<void(const ChangeWriter::Fill&)>;

// Whether a deletion is one of the changes, for which what is gone already is gone, or undoes one, where as
// much goes as can.
enum class Deletion : uint8_t { change, undo };

// The deletion of so many members.
void put_names(const PlacedLink& element, uint64_t first, uint64_t last, Deletion deletion, const Put& put) {
  constexpr uint64_t kNamesAMessage = 1'000;
  for (uint64_t at = first; at < last; at += kNamesAMessage)
    put([&](RequestMessage& message) {
      message.begin_generic(protocol::kCmdLinkBulkNames);
      for (uint64_t i = at; i < std::min(last, at + kNamesAMessage); ++i)
        message.put_string(protocol::kBulkNameEntry, member_of(*element.link, i).name);
    });
  put([deletion](RequestMessage& message) {
    message.begin_generic(protocol::kCmdLinkBulkDel);
    message.put_flag(protocol::kBulkListed);
    message.put_flag(deletion == Deletion::undo ? protocol::kBulkForce : protocol::kBulkSkipMissing);
  });
}

LinkDescription named_only(const std::string& name) {
  LinkDescription link;
  link.name = name;
  return link;
}

void begin_link_delete(RequestMessage& message, const std::string& name) {
  message.begin_route(RTM_DELLINK, 0, ifinfomsg{});
  message.put_string(IFLA_IFNAME, name);
}

class Difference {
 public:
  Difference(const NetworkConfig& from, const NetworkConfig& to)
      : from_(from), to_(to), old_(in_order(elements_of(from))), new_(in_order(elements_of(to))) {
    for (size_t at = 0; at < old_.size(); ++at) old_by_key_[old_[at].key()] = at;
    for (size_t at = 0; at < new_.size(); ++at) new_by_key_[new_[at].key()] = at;
    judge_all();
    spread();
  }

  std::vector<Change> changes() {
    remove_contents();
    for (auto element = old_.rbegin(); element != old_.rend(); ++element) remove_link(*element);
    remove_namespaces();
    add_namespaces();
    for (const PlacedLink& element : new_) make_link(element);
    add_contents();
    return writer_.take();
  }

 private:
  // What becomes of an element that is in both.
  enum class Fate : uint8_t { same, set, grow, shrink, anew };

  const PlacedLink* old_of(const PlacedLink& element) const {
    const auto found = old_by_key_.find(element.key());
    return found == old_by_key_.end() ? nullptr : &old_[found->second];
  }
  const PlacedLink* new_of(const PlacedLink& element) const {
    const auto found = new_by_key_.find(element.key());
    return found == new_by_key_.end() ? nullptr : &new_[found->second];
  }

  // A template that differs in its count only.
  static bool differ_in_count(const NetworkLink& from, const NetworkLink& to) {
    return from.bulk() && to.bulk() && from.link == to.link && from.link_netns == to.link_netns;
  }
  bool differ_in_settings(const PlacedLink& from, const PlacedLink& to) const {
    if (from.link->bulk() || to.link->bulk() || from.link->link_netns != to.link->link_netns) return false;
    if (from.link->far != to.link->far) return false;
    // What these two are where nobody gave them follows from something else, which is not always known here:
    // there would be no way back.
    if (from.link->link.address.has_value() != to.link->link.address.has_value()) return false;
    if (!mtu_of(from_, from) || !mtu_of(to_, to)) return false;
    LinkDescription rest = to.link->link;
    copy_settings(from.link->link, rest);
    return rest == from.link->link;
  }
  // The MTU an interface has: its own, or what it was created with, if that can be told.
  static std::optional<uint32_t> mtu_of(const NetworkConfig& network, const PlacedLink& element) {
    const LinkDescription& link = element.link->link;
    if (link.mtu) return link.mtu;
    if (element.link->port()) return port_mtu(network, link.name);
    if (!link.kind->needs_parent) return kDefaultMtu;
    const NetworkNamespace* netns = find_netns(network, element.parent_netns());
    if (netns != nullptr)
      for (const NetworkLink& parent : netns->links)
        if (!parent.bulk() && parent.link.name == link.parent && &parent != element.link)
          return parent.link.mtu ? parent.link.mtu
                 : parent.port() ? port_mtu(network, link.parent)
                                 : std::nullopt;
    return port_mtu(network, link.parent);
  }
  static std::optional<uint32_t> port_mtu(const NetworkConfig& network, const std::string& name) {
    const auto found = network.port_mtus.find(name);
    return found == network.port_mtus.end() ? std::nullopt : std::optional(found->second);
  }
  static void copy_settings(const LinkDescription& from, LinkDescription& to) {
    to.up = from.up;
    to.mtu = from.mtu;
    to.group = from.group;
    to.address = from.address;
    to.alias = from.alias;
    to.unnumbered = from.unnumbered;
    to.rp_filter = from.rp_filter;
    to.proxy_arp = from.proxy_arp;
    to.proxy_nd = from.proxy_nd;
    to.no_link_local = from.no_link_local;
  }

  Fate judge(const PlacedLink& from, const PlacedLink& to) const {
    if (to.link->port()) return Fate::set;
    if (from.words() == to.words()) return Fate::same;
    if (differ_in_count(*from.link, *to.link))
      return from.link->members() < to.link->members() ? Fate::grow : Fate::shrink;
    return differ_in_settings(from, to) ? Fate::set : Fate::anew;
  }

  // What settings an interface has that nobody gave any: beside those that only the daemon knows.
  static LinkDescription settings_of(const LinkDescription& given, bool port, std::optional<uint32_t> mtu) {
    LinkDescription full = named_only(given.name);
    full.up = given.up.value_or(port);
    full.mtu = given.mtu ? given.mtu : mtu;
    full.address = given.address;
    full.group = given.group.value_or(0);
    full.alias = given.alias.value_or("");
    full.unnumbered = given.unnumbered.value_or("");
    full.rp_filter = given.rp_filter.value_or(false);
    full.proxy_arp = given.proxy_arp.value_or(false);
    full.proxy_nd = given.proxy_nd.value_or(false);
    full.no_link_local = given.no_link_local.value_or(false);
    return full;
  }
  LinkDescription settings_of(const PlacedLink* element, const std::string& name) const {
    return settings_of(element == nullptr ? named_only(name) : element->link->link, true,
                       port_mtu(to_, name));
  }
  // The settings of `to` that `from` has not.
  static LinkDescription settings_beyond(const LinkDescription& from, const LinkDescription& to) {
    LinkDescription change = named_only(to.name);
    const auto differing = [](const auto& was, const auto& is, auto& target) {
      if (is && was != is) target = is;
    };
    differing(from.up, to.up, change.up);
    differing(from.mtu, to.mtu, change.mtu);
    differing(from.address, to.address, change.address);
    differing(from.group, to.group, change.group);
    differing(from.alias, to.alias, change.alias);
    differing(from.unnumbered, to.unnumbered, change.unnumbered);
    differing(from.rp_filter, to.rp_filter, change.rp_filter);
    differing(from.proxy_arp, to.proxy_arp, change.proxy_arp);
    differing(from.proxy_nd, to.proxy_nd, change.proxy_nd);
    differing(from.no_link_local, to.no_link_local, change.no_link_local);
    return change;
  }

  void lose(std::string_view netns, std::string_view name, Loss loss) {
    Loss& known = losses_[scoped(netns, name)];
    known = std::max(known, loss);
  }
  void lose_all(const PlacedLink& element) {
    element.each_name([&](std::string_view netns, std::string_view name) { lose(netns, name, Loss::all); });
  }
  Loss loss_of(std::string_view netns, std::string_view name) const {
    if (losses_.empty()) return Loss::none;
    const auto found = losses_.find(scoped(netns, name));
    return found == losses_.end() ? Loss::none : found->second;
  }

  void judge_port(const PlacedLink* from, const PlacedLink* to) {
    const std::string& name = (from != nullptr ? from : to)->link->link.name;
    const std::string_view was = from == nullptr ? kDefaultNamespace : std::string_view(from->netns->name);
    const std::string_view is = to == nullptr ? kDefaultNamespace : std::string_view(to->netns->name);
    if (was != is) return lose(was, name, Loss::addresses);
    if (settings_of(from, name).up == true && settings_of(to, name).up == false)
      lose(was, name, Loss::routes);
  }

  void judge_all() {
    for (const PlacedLink& from : old_) {
      const PlacedLink* to = new_of(from);
      if (from.link->port()) {
        judge_port(&from, to);
        continue;
      }
      const Fate fate = to == nullptr ? Fate::anew : judge(from, *to);
      if (fate == Fate::anew) anew_.insert(from.key());
      if (fate == Fate::anew) lose_all(from);
      if (fate == Fate::shrink)
        for (uint64_t i = to->link->members(); i < from.link->members(); ++i)
          from.each_name_of(
              i, [&](std::string_view netns, std::string_view name) { lose(netns, name, Loss::all); });
      if (fate == Fate::set && from.link->link.up == true && to->link->link.up != true)
        lose(from.netns->name, from.link->link.name, Loss::routes);
    }
    for (const PlacedLink& to : new_)
      if (to.link->port() && old_of(to) == nullptr) judge_port(nullptr, &to);
    for (const NetworkNamespace& netns : from_.namespaces)
      if (find_netns(to_, netns.name) == nullptr) gone_netns_.insert(netns.name);
  }

  // What stands on something that is made anew is made anew, however high it is stacked; and what uses its
  // addresses.
  void spread() {
    for (bool more = !losses_.empty(); more;) {
      more = false;
      for (const PlacedLink& from : old_) {
        if (from.link->port() || anew_.contains(from.key())) continue;
        bool lost_one = false;
        from.each_need([&](const std::string& netns, const std::string& name) {
          lost_one |= loss_of(netns, name) == Loss::all;
        });
        if (!lost_one) continue;
        anew_.insert(from.key());
        lose_all(from);
        more = true;
      }
    }
  }

  static const NetworkNamespace* find_netns(const NetworkConfig& network, std::string_view name) {
    const auto found = std::ranges::find(network.namespaces, name, &NetworkNamespace::name);
    return found == network.namespaces.end() ? nullptr : &*found;
  }

  // ------------------------------------------------------------------------------------------- contents

  // What is called the same in both and is not lost stays.
  static std::string_view object(const NetworkAddress&) { return "addr"; }
  static std::string_view object(const NetworkRoute&) { return "route"; }
  static std::string_view object(const NetworkNeighbour&) { return "neigh"; }

  template <class Item>
  static std::string_view verb(const Item&) {
    return "add";
  }
  static std::string_view verb(const NetworkRoute& route) { return route.behind == 0 ? "add" : "append"; }

  bool lost(const NetworkNamespace& netns, const NetworkAddress& address) const {
    return loss_of(netns.name, address.device) >= Loss::addresses;
  }
  bool lost(const NetworkNamespace& netns, const NetworkNeighbour& neighbour) const {
    return loss_of(netns.name, neighbour.device) >= Loss::routes;
  }
  bool lost(const NetworkNamespace& netns, const NetworkRoute& route) const {
    if (losses_.empty() || route.type != RTN_UNICAST) return false;
    if (!route.device.empty()) return loss_of(netns.name, route.device) >= Loss::routes;
    // It leaves by the interface whose address is nearest to the gateway.
    const NetworkAddress* nearest = nullptr;
    for (const NetworkAddress& address : netns.addresses)
      if (address.prefix.contains(*route.gateway) &&
          (nearest == nullptr || address.prefix.length > nearest->prefix.length))
        nearest = &address;
    return nearest != nullptr && loss_of(netns.name, nearest->device) >= Loss::routes;
  }

  // What tells an item from others, and, of a route, those that are used before it: when they change, it has
  // to be put in its place anew.
  template <class Item>
  static std::string identity(const Item& item) {
    return words_of(item);
  }
  static std::string identity(const NetworkRoute& route) {
    return route.behind == 0 ? words_of(route) : fmt::format("{} {}", words_of(route), route.behind);
  }

  template <class Item>
  std::unordered_set<std::string> staying(const NetworkNamespace* of,
                                          std::vector<Item> NetworkNamespace::*items) const {
    std::unordered_set<std::string> identities;
    if (of == nullptr) return identities;
    for (const Item& item : of->*items)
      if (!lost(*of, item)) identities.insert(identity(item));
    return identities;
  }

  template <class Item>
  void remove_items(std::vector<Item> NetworkNamespace::*items, void (*add)(RequestMessage&, const Item&),
                    void (*remove)(RequestMessage&, const Item&)) {
    for (auto netns = from_.namespaces.rbegin(); netns != from_.namespaces.rend(); ++netns) {
      const auto kept = staying(find_netns(to_, netns->name), items);
      for (auto item = ((*netns).*items).rbegin(); item != ((*netns).*items).rend(); ++item) {
        if (!lost(*netns, *item) && kept.contains(identity(*item))) continue;
        writer_.begin(Change::Kind::removal, false, netns->name, from_.file, item->line,
                      in(fmt::format("{} del {}", object(*item), words_of(*item)), netns->name));
        writer_.send([&](RequestMessage& message) { remove(message, *item); });
        writer_.undo([&](RequestMessage& message) { add(message, *item); });
      }
    }
  }

  template <class Item>
  void add_items(std::vector<Item> NetworkNamespace::*items, void (*add)(RequestMessage&, const Item&),
                 void (*remove)(RequestMessage&, const Item&)) {
    for (const NetworkNamespace& netns : to_.namespaces) {
      const auto there = staying(find_netns(from_, netns.name), items);
      for (const Item& item : netns.*items) {
        if (!lost(netns, item) && there.contains(identity(item))) continue;
        writer_.begin(Change::Kind::creation, false, netns.name, to_.file, item.line,
                      in(fmt::format("{} {} {}", object(item), verb(item), words_of(item)), netns.name));
        writer_.send([&](RequestMessage& message) { add(message, item); });
        writer_.undo([&](RequestMessage& message) { remove(message, item); });
      }
    }
  }

  static void add_address(RequestMessage& m, const NetworkAddress& a) { begin_address_add(m, a); }
  static void delete_address(RequestMessage& m, const NetworkAddress& a) { begin_address_delete(m, a); }
  static void add_route(RequestMessage& m, const NetworkRoute& r) { begin_route_add(m, r, r.behind != 0); }
  static void delete_route(RequestMessage& m, const NetworkRoute& r) { begin_route_delete(m, r); }
  static void add_neighbour(RequestMessage& m, const NetworkNeighbour& n) { begin_neighbour_add(m, n); }
  static void delete_neighbour(RequestMessage& m, const NetworkNeighbour& n) { begin_neighbour_delete(m, n); }

  void remove_contents() {
    remove_items(&NetworkNamespace::neighbours, add_neighbour, delete_neighbour);
    remove_items(&NetworkNamespace::routes, add_route, delete_route);
    remove_items(&NetworkNamespace::addresses, add_address, delete_address);
  }
  void add_contents() {
    add_items(&NetworkNamespace::addresses, add_address, delete_address);
    add_items(&NetworkNamespace::routes, add_route, delete_route);
    add_items(&NetworkNamespace::neighbours, add_neighbour, delete_neighbour);
  }

  static std::string in(std::string_view words, std::string_view netns) {
    return netns == kDefaultNamespace ? std::string(words) : fmt::format("{} netns {}", words, netns);
  }

  // ------------------------------------------------------------------------------------------ namespaces

  void remove_namespaces() {
    for (auto netns = from_.namespaces.rbegin(); netns != from_.namespaces.rend(); ++netns) {
      if (!gone_netns_.contains(netns->name) || netns->name == kDefaultNamespace) continue;
      change_netns(Change::Kind::removal, from_.file, *netns, protocol::kCmdNetnsDel, protocol::kCmdNetnsAdd);
    }
  }
  void add_namespaces() {
    for (const NetworkNamespace& netns : to_.namespaces)
      if (netns.name != kDefaultNamespace && find_netns(from_, netns.name) == nullptr)
        change_netns(Change::Kind::creation, to_.file, netns, protocol::kCmdNetnsAdd, protocol::kCmdNetnsDel);
  }
  void change_netns(Change::Kind kind, const std::string& file, const NetworkNamespace& netns,
                    protocol::Command command, protocol::Command opposite) {
    writer_.begin(kind, true, std::string(kDefaultNamespace), file, netns.line,
                  fmt::format("netns {} {}", kind == Change::Kind::removal ? "del" : "add", netns.name));
    writer_.send([&](RequestMessage& message) { begin_netns(message, command, netns.name); });
    writer_.undo([&](RequestMessage& message) { begin_netns(message, opposite, netns.name); });
  }

  // ------------------------------------------------------------------------------------------ interfaces

  void put_creation(const PlacedLink& element, const Put& put) const {
    const LinkDescription sent = element.sent(element.link->link);
    if (element.link->bulk())
      put([&](RequestMessage& message) { begin_link_bulk_add(message, sent, element.link->count); });
    else
      put([&](RequestMessage& message) { begin_link_add(message, sent); });
  }
  void put_deletion(const PlacedLink& element, Deletion deletion, const Put& put) const {
    if (element.link->bulk()) return put_names(element, 0, element.link->members(), deletion, put);
    put([&](RequestMessage& message) { begin_link_delete(message, element.link->link.name); });
  }
  Put sending() {
    return [this](const ChangeWriter::Fill& fill) { writer_.send(fill); };
  }
  Put undoing() {
    return [this](const ChangeWriter::Fill& fill) { writer_.undo(fill); };
  }

  static std::string creation_words(const PlacedLink& element) {
    return in(fmt::format("link {}add {}", element.link->bulk() ? "bulk " : "", element.words()),
              element.netns->name);
  }
  static std::string deletion_words(const PlacedLink& element) {
    return in(fmt::format("link {}del {}", element.link->bulk() ? "bulk " : "", element.name_words()),
              element.netns->name);
  }

  bool leaves_first(const PlacedLink& port) const {
    return port.netns->name != kDefaultNamespace && gone_netns_.contains(port.netns->name);
  }

  // Ports are not taken away: they get the settings back that they come with.
  void remove_link(const PlacedLink& element) {
    const PlacedLink* to = new_of(element);
    if (element.link->port()) {
      // Out of a namespace that goes, too: it is made over from there.
      if (to == nullptr || leaves_first(element)) set_port(&element, nullptr);
      return;
    }
    if (anew_.contains(element.key())) {
      // Only for the way back: the other end gets its settings again once the pair is there.
      write_far_settings(element, false, from_.file);
      writer_.begin(Change::Kind::removal, element.link->bulk(), element.netns->name, from_.file,
                    element.link->line, deletion_words(element));
      put_deletion(element, Deletion::change, sending());
      writer_.last().undo_netns = element.parent_netns();
      put_creation(element, undoing());
      return;
    }
    if (to == nullptr || judge(element, *to) != Fate::shrink) return;
    writer_.begin(Change::Kind::removal, true, element.netns->name, from_.file, element.link->line,
                  fmt::format("{}: all behind the first {}", deletion_words(element), to->link->members()));
    put_names(element, to->link->members(), element.link->members(), Deletion::change, sending());
    add_members(element, to->link->members(), element.link->members(), undoing());
    writer_.last().undo_generic = false;
    writer_.last().undo_netns = element.parent_netns();
  }

  // Members that a template gained, one by one: a bulk create begins with the first.
  void add_members(const PlacedLink& element, uint64_t first, uint64_t last, const Put& put) const {
    for (uint64_t i = first; i < last; ++i) {
      LinkDescription member = element.sent(member_of(*element.link, i));
      put([&](RequestMessage& message) { begin_link_add(message, member); });
    }
  }

  void make_link(const PlacedLink& element) {
    const PlacedLink* from = old_of(element);
    if (element.link->port())
      return set_port(from != nullptr && leaves_first(*from) ? nullptr : from, &element);
    if (from == nullptr || anew_.contains(element.key())) {
      writer_.begin(Change::Kind::creation, element.link->bulk(), element.parent_netns(), to_.file,
                    element.link->line, creation_words(element));
      put_creation(element, sending());
      writer_.last().undo_netns = element.netns->name;
      put_deletion(element, Deletion::undo, undoing());
      write_far_settings(element, true, to_.file);
      return;
    }
    const Fate fate = judge(*from, element);
    if (fate == Fate::set) set_link(*from, element);
    if (fate != Fate::grow) return;
    writer_.begin(Change::Kind::creation, false, element.parent_netns(), to_.file, element.link->line,
                  fmt::format("{}: all behind the first {}", creation_words(element), from->link->members()));
    add_members(element, from->link->members(), element.link->members(), sending());
    put_names(element, from->link->members(), element.link->members(), Deletion::undo, undoing());
    writer_.last().undo_generic = true;
    writer_.last().undo_netns = element.netns->name;
  }

  void write_far_settings(const PlacedLink& element, bool comes, const std::string& file) {
    if (!element.link->has_far_settings()) return;
    const LinkDescription plain = settings_of(named_only(element.link->far.name), false, std::nullopt);
    const LinkDescription full = settings_of(element.link->far, false, std::nullopt);
    write_setting(comes ? plain : full, comes ? full : plain, element.far_netns(), element.far_netns(), file,
                  element.link->line, comes ? Change::Kind::setting : Change::Kind::removal);
  }

  void set_link(const PlacedLink& from, const PlacedLink& to) {
    const LinkDescription was = settings_of(from.link->link, false, mtu_of(from_, from));
    const LinkDescription is = settings_of(to.link->link, false, mtu_of(to_, to));
    write_setting(was, is, to.netns->name, to.netns->name, to_.file, to.link->line);
  }

  void set_port(const PlacedLink* from, const PlacedLink* to) {
    const std::string& name = (from != nullptr ? from : to)->link->link.name;
    const std::string was_in(from == nullptr ? kDefaultNamespace : std::string_view(from->netns->name));
    const std::string is_in(to == nullptr ? kDefaultNamespace : std::string_view(to->netns->name));
    write_setting(settings_of(from, name), settings_of(to, name), was_in, is_in,
                  to == nullptr ? from_.file : to_.file, (to == nullptr ? from : to)->link->line);
  }

  void write_setting(const LinkDescription& was, const LinkDescription& is, const std::string& was_in,
                     const std::string& is_in, const std::string& file, int line,
                     Change::Kind kind = Change::Kind::setting) {
    LinkDescription change = settings_beyond(was, is);
    LinkDescription back = settings_beyond(is, was);
    if (was_in != is_in) {
      move_port(was, is, was_in, is_in, file, line);
      // It arrives down, with what it had otherwise; the addresses it used are not there.
      change.up = is.up == true ? is.up : std::nullopt;
      back.up.reset();
      change.unnumbered = is.unnumbered->empty() ? std::nullopt : is.unnumbered;
      back.unnumbered.reset();
    }
    if (!change.has_settings()) return;
    writer_.begin(kind, false, is_in, file, line, in("link set " + is.name + link_words(change), is_in));
    writer_.send([&](RequestMessage& message) { begin_link_set(message, change); });
    if (back.has_settings()) writer_.undo([&](RequestMessage& message) { begin_link_set(message, back); });
  }

  void move_port(const LinkDescription& was, const LinkDescription& is, const std::string& was_in,
                 const std::string& is_in, const std::string& file, int line) {
    writer_.begin(Change::Kind::setting, false, was_in, file, line,
                  in(fmt::format("link set {} netns {}", is.name, is_in), was_in));
    writer_.send([&](RequestMessage& message) {
      LinkDescription move = named_only(is.name);
      move.netns = is_in;
      begin_link_set(message, move);
    });
    writer_.last().undo_netns = is_in;
    writer_.undo([&](RequestMessage& message) {
      LinkDescription move = named_only(is.name);
      move.netns = was_in;
      move.up = was.up;
      if (!was.unnumbered->empty()) move.unnumbered = was.unnumbered;
      begin_link_set(message, move);
    });
  }

  const NetworkConfig& from_;
  const NetworkConfig& to_;
  std::vector<PlacedLink> old_;
  std::vector<PlacedLink> new_;
  std::unordered_map<std::string, size_t> old_by_key_;
  std::unordered_map<std::string, size_t> new_by_key_;
  std::unordered_map<std::string, Loss> losses_;
  std::unordered_set<std::string> anew_;  // keys of elements that go, or go and come again
  std::unordered_set<std::string> gone_netns_;
  ChangeWriter writer_;
};

}  // namespace

std::vector<Change> difference(const NetworkConfig& from, const NetworkConfig& to) {
  return Difference(from, to).changes();
}

std::vector<Change> creations(const NetworkConfig& network) {
  NetworkConfig nothing;
  nothing.file = network.file;
  nothing.port_mtus = network.port_mtus;
  return difference(nothing, network);
}

}  // namespace mayfly
