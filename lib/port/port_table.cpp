// SPDX-License-Identifier: BSD-3-Clause
#include "port/port_table.hpp"

#include <utility>

#include "base/log.hpp"
#include "port/devargs.hpp"
#include "port/queue_assignment.hpp"

namespace mayfly {
namespace {

// Travels the teardown pipeline in place of the port: when it comes back, no worker polls the device.
struct PortRetired {
  Retired retired;
  PortTable* table;
  uint32_t slot;
  std::string name;
};

class PortRetiredKind final : public RetiredKind {
 public:
  PortRetiredKind() : RetiredKind("port") {}
  void dismantle(Retired&, Returns&) const override {}
  void reclaim(Retired& object, Returns& returns) const override {
    auto* port = reinterpret_cast<PortRetired*>(&object);
    returns.add(*port->table, port->slot);
    delete port;
  }
  std::string describe(const Retired& object) const override {
    return fmt::format("port {}", reinterpret_cast<const PortRetired*>(&object)->name);
  }
};

const PortRetiredKind kPortRetired;

}  // namespace

std::string_view describe(PortState state) noexcept {
  switch (state) {
    case PortState::starting:
      return "starting";
    case PortState::running:
      return "running";
    case PortState::stopping:
      return "stopping";
    case PortState::failed:
      return "failed";
    case PortState::gone:
      return "gone";
  }
  return "?";
}

PortTable::PortTable(PortThread& thread, InterfaceTable& interfaces, Netns* netns)
    : thread_(thread),
      interfaces_(interfaces),
      netns_(netns),
      queues_(std::make_unique<PublishedQueueList[]>(interfaces.workers())) {}

Result<std::unique_ptr<PortTable>> PortTable::create(PortThread& thread, InterfaceTable& interfaces,
                                                     Netns* netns) {
  std::unique_ptr<PortTable> table(new PortTable(thread, interfaces, netns));
  std::vector<QueueList*> lists;
  if (!table->allocate_lists(lists)) {
    table->shut_down_ = true;
    return fail(ENOBUFS, "ports: no block for the queue lists");
  }
  RetireList nothing_before;
  table->publish(lists, nothing_before);
  return table;
}

PortTable::~PortTable() {
  shutdown();
}

Status PortTable::check_settings(const PortSettings& settings) const {
  if (auto valid = check_interface_name(settings.name); !valid)
    return fail(valid.error().code, "port {}", valid.error().text);
  if (const Port* other = find(settings.name); other != nullptr && other->state != PortState::failed)
    return fail(EEXIST, "port '{}' exists already ({})", settings.name, describe(other->state));
  if (interfaces_.find(netns_, settings.name) != kNoInterface)
    return fail(EEXIST, "port '{}': an interface of this name exists", settings.name);
  const std::string device = Devargs::parse(settings.devargs).device;
  if (device.empty())
    return fail(EINVAL, "port '{}': devargs are missing: {}", settings.name, list_known_drivers());
  for (const auto& [slot, entry] : entries_)
    if (entry.state != PortState::failed && Devargs::parse(entry.settings.devargs).device == device)
      return fail(EEXIST, "port '{}': the device {} is port '{}' already", settings.name, device,
                  entry.settings.name);
  if (settings.rx_queues == 0 || settings.rx_queues > kMostRxQueues)
    return fail(EINVAL, "port '{}': rx_queues {}: accepted 1..{}", settings.name, settings.rx_queues,
                kMostRxQueues);
  const auto workers = assign_queues(settings.rx_queues, worker_loads());
  auto loads = worker_loads();
  for (const uint32_t worker : workers)
    if (++loads[worker] > kMostRxQueues)
      return fail(ENOSPC, "port '{}': worker {} would have to poll more than {} receive queues",
                  settings.name, worker, kMostRxQueues);
  return {};
}

Status PortTable::begin_add(PortSettings settings, uint64_t cookie, bool keep_failed) {
  if (auto valid = check_settings(settings); !valid) return valid;
  if (const uint32_t failed = slot_of(settings.name); failed != kNoSlot) entries_.erase(failed);
  settings.tx_queues = worker_count();
  const uint32_t slot = next_slot_++;
  Entry& entry = entries_[slot];
  entry.settings = settings;
  entry.keep_failed = keep_failed;
  entry.workers = assign_queues(settings.rx_queues, worker_loads());
  PortRequest request;
  request.type = PortRequest::Type::add;
  request.slot = slot;
  request.cookie = cookie;
  request.settings = std::move(settings);
  thread_.post(std::move(request));
  return {};
}

Status PortTable::begin_remove(std::string_view name, RetireList& list, uint64_t cookie) {
  const uint32_t slot = slot_of(name);
  if (slot == kNoSlot) return fail(ENODEV, "port '{}' does not exist", name);
  Entry& entry = entries_[slot];
  if (entry.state == PortState::starting || entry.state == PortState::stopping)
    return fail(EBUSY, "port '{}' is still {}", name, describe(entry.state));
  entry.remove_cookie = cookie;
  if (entry.state == PortState::failed) {
    // There is no device: the port thread only sends the answer, in its turn.
    entry.state = PortState::stopping;
    take_back(slot);
    return {};
  }
  if (has_interface(entry)) return fail(EBUSY, "port '{}' still has its interface: delete that first", name);
  if (entry.state == PortState::running) publish_without(entry, list);
  entry.state = PortState::stopping;
  auto* retired =
      new PortRetired{{{}, sizeof(PortRetired), kPortRetired.id(), 0}, this, slot, std::string(name)};
  list.retire(retired->retired);
  return {};
}

void PortTable::take_back(uint32_t slot) noexcept {
  if (shut_down_) return;
  PortRequest request;
  request.type = PortRequest::Type::remove;
  request.slot = slot;
  request.cookie = entries_[slot].remove_cookie;
  thread_.post(std::move(request));
}

Result<uint32_t> PortTable::running_slot(std::string_view name) const {
  const uint32_t slot = slot_of(name);
  if (slot == kNoSlot) return fail(ENODEV, "port '{}' does not exist", name);
  const PortState state = entries_.at(slot).state;
  if (state != PortState::running) return fail(EBUSY, "port '{}' is {}, not running", name, describe(state));
  return slot;
}

PortRequest PortTable::request_of(PortRequest::Type type, uint32_t slot, uint64_t cookie) const {
  PortRequest request;
  request.type = type;
  request.slot = slot;
  request.cookie = cookie;
  return request;
}

Status PortTable::begin_set_mtu(std::string_view name, uint32_t mtu, uint64_t cookie) {
  const auto slot = running_slot(name);
  if (!slot) return std::unexpected(slot.error());
  PortRequest request = request_of(PortRequest::Type::set_mtu, *slot, cookie);
  request.mtu = mtu;
  thread_.post(std::move(request));
  return {};
}

Status PortTable::begin_set_mac(std::string_view name, Mac mac, uint64_t cookie) {
  const auto slot = running_slot(name);
  if (!slot) return std::unexpected(slot.error());
  PortRequest request = request_of(PortRequest::Type::set_mac, *slot, cookie);
  request.mac = mac;
  thread_.post(std::move(request));
  return {};
}

Status PortTable::begin_set_promiscuous(std::string_view name, bool on, uint64_t cookie) {
  const auto slot = running_slot(name);
  if (!slot) return std::unexpected(slot.error());
  PortRequest request = request_of(PortRequest::Type::set_promiscuous, *slot, cookie);
  request.promiscuous = on;
  request.filter = filter_of(entries_[*slot]);
  thread_.post(std::move(request));
  return {};
}

Status PortTable::begin_read_xstats(std::string_view name, uint64_t cookie) {
  const auto slot = running_slot(name);
  if (!slot) return std::unexpected(slot.error());
  thread_.post(request_of(PortRequest::Type::xstats, *slot, cookie));
  return {};
}

uint64_t PortTable::expect_answer() {
  awaited_[next_cookie_] = std::nullopt;
  return next_cookie_++;
}

std::optional<PortTable::Answer> PortTable::answer(uint64_t cookie) {
  const auto found = awaited_.find(cookie);
  if (found == awaited_.end() || !found->second) return std::nullopt;
  Answer answer = std::move(*found->second);
  awaited_.erase(found);
  return answer;
}

MacFilterRequest PortTable::filter_of(Entry& entry) {
  const OwnMacs& own = interfaces_.port_demux(entry.info.port).own_macs;
  entry.filter_changes = own.changes;
  MacFilterRequest filter;
  filter.count = own.count.size();
  for (const auto& [mac, interfaces] : own.count) {
    if (filter.macs.size() == kMostMacFilters) break;
    filter.macs.push_back(mac);
  }
  return filter;
}

void PortTable::sync_filters() {
  for (auto& [slot, entry] : entries_) {
    if (entry.state != PortState::running || entry.info.promiscuous_wanted || entry.filter_in_flight ||
        entry.filter_changes == interfaces_.port_demux(entry.info.port).own_macs.changes)
      continue;
    PortRequest request = request_of(PortRequest::Type::set_filter, slot, 0);
    request.filter = filter_of(entry);
    entry.filter_in_flight = true;
    thread_.post(std::move(request));
  }
}

void PortTable::refresh() {
  if (refreshes_pending_ != 0) return;
  for (const auto& [slot, entry] : entries_) {
    if (entry.state != PortState::running) continue;
    PortRequest request;
    request.type = PortRequest::Type::refresh;
    request.slot = slot;
    thread_.post(std::move(request));
    ++refreshes_pending_;
  }
}

void PortTable::poll_completions(RetireList& list, const std::function<void(const PortEvent&)>& visit) {
  PortReply reply;
  while (thread_.take(&reply)) {
    const auto found = entries_.find(reply.slot);
    if (found == entries_.end()) continue;  // a failed port that was replaced before its device was undone
    PortEvent event{PortEvent::Type::changed, found->second.settings.name, reply.cookie, {}};
    switch (reply.type) {
      case PortRequest::Type::add:
        finish_add(reply.slot, reply, list, event);
        break;
      case PortRequest::Type::remove:
        // The device of a failed port: finish_add told already.
        if (std::exchange(found->second.undoing, false)) continue;
        entries_.erase(found);
        event.type = PortEvent::Type::removed;
        log(LogLevel::info, "port", "{}: closed", event.name);
        break;
      case PortRequest::Type::refresh:
        if (!finish_refresh(reply.slot, reply, list, event)) continue;
        break;
      case PortRequest::Type::set_filter:
        found->second.filter_in_flight = false;
        finish_change(found->second, reply, event);
        continue;
      default:
        finish_change(found->second, reply, event);
        break;
    }
    const bool forgotten = event.type == PortEvent::Type::failed && !found->second.keep_failed;
    if (forgotten) entries_.erase(found);
    if (const auto awaited = awaited_.find(event.cookie); awaited != awaited_.end())
      awaited->second = Answer{event.result, std::move(reply.xstats)};
    visit(event);
  }
}

void PortTable::finish_add(uint32_t slot, PortReply& reply, RetireList& list, PortEvent& event) {
  Entry& entry = entries_[slot];
  event.result = std::move(reply.result);
  if (event.result) {
    entry.info = std::move(reply.info);
    entry.counters = reply.counters;
    event.result = go_live(entry, list);
    if (!event.result) {
      entry.info = {};
      PortRequest undo;
      undo.type = PortRequest::Type::remove;
      undo.slot = slot;
      entry.undoing = true;
      thread_.post(std::move(undo));
    }
  }
  event.type = event.result ? PortEvent::Type::added : PortEvent::Type::failed;
  if (!event.result) {
    entry.state = PortState::failed;
    entry.error = event.result.error();
    entry.workers.clear();
    log(LogLevel::error, "port", "{}", entry.error.text);
    return;
  }
  log(LogLevel::info, "port", "{}: {} ({}), {} rx and {} tx queues, mtu {}, {}", event.name,
      entry.info.device, entry.info.driver, entry.info.rx_queues, entry.info.tx_queues, entry.info.mtu,
      format_mac(entry.info.mac));
  for (const std::string& note : entry.info.notes) log(LogLevel::info, "port", "{}: {}", event.name, note);
  for (const std::string& warning : entry.info.warnings)
    log(LogLevel::warning, "port", "{}: {}", event.name, warning);
}

Status PortTable::go_live(Entry& entry, RetireList& list) {
  if (entry.info.port >= kMostPorts)
    return fail(ENOSPC, "{}: device number {}: accepted 0..{}", entry.settings.name, entry.info.port,
                kMostPorts - 1);
  std::vector<QueueList*> lists;
  if (!allocate_lists(lists) || !allocate_lists(entry.spares)) {
    free_lists(lists);
    return fail(ENOBUFS, "{}: no block for the queue lists", entry.settings.name);
  }
  if (auto claimed = claim_interface(entry); !claimed) {
    free_lists(lists);
    free_lists(entry.spares);
    return claimed;
  }
  entry.state = PortState::running;
  follow_frames(entry);
  publish(lists, list);
  return {};
}

Status PortTable::claim_interface(Entry& entry) {
  InterfaceSpec spec;
  spec.name = entry.settings.name;
  spec.kind = kPortKind;
  spec.netns = netns_;
  spec.mtu = entry.info.mtu;
  spec.mac = entry.info.mac;
  spec.up = true;
  spec.port = entry.info.port;
  const auto claimed = interfaces_.claim(spec);
  if (!claimed)
    return fail(claimed.error().code, "{}: its interface: {}", entry.settings.name, claimed.error().text);
  entry.ifindex = *claimed;
  entry.interface_id = interfaces_.interface(*claimed).id;
  interfaces_.commit(*claimed);
  return {};
}

void PortTable::finish_change(Entry& entry, PortReply& reply, PortEvent& event) {
  event.result = std::move(reply.result);
  if (!event.result) return;
  if (entry.state == PortState::gone) return;
  entry.info = std::move(reply.info);
  entry.counters = reply.counters;
  if (entry.state == PortState::running) event.result = follow_device(entry, reply.type);
}

// The interface of a port takes over what was changed of its device.
Status PortTable::follow_device(const Entry& entry, PortRequest::Type change) {
  if (!has_interface(entry)) return {};
  if (change == PortRequest::Type::set_mac) return interfaces_.set_mac(entry.ifindex, entry.info.mac);
  if (change != PortRequest::Type::set_mtu) return {};
  interfaces_.record(entry.ifindex).mtu_limit = entry.info.mtu;
  follow_frames(entry);
  return interfaces_.set_mtu(entry.ifindex, entry.info.mtu);
}

void PortTable::follow_frames(const Entry& entry) noexcept {
  if (!has_interface(entry)) return;
  const PortInfo& info = entry.info;
  interfaces_.set_carrier(entry.ifindex, info.link_up);
  interfaces_.set_tag_losses(entry.ifindex, info.mtu - info.mtu_by_tags[1], info.mtu - info.mtu_by_tags[2]);
}

// Whether the link went up or down, or the device away.
bool PortTable::finish_refresh(uint32_t slot, PortReply& reply, RetireList& list, PortEvent& event) {
  --refreshes_pending_;
  Entry& entry = entries_[slot];
  if (!reply.result || entry.state == PortState::gone) return false;
  const bool changed = entry.info.link_up != reply.info.link_up;
  entry.info = std::move(reply.info);
  entry.counters = reply.counters;
  if (entry.state != PortState::running) return false;
  if (entry.info.gone) {
    become_gone(entry, list);
    event.type = PortEvent::Type::gone;
    return true;
  }
  if (!changed) return false;
  event.type = PortEvent::Type::link_changed;
  if (has_interface(entry)) interfaces_.set_carrier(entry.ifindex, entry.info.link_up);
  log(LogLevel::info, "port", "port {}: link {}", entry.settings.name, entry.info.link_up ? "up" : "down");
  return true;
}

void PortTable::become_gone(Entry& entry, RetireList& list) {
  publish_without(entry, list);
  entry.state = PortState::gone;
  entry.error = {ENODEV, entry.info.gone_reason};
  if (has_interface(entry)) interfaces_.set_carrier(entry.ifindex, false);
  log(LogLevel::error, "port", "port {}: gone: {}; mayfly port del {} cleans up", entry.settings.name,
      entry.error.text, entry.settings.name);
}

// The lists put aside at its start take its queues away.
void PortTable::publish_without(Entry& entry, RetireList& list) noexcept {
  entry.state = PortState::stopping;
  publish(entry.spares, list);
}

uint32_t PortTable::slot_of(std::string_view name) const noexcept {
  for (const auto& [slot, entry] : entries_)
    if (entry.settings.name == name) return slot;
  return kNoSlot;
}

const Port* PortTable::find(std::string_view name) const noexcept {
  const uint32_t slot = slot_of(name);
  return slot == kNoSlot ? nullptr : &entries_.at(slot);
}

const Port* PortTable::find_ethdev(uint16_t port) const noexcept {
  for (const auto& [slot, entry] : entries_)
    if (entry.info.port == port && port != kNoPort) return &entry;
  return nullptr;
}

std::vector<const Port*> PortTable::all() const {
  std::vector<const Port*> ports;
  for (const auto& [slot, entry] : entries_) ports.push_back(&entry);
  return ports;
}

std::vector<uint32_t> PortTable::worker_loads() const {
  std::vector<uint32_t> loads(worker_count());
  for (const auto& [slot, entry] : entries_)
    if (entry.state == PortState::running || entry.state == PortState::starting)
      for (const uint32_t worker : entry.workers) ++loads[worker];
  return loads;
}

bool PortTable::allocate_lists(std::vector<QueueList*>& lists) {
  while (lists.size() < worker_count()) {
    auto* list = interfaces_.blocks().allocate<QueueList>();
    if (list == nullptr) {
      free_lists(lists);
      return false;
    }
    lists.push_back(list);
  }
  return true;
}

void PortTable::free_lists(std::vector<QueueList*>& lists) noexcept {
  for (QueueList* list : lists) interfaces_.blocks().free_unpublished(list->retired);
  lists.clear();
}

void PortTable::publish(std::vector<QueueList*>& lists, RetireList& list) noexcept {
  for (uint32_t worker = 0; worker < worker_count(); ++worker) {
    fill(*lists[worker], worker);
    QueueList* before = queues_[worker].own();
    queues_[worker].publish(lists[worker]);
    if (before != nullptr) interfaces_.blocks().retire(before->retired, list);
  }
  lists.clear();
}

void PortTable::fill(QueueList& list, uint32_t worker) const noexcept {
  list.rx_count = 0;
  list.tx.fill({});
  for (const auto& [slot, entry] : entries_) {
    if (entry.state != PortState::running) continue;
    for (uint32_t queue = 0; queue < entry.workers.size(); ++queue)
      if (entry.workers[queue] == worker)
        list.rx[list.rx_count++] = {entry.info.port, static_cast<uint16_t>(queue), entry.ifindex};
    list.tx[entry.info.port] = {static_cast<uint16_t>(worker), 0, entry.ifindex};
  }
}

void PortTable::shutdown() {
  if (shut_down_) return;
  shut_down_ = true;
  for (uint32_t worker = 0; worker < worker_count(); ++worker) {
    QueueList* last = queues_[worker].own();
    queues_[worker].publish(nullptr);
    interfaces_.blocks().free_unpublished(last->retired);
  }
  for (auto& [slot, entry] : entries_) free_lists(entry.spares);
  thread_.stop();
  entries_.clear();
}

}  // namespace mayfly
