// SPDX-License-Identifier: BSD-3-Clause
#include "iface/interface_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/poison.hpp"
#include "iface/retired_interface.hpp"

namespace mayfly {
namespace {

// 2^15 interfaces: 4 MiB of Interface, 4 MiB of InterfaceRecord, 2 MiB of counters a worker.
constexpr uint32_t kInterfacesPerChunk = 32'768;
constexpr size_t kMostAliasBytes = 255;  // IFALIASZ - 1

bool is_control(char c) noexcept {
  return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

uint32_t hash_name(const Netns* netns, const char (&name)[kInterfaceNameBytes]) noexcept {
  uint64_t words[2];
  std::memcpy(words, name, sizeof words);
  return static_cast<uint32_t>(mix_hash(words[0] ^ mix_hash(words[1] ^ reinterpret_cast<uintptr_t>(netns))));
}

}  // namespace

Status check_interface_name(std::string_view name) {
  if (name.empty() || name.size() >= kInterfaceNameBytes)
    return fail(EINVAL, "name '{}': {} characters, accepted 1..15", name, name.size());
  if (name == "." || name == "..") return fail(EINVAL, "name '{}': not accepted as an interface name", name);
  for (const char c : name)
    if (c == '/' || c == ':' || c == ' ' || is_control(c))
      return fail(EINVAL, "name '{}': '/', ':', white space and control characters are not accepted", name);
  return {};
}

Status check_interface_alias(std::string_view alias) {
  if (alias.size() > kMostAliasBytes)
    return fail(EINVAL, "alias: {} characters, accepted 0..{}", alias.size(), kMostAliasBytes);
  if (std::ranges::any_of(alias, is_control))
    return fail(EINVAL, "alias: control characters are not accepted");
  return {};
}

InterfaceTable::InterfaceTable(uint32_t limit, BlockPools& blocks, Neighbours& neighbours)
    : slots_(limit + 1, kInterfacesPerChunk),
      blocks_(blocks),
      neighbours_(neighbours),
      names_(limit, NameTraits{this}) {}

InterfaceTable::~InterfaceTable() = default;

Result<std::unique_ptr<InterfaceTable>> InterfaceTable::create(uint32_t limit, uint32_t workers,
                                                               BlockPools& blocks, Neighbours& neighbours) {
  std::unique_ptr<InterfaceTable> table(new InterfaceTable(limit, blocks, neighbours));
  const auto attach = [&](auto*& array) -> Status {
    auto memory = table->slots_.attach(sizeof(*array));
    if (!memory) return std::unexpected(memory.error());
    array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(*memory);
    return {};
  };
  if (auto done = attach(table->interfaces_); !done) return std::unexpected(done.error());
  if (auto done = attach(table->records_); !done) return std::unexpected(done.error());
  if (auto done = attach(table->states_); !done) return std::unexpected(done.error());
  table->counters_.resize(workers);
  table->references_.resize(workers);
  for (uint32_t worker = 0; worker < workers; ++worker) {
    if (auto done = attach(table->counters_[worker]); !done) return std::unexpected(done.error());
    if (auto done = attach(table->references_[worker]); !done) return std::unexpected(done.error());
  }
  table->slots_.claim(kNoInterface);
  retired_interfaces().bind(*table);
  return table;
}

uint32_t InterfaceTable::interface_bytes() const noexcept {
  return static_cast<uint32_t>(sizeof(Interface) + sizeof(InterfaceRecord) + sizeof(InterfaceState) +
                               sizeof(uint32_t) +
                               workers() * (sizeof(InterfaceCounters) + sizeof(References)));
}

Status InterfaceTable::check_spec(const InterfaceSpec& spec) const {
  if (auto valid = check_interface_name(spec.name); !valid) return valid;
  const KindDescription& kind = interface_kinds()[spec.kind]->description();
  if (find_any(spec.netns, spec.name) != kNoInterface)
    return fail(EEXIST, "name '{}': an interface of this name exists", spec.name);
  if (kind.needs_parent) {
    if (spec.parent == kNoInterface) return fail(EINVAL, "link: kind {} needs a parent interface", kind.name);
    if (!exists(spec.parent)) return fail(ENODEV, "link: the parent interface does not exist");
    if (states_[spec.parent] == InterfaceState::marked)
      return fail(EBUSY, "link '{}': the parent is being deleted", records_[spec.parent].name);
  } else if (spec.parent != kNoInterface) {
    return fail(EOPNOTSUPP, "link '{}': kind {} has no parent", records_[spec.parent].name, kind.name);
  }
  if (spec.mtu != 0 && spec.mtu < kLeastMtu)
    return fail(EINVAL, "mtu {}: accepted {}..65535", spec.mtu, kLeastMtu);
  if (spec.mtu > 65'535) return fail(EINVAL, "mtu {}: accepted {}..65535", spec.mtu, kLeastMtu);
  if (spec.mac && (is_multicast(*spec.mac) || *spec.mac == 0))
    return fail(EADDRNOTAVAIL, "address {}: accepted unicast MAC addresses", format_mac(*spec.mac));
  return check_interface_alias(spec.alias);
}

Result<uint32_t> InterfaceTable::claim(const InterfaceSpec& spec) {
  if (auto valid = check_spec(spec); !valid) return std::unexpected(valid.error());
  uint32_t ifindex = spec.ifindex;
  if (ifindex == 0) {
    ifindex = slots_.allocate();
    if (ifindex == kNoSlot) return fail(ENOBUFS, "interfaces: the limit of {} is reached", limit());
  } else if (ifindex > limit()) {
    return fail(ERANGE, "ifindex {}: accepted 1..{}", ifindex, limit());
  } else if (!slots_.claim(ifindex)) {
    return exists(ifindex) ? fail(EEXIST, "ifindex {}: in use by '{}'", ifindex, records_[ifindex].name)
                           : fail(EBUSY, "ifindex {}: its last owner is still in teardown", ifindex);
  }
  initialise(ifindex, spec);
  if (auto claimed =
          interface_kinds()[spec.kind]->claim(*this, spec, interfaces_[ifindex], records_[ifindex]);
      !claimed) {
    // No worker can have met this number: the key was not entered anywhere.
    states_[ifindex] = InterfaceState::free;
    slots_.free(ifindex);
    return std::unexpected(claimed.error());
  }
  if (!spec.alias.empty()) records_[ifindex].alias = strndup(spec.alias.data(), spec.alias.size());
  names_.insert(ifindex);
  enter_group(ifindex);
  enter_netns(ifindex);
  enter_parent(ifindex);
  enter_mac(ifindex);
  return ifindex;
}

void InterfaceTable::initialise(uint32_t ifindex, const InterfaceSpec& spec) noexcept {
  Interface& interface = interfaces_[ifindex];
  InterfaceRecord& record = records_[ifindex];
  unpoison_memory(&interface, sizeof interface);
  unpoison_memory(&record, sizeof record);
  new (&interface) Interface{};
  new (&record) InterfaceRecord{};
  interface.ifindex = ifindex;
  interface.id = next_id_++;
  interface.netns.publish(spec.netns);
  interface.kind = spec.kind;
  interface.port = kNoPort;
  if (spec.unnumbered != kNoInterface) set_unnumbered(ifindex, spec.unnumbered);
  interface.flags.store(spec.settings & Interface::kSettings, std::memory_order_relaxed);
  record.retired.kind = retired_interfaces().id();
  record.retired.bytes = interface_bytes();
  std::memcpy(record.name, spec.name.data(), spec.name.size());
  record.name_hash = hash_name(spec.netns, record.name);
  record.created_ns = realtime_ns();
  record.group = spec.group;
  record.parent = spec.parent;
  states_[ifindex] = InterfaceState::claimed;
  record.admin_up = spec.up;
  for (uint32_t worker = 0; worker < workers(); ++worker) {
    new (&counters_[worker][ifindex]) InterfaceCounters{};
    References& references = references_[worker][ifindex];
    MAYFLY_DEBUG_CHECK(references.load(std::memory_order_relaxed) == 0,
                       "a number was given out while a worker still refers to its last owner");
    // Touched here, so that the worker's first hold() meets no page fault.
    references.store(0, std::memory_order_relaxed);
  }
}

void InterfaceTable::commit(uint32_t ifindex) noexcept {
  commit_one(ifindex);
  if (const uint32_t other = peer(ifindex);
      other != kNoInterface && states_[other] == InterfaceState::claimed)
    commit_one(other);
}

void InterfaceTable::commit_one(uint32_t ifindex) noexcept {
  states_[ifindex] = InterfaceState::live;
  ++live_;
  ++changes_;
  update_up_flag(ifindex);
}

void InterfaceTable::abandon(uint32_t ifindex, RetireList& list) noexcept {
  MAYFLY_CHECK(states_[ifindex] == InterfaceState::claimed, "only what is claimed can be abandoned");
  const uint32_t other = peer(ifindex);
  ++live_;
  retire(ifindex, list);
  if (other != kNoInterface) abandon(other, list);
}

void InterfaceTable::retire(uint32_t ifindex, RetireList& list) noexcept {
  Interface& interface = interfaces_[ifindex];
  InterfaceRecord& record = records_[ifindex];
  MAYFLY_DEBUG_CHECK(record.first_child == kNoInterface, "an interface was retired before its children");
  MAYFLY_DEBUG_CHECK(record.routes == 0, "an interface was retired before its routes");
  interface.flags.store(0, std::memory_order_release);
  interface_kinds()[interface.kind]->unlink(*this, interface, list);
  unlink_name_and_lists(ifindex);
  states_[ifindex] = InterfaceState::retired;
  --live_;
  ++changes_;
  list.retire(record.retired);
}

void InterfaceTable::take_back(uint32_t ifindex) noexcept {
  states_[ifindex] = InterfaceState::free;
  slots_.free(ifindex);
}

uint32_t InterfaceTable::find_any(const Netns* netns, std::string_view name) const noexcept {
  if (name.empty() || name.size() >= kInterfaceNameBytes) return kNoInterface;
  char padded[kInterfaceNameBytes] = {};
  std::memcpy(padded, name.data(), name.size());
  const uint32_t hash = hash_name(netns, padded);
  const uint32_t ifindex = names_.find(hash, [&](uint32_t candidate) {
    return records_[candidate].name_hash == hash &&
           std::memcmp(records_[candidate].name, padded, sizeof padded) == 0 &&
           interfaces_[candidate].netns.own() == netns;
  });
  return ifindex == kNoSlot ? kNoInterface : ifindex;
}

uint32_t InterfaceTable::find(const Netns* netns, std::string_view name) const noexcept {
  const uint32_t ifindex = find_any(netns, name);
  return ifindex != kNoInterface && exists(ifindex) ? ifindex : kNoInterface;
}

bool InterfaceTable::exists(uint32_t ifindex) const noexcept {
  if (ifindex == kNoInterface || !slots_.used(ifindex)) return false;
  const InterfaceState state = states_[ifindex];
  return state == InterfaceState::live || state == InterfaceState::marked;
}

uint32_t InterfaceTable::next(uint32_t from) const noexcept {
  for (uint32_t ifindex = slots_.next_used(std::max(from, 1u)); ifindex != kNoSlot;
       ifindex = slots_.next_used(ifindex + 1))
    if (exists(ifindex)) return ifindex;
  return kNoInterface;
}

Status InterfaceTable::rename(uint32_t ifindex, std::string_view name) {
  if (auto valid = check_interface_name(name); !valid) return valid;
  const Netns* netns = interfaces_[ifindex].netns.own();
  if (const uint32_t owner = find_any(netns, name); owner != kNoInterface) {
    if (owner == ifindex) return {};
    return fail(EEXIST, "name '{}': an interface of this name exists", name);
  }
  ++changes_;
  names_.erase(ifindex);
  enter_name(ifindex, name);
  return {};
}

void InterfaceTable::enter_name(uint32_t ifindex, std::string_view name) noexcept {
  InterfaceRecord& record = records_[ifindex];
  // The name may be a view of the record itself.
  char padded[kInterfaceNameBytes] = {};
  std::memcpy(padded, name.data(), name.size());
  std::memcpy(record.name, padded, sizeof padded);
  record.name_hash = hash_name(interfaces_[ifindex].netns.own(), record.name);
  names_.insert(ifindex);
}

void InterfaceTable::suspend(uint32_t ifindex, bool on) noexcept {
  records_[ifindex].suspended = on;
  update_up_flag(ifindex);
}

void InterfaceTable::move(uint32_t ifindex, Netns* to, std::string_view name) noexcept {
  MAYFLY_DEBUG_CHECK(records_[ifindex].suspended, "an interface was moved under the eyes of workers");
  MAYFLY_DEBUG_CHECK(records_[ifindex].routes == 0, "an interface was moved before its routes");
  ++changes_;
  names_.erase(ifindex);
  leave_netns(ifindex);
  interfaces_[ifindex].netns.publish(to);
  enter_netns(ifindex);
  enter_name(ifindex, name);
}

bool InterfaceTable::unreferenced(uint32_t ifindex) const noexcept {
  for (const References* of_worker : references_)
    if (of_worker[ifindex].load(std::memory_order_acquire) != 0) return false;
  return true;
}

Status InterfaceTable::set_alias(uint32_t ifindex, std::string_view alias) {
  if (auto valid = check_interface_alias(alias); !valid) return valid;
  InterfaceRecord& record = records_[ifindex];
  std::free(record.alias);
  record.alias = alias.empty() ? nullptr : strndup(alias.data(), alias.size());
  return {};
}

Status InterfaceTable::set_mtu(uint32_t ifindex, uint32_t mtu) {
  const uint32_t limit = most_mtu(ifindex);
  if (mtu < kLeastMtu || mtu > limit) return fail(EINVAL, "mtu {}: accepted {}..{}", mtu, kLeastMtu, limit);
  interfaces_[ifindex].mtu.store(mtu, std::memory_order_relaxed);
  return {};
}

Status InterfaceTable::set_mac(uint32_t ifindex, Mac mac) {
  if (is_multicast(mac) || mac == 0)
    return fail(EADDRNOTAVAIL, "address {}: accepted unicast MAC addresses", format_mac(mac));
  leave_mac(ifindex);
  interfaces_[ifindex].mac.store(mac, std::memory_order_relaxed);
  enter_mac(ifindex);
  return {};
}

InterfaceSums InterfaceTable::sums(uint32_t ifindex) const noexcept {
  InterfaceSums sums;
  for (const InterfaceCounters* of_worker : counters_) {
    const InterfaceCounters& counters = of_worker[ifindex];
    sums.rx_packets += counters.rx_packets.load(std::memory_order_relaxed);
    sums.rx_bytes += counters.rx_bytes.load(std::memory_order_relaxed);
    sums.tx_packets += counters.tx_packets.load(std::memory_order_relaxed);
    sums.tx_bytes += counters.tx_bytes.load(std::memory_order_relaxed);
    sums.rx_dropped += counters.rx_dropped.load(std::memory_order_relaxed);
    sums.tx_dropped += counters.tx_dropped.load(std::memory_order_relaxed);
    sums.last_rx_ns = std::max(sums.last_rx_ns, counters.last_rx_ns.load(std::memory_order_relaxed));
  }
  return sums;
}

}  // namespace mayfly
