// SPDX-License-Identifier: BSD-3-Clause
#include "neigh/neighbours.hpp"

#include <sys/random.h>

#include <algorithm>
#include <new>

#include "base/check.hpp"

namespace mayfly {

const NeighbourHashSeed kNeighbourHashSeed = [] {
  NeighbourHashSeed seed{};
  MAYFLY_CHECK(getrandom(&seed, sizeof(seed), 0) == sizeof(seed), "the system has no random numbers");
  // It multiplies all of IPv4.
  seed.high |= 1;
  return seed;
}();

namespace {

constexpr uint32_t kSlotBytes = sizeof(NeighbourTable::Slot);
constexpr uint32_t kMostSlots = (BlockPools::kMostBytes - sizeof(NeighbourTable)) / kSlotBytes;

// One slot at least stays empty, where every search ends.
constexpr uint32_t most_filled(uint32_t capacity) {
  return capacity - std::max(1U, capacity / 4);
}

// The fewest slots for so many neighbours and an eighth more.
constexpr uint32_t slots_for(uint32_t count) {
  const uint32_t filled = count + count / 8;
  return filled + std::max(1U, (filled + 2) / 3);
}
static_assert(most_filled(slots_for(1)) == 1 && slots_for(1) == 2 && slots_for(2) <= 4 && slots_for(3) == 4);
static_assert(most_filled(slots_for(65'536)) >= 65'536);
static_assert(slots_for(Neighbours::kMostInterfaceLimit) <= kMostSlots);

// Neighbours that are looked at to find one that makes room.
constexpr uint32_t kMostLooks = 32;

constexpr Ipv4 kFirstMulticast = 0xe0000000;
constexpr Ipv6 kLoopback = {0, 1};

bool is_unicast(IpAddress address) {
  if (address.is_v4()) return address.v4() != 0 && address.v4() < kFirstMulticast;
  return !address.none() && address.v6() != kLoopback && !is_multicast(address.v6());
}
bool is_station(Mac mac) {
  return mac != 0 && !is_multicast(mac);
}

uint32_t to_ms(uint64_t ns) {
  return static_cast<uint32_t>(ns / kNsPerMs);
}

// The slot of a neighbour, or where it would go: a tombstone it may replace, otherwise the empty slot at the
// end.
NeighbourTable::Slot& slot_for(NeighbourTable& table, IpAddress address) {
  NeighbourTable::Slot* vacant = nullptr;
  for (uint32_t slot = table.home(neighbour_hash(address));;) {
    NeighbourTable::Slot& here = table.slots()[slot];
    const Neighbour* neighbour = here.load(std::memory_order_relaxed);
    if (neighbour == nullptr) return vacant != nullptr ? *vacant : here;
    if (neighbour == NeighbourTable::tombstone()) {
      if (vacant == nullptr) vacant = &here;
    } else if (neighbour->address == address) {
      return here;
    }
    if (++slot == table.capacity) slot = 0;
  }
}

// At the end of a run of slots nothing lies behind: the slot and the tombstones before it become empty again.
void vacate(NeighbourTable& table, NeighbourTable::Slot& gone) {
  auto slot = static_cast<uint32_t>(&gone - table.slots());
  const auto after = [&](uint32_t here) { return here + 1 == table.capacity ? 0 : here + 1; };
  gone.store(NeighbourTable::tombstone(), std::memory_order_release);
  if (table.slots()[after(slot)].load(std::memory_order_relaxed) != nullptr) return;
  while (table.slots()[slot].load(std::memory_order_relaxed) == NeighbourTable::tombstone()) {
    table.slots()[slot].store(nullptr, std::memory_order_release);
    --table.filled;
    slot = slot == 0 ? table.capacity - 1 : slot - 1;
  }
}

template <class Visit>
void for_each(NeighbourTable& table, Visit visit) {
  for (uint32_t slot = 0; slot < table.capacity; ++slot) {
    Neighbour* neighbour = table.slots()[slot].load(std::memory_order_relaxed);
    if (neighbour != nullptr && neighbour != NeighbourTable::tombstone()) visit(*neighbour);
  }
}

Neighbour* find(const Neighbours::Table& table, IpAddress address) {
  return const_cast<Neighbour*>(find_neighbour(table.own(), address));
}

NeighbourInfo info_of(const Neighbour& neighbour) {
  const NeighbourWord word = neighbour.read();
  return {.address = neighbour.address,
          .mac = word.mac(),
          .state = word.state(),
          .protocol = neighbour.protocol,
          .router = neighbour.router != 0};
}

}  // namespace

Neighbours::Neighbours(BlockPools& pools, NeighbourConfig config) : pools_(pools), config_(config) {
  MAYFLY_CHECK(config.interface_limit <= kMostInterfaceLimit,
               "more neighbours an interface than a table can hold");
  queues_[kIncomplete].timeout_ms = queues_[kProbe].timeout_ms = to_ms(config.retry_ns);
  queues_[kReachable].timeout_ms = to_ms(config.reachable_ns);
  queues_[kStale].timeout_ms = to_ms(config.stale_check_ns);
  queues_[kDelay].timeout_ms = to_ms(config.delay_ns);
  queues_[kFailed].timeout_ms = to_ms(config.failed_ns);
  for (const Timers& queue : queues_)
    MAYFLY_CHECK(queue.timeout_ms > 0, "a neighbour timeout below a millisecond");
  unused_checks_ =
      static_cast<uint32_t>(std::clamp<uint64_t>(config.unused_ns / config.stale_check_ns, 1, 255));
}

Result<NeighbourChange> Neighbours::add(Table& table, uint32_t ifindex, const NeighbourInfo& given,
                                        NeighbourAdd how, uint64_t now_ns, RetireList& retired) {
  const NeighbourWord word(given.mac, given.state);
  if (!is_unicast(given.address))
    return fail(EINVAL, "neighbour {}: a unicast address is needed", format_address(given.address));
  if (given.mac == 0 || given.mac >= kBroadcastMac)
    return fail(EINVAL, "neighbour {}: lladdr {} is no MAC of a station", format_address(given.address),
                format_mac(given.mac & kBroadcastMac));
  if (!word.usable())
    return fail(EINVAL, "neighbour {}: state {:#x}: accepted permanent, reachable, stale, delay, probe",
                format_address(given.address), static_cast<unsigned>(given.state));
  Neighbour* neighbour = find(table, given.address);
  if (neighbour != nullptr && !how.replace)
    return fail(EEXIST, "neighbour {} exists on interface {}", format_address(given.address), ifindex);
  if (neighbour == nullptr && !how.create)
    return fail(ENOENT, "neighbour {} does not exist on interface {}", format_address(given.address),
                ifindex);
  NeighbourChange made{.known = true, .resolved = true, .changed = true};
  if (neighbour == nullptr) {
    auto created = create(table, ifindex, given.address, word, now_ns, retired);
    if (!created) return std::unexpected(std::move(created.error()));
    neighbour = *created;
  } else {
    made.resolved = !neighbour->read().usable();
    made.changed = neighbour->read().word() != word.word();
    change(*neighbour, word, now_ns);
  }
  neighbour->protocol = given.protocol;
  neighbour->router = given.router ? 1 : 0;
  return made;
}

Result<NeighbourInfo> Neighbours::remove(Table& table, IpAddress address, RetireList& retired) {
  Neighbour* neighbour = find(table, address);
  if (neighbour == nullptr) return fail(ENOENT, "neighbour {} does not exist", format_address(address));
  const NeighbourInfo info = info_of(*neighbour);
  erase(*neighbour, retired);
  return info;
}

Result<NeighbourChange> Neighbours::learn(Table& table, uint32_t ifindex, IpAddress address, Mac mac,
                                          NeighbourEvidence evidence, uint64_t now_ns, RetireList& retired) {
  if (!is_unicast(address) || !is_station(mac)) return NeighbourChange{};
  NeighbourWord word(mac, evidence.solicited ? NeighbourState::kReachable : NeighbourState::kStale);
  Neighbour* neighbour = find(table, address);
  if (neighbour == nullptr) {
    if (!evidence.creates) return NeighbourChange{};
    auto created = create(table, ifindex, address, word, now_ns, retired);
    if (!created) return std::unexpected(std::move(created.error()));
    (*created)->router = evidence.router.value_or(false) ? 1 : 0;
    return NeighbourChange{.known = true, .resolved = true, .changed = true};
  }
  const NeighbourWord old = neighbour->read();
  const bool same = old.usable() && old.mac() == mac;
  if (old.is(NeighbourState::kPermanent)) return NeighbourChange{.known = same};
  if (old.usable() && !same && !evidence.overrides) {
    // Somebody else answers for it too: ours counts, but is checked when it is used.
    if (!old.is(NeighbourState::kReachable)) return NeighbourChange{};
    word = NeighbourWord(old.mac(), NeighbourState::kStale);
    change(*neighbour, word, now_ns);
    return NeighbourChange{.changed = true};
  }
  if (evidence.router) neighbour->router = *evidence.router ? 1 : 0;
  if (same && !evidence.solicited) return NeighbourChange{.known = true};
  change(*neighbour, word, now_ns);
  return NeighbourChange{.known = true, .resolved = !old.usable(), .changed = old.word() != word.word()};
}

Result<NeighbourResolution> Neighbours::resolve(Table& table, uint32_t ifindex, IpAddress address,
                                                uint64_t now_ns, RetireList& retired) {
  const NeighbourWord word(0, NeighbourState::kIncomplete);
  Neighbour* neighbour = find(table, address);
  if (neighbour == nullptr) {
    if (!is_unicast(address))
      return fail(EINVAL, "neighbour {}: a unicast address is needed", format_address(address));
    auto created = create(table, ifindex, address, word, now_ns, retired);
    if (!created) return std::unexpected(std::move(created.error()));
    neighbour = *created;
  } else {
    const NeighbourWord old = neighbour->read();
    if (old.usable()) return NeighbourResolution::kUsable;
    if (old.is(NeighbourState::kIncomplete)) return NeighbourResolution::kRunning;
    change(*neighbour, word, now_ns);
  }
  neighbour->tries = 1;
  return NeighbourResolution::kStarted;
}

Result<Neighbour*> Neighbours::create(Table& table, uint32_t ifindex, IpAddress address, NeighbourWord word,
                                      uint64_t now_ns, RetireList& retired) {
  if (count_of(table) >= config_.interface_limit && !make_room_on(table, address, now_ns, retired))
    return fail(ENOBUFS, "neighbour {}: all {} neighbours of the limit of interface {} are in use",
                format_address(address), config_.interface_limit, ifindex);
  if (count_ >= config_.limit && !make_room(now_ns, retired))
    return fail(ENOBUFS, "neighbour {}: all {} neighbours of the limit are in use", format_address(address),
                config_.limit);
  Retired* block = pools_.allocate(sizeof(Neighbour));
  if (block == nullptr) return fail(ENOBUFS, "neighbour {}: no memory", format_address(address));
  const Retired header = *block;
  auto* neighbour = new (block) Neighbour{};
  neighbour->retired = header;
  neighbour->address = address;
  neighbour->table = &table;
  neighbour->queue = kNoQueue;
  neighbour->word.store(word.word(), std::memory_order_relaxed);
  if (!insert(table, ifindex, *neighbour, retired)) {
    pools_.free_unpublished(*block);
    return fail(ENOBUFS, "neighbour {}: no memory for the table of interface {}", format_address(address),
                ifindex);
  }
  ++count_;
  change(*neighbour, word, now_ns);
  return neighbour;
}

// The oldest failed one, otherwise the oldest stale one. Those found in use are treated as by their timer,
// only earlier.
bool Neighbours::make_room(uint64_t now_ns, RetireList& retired) {
  if (queues_[kFailed].first != 0) {
    erase(at(queues_[kFailed].first), retired);
    return true;
  }
  for (uint32_t looks = kMostLooks; looks != 0 && queues_[kStale].first != 0; --looks) {
    Neighbour& oldest = at(queues_[kStale].first);
    if (!oldest.used.load(std::memory_order_relaxed)) {
      erase(oldest, retired);
      return true;
    }
    change(oldest, NeighbourWord(oldest.read().mac(), NeighbourState::kDelay), now_ns);
  }
  return false;
}

// Of one interface there is no queue. The oldest of all is its own where it is the one that is flooded;
// otherwise it is the oldest of those around the slot of the new one, which nobody can choose.
bool Neighbours::make_room_on(Table& table, IpAddress comer, uint64_t now_ns, RetireList& retired) {
  NeighbourTable& own = *table.own();
  for (const Queue queue : {kFailed, kStale}) {
    if (queues_[queue].first == 0) continue;
    Neighbour& oldest = at(queues_[queue].first);
    if (oldest.table != &table || oldest.used.load(std::memory_order_relaxed)) continue;
    erase(oldest, retired);
    return true;
  }
  Neighbour* victim = nullptr;
  uint32_t slot = own.home(neighbour_hash(comer));
  for (uint32_t looks = std::min(kMostLooks, own.capacity); looks != 0; --looks) {
    Neighbour* const here = own.slots()[slot].load(std::memory_order_relaxed);
    slot = slot + 1 == own.capacity ? 0 : slot + 1;
    if (here == nullptr || here == NeighbourTable::tombstone()) continue;
    if (here->queue == kFailed) {
      victim = here;
      break;
    }
    if (here->queue != kStale || here->used.load(std::memory_order_relaxed)) continue;
    if (victim == nullptr || unused_ms(*here, now_ns) > unused_ms(*victim, now_ns)) victim = here;
  }
  if (victim == nullptr) return false;
  erase(*victim, retired);
  return true;
}

uint32_t Neighbours::unused_ms(const Neighbour& stale, uint64_t now_ns) const noexcept {
  return stale.tries * queues_[kStale].timeout_ms + (to_ms(now_ns) - stale.since_ms);
}

// Publishes the neighbour, in another table when this one has no room; false without memory for that.
bool Neighbours::insert(Table& table, uint32_t ifindex, Neighbour& neighbour, RetireList& retired) noexcept {
  NeighbourTable* own = table.own();
  NeighbourTable::Slot* slot = own != nullptr ? &slot_for(*own, neighbour.address) : nullptr;
  const bool reuses = slot != nullptr && slot->load(std::memory_order_relaxed) != nullptr;
  if (own == nullptr || (!reuses && own->filled >= most_filled(own->capacity))) {
    NeighbourTable* built = build(ifindex, count_of(table) + 1, own);
    if (built == nullptr) return false;
    slot_for(*built, neighbour.address).store(&neighbour, std::memory_order_relaxed);
    ++built->count;
    ++built->filled;
    table.publish(built);
    if (own != nullptr) pools_.retire(own->retired, retired);
    return true;
  }
  slot->store(&neighbour, std::memory_order_release);
  ++own->count;
  if (!reuses) ++own->filled;
  return true;
}

// An unpublished table with room for count neighbours, and with those of `from` in it.
NeighbourTable* Neighbours::build(uint32_t ifindex, uint32_t count, const NeighbourTable* from) noexcept {
  auto* built = pools_.allocate<NeighbourTable>(size_t{slots_for(count)} * kSlotBytes);
  if (built == nullptr) return nullptr;
  const size_t slot_bytes = BlockPools::capacity_of(built->retired) - sizeof(NeighbourTable);
  built->capacity = static_cast<uint32_t>(slot_bytes / kSlotBytes);
  built->count = built->filled = from != nullptr ? from->count : 0;
  built->ifindex = ifindex;
  for (uint32_t slot = 0; slot < built->capacity; ++slot)
    new (built->slots() + slot) NeighbourTable::Slot(nullptr);
  if (from != nullptr)
    for_each(const_cast<NeighbourTable&>(*from), [&](Neighbour& neighbour) {
      slot_for(*built, neighbour.address).store(&neighbour, std::memory_order_relaxed);
    });
  return built;
}

void Neighbours::erase(Neighbour& neighbour, RetireList& retired) noexcept {
  Table& table = *neighbour.table;
  take_out(*table.own(), neighbour, retired);
  shrink(table, retired);
}

void Neighbours::take_out(NeighbourTable& table, Neighbour& neighbour, RetireList& retired) noexcept {
  vacate(table, slot_for(table, neighbour.address));
  --table.count;
  --count_;
  dequeue(neighbour);
  pools_.retire(neighbour.retired, retired);
}

// Without memory for a smaller table the large one stays.
void Neighbours::shrink(Table& table, RetireList& retired) noexcept {
  NeighbourTable* own = table.own();
  NeighbourTable* smaller = nullptr;
  if (own->count > 0) {
    if (own->count >= most_filled(own->capacity) / 4) return;
    smaller = build(own->ifindex, own->count, own);
    if (smaller == nullptr) return;
  }
  table.publish(smaller);
  pools_.retire(own->retired, retired);
}

uint32_t Neighbours::flush(Table& table, Flush what, RetireList& retired) {
  NeighbourTable* own = table.own();
  if (own == nullptr) return 0;
  const uint32_t before = own->count;
  if (what == Flush::kAll) table.publish(nullptr);
  for_each(*own, [&](Neighbour& neighbour) {
    if (what == Flush::kAll || !neighbour.read().is(NeighbourState::kPermanent))
      take_out(*own, neighbour, retired);
  });
  const uint32_t gone = before - own->count;
  if (what == Flush::kAll)
    pools_.retire(own->retired, retired);
  else
    shrink(table, retired);
  return gone;
}

Neighbours::Queue Neighbours::queue_of(NeighbourState state) noexcept {
  switch (state) {
    case NeighbourState::kIncomplete:
      return kIncomplete;
    case NeighbourState::kReachable:
      return kReachable;
    case NeighbourState::kStale:
      return kStale;
    case NeighbourState::kDelay:
      return kDelay;
    case NeighbourState::kProbe:
      return kProbe;
    case NeighbourState::kFailed:
      return kFailed;
    case NeighbourState::kPermanent:
      break;
  }
  return kQueues;
}

void Neighbours::change(Neighbour& neighbour, NeighbourWord word, uint64_t now_ns) noexcept {
  neighbour.word.store(word.word(), std::memory_order_release);
  neighbour.used.store(false, std::memory_order_relaxed);
  neighbour.tries = 0;
  enqueue(neighbour, queue_of(word.state()), now_ns);
}

void Neighbours::enqueue(Neighbour& neighbour, uint8_t queue, uint64_t now_ns) noexcept {
  dequeue(neighbour);
  if (queue == kNoQueue) return;
  Timers& timers = queues_[queue];
  neighbour.queue = queue;
  neighbour.since_ms = to_ms(now_ns);
  neighbour.next = 0;
  neighbour.previous = timers.last;
  const Link link = link_of(neighbour);
  (timers.last != 0 ? at(timers.last).next : timers.first) = link;
  timers.last = link;
}

void Neighbours::dequeue(Neighbour& neighbour) noexcept {
  if (neighbour.queue == kNoQueue) return;
  Timers& timers = queues_[neighbour.queue];
  (neighbour.previous != 0 ? at(neighbour.previous).next : timers.first) = neighbour.next;
  (neighbour.next != 0 ? at(neighbour.next).previous : timers.last) = neighbour.previous;
  neighbour.queue = kNoQueue;
}

bool Neighbours::tick(uint64_t now_ns, uint32_t limit, std::vector<NeighbourAction>& actions,
                      RetireList& retired) {
  for (Timers& timers : queues_) {
    // The difference is right even where the milliseconds wrap.
    while (timers.first != 0 && to_ms(now_ns) - at(timers.first).since_ms >= timers.timeout_ms) {
      if (limit-- == 0) return true;
      expire(at(timers.first), now_ns, actions, retired);
    }
  }
  return false;
}

void Neighbours::expire(Neighbour& neighbour, uint64_t now_ns, std::vector<NeighbourAction>& actions,
                        RetireList& retired) {
  const Mac mac = neighbour.read().mac();
  const uint8_t queue = neighbour.queue;
  const auto act = [&](NeighbourAction::Kind kind) {
    actions.push_back({kind, neighbour.table->own()->ifindex, neighbour.address, mac});
  };
  const auto again = [&] {
    ++neighbour.tries;
    enqueue(neighbour, queue, now_ns);
  };
  switch (queue) {
    case kIncomplete:
      if (neighbour.tries < config_.requests) {
        act(NeighbourAction::Kind::kAskEveryone);
        return again();
      }
      act(NeighbourAction::Kind::kFailed);
      return change(neighbour, NeighbourWord(0, NeighbourState::kFailed), now_ns);
    case kReachable:
      return change(neighbour, NeighbourWord(mac, NeighbourState::kStale), now_ns);
    case kStale:
      if (neighbour.used.load(std::memory_order_relaxed))
        return change(neighbour, NeighbourWord(mac, NeighbourState::kDelay), now_ns);
      if (neighbour.tries + 1U < unused_checks_) return again();
      break;
    case kDelay:
      change(neighbour, NeighbourWord(mac, NeighbourState::kProbe), now_ns);
      act(NeighbourAction::Kind::kAskDirectly);
      neighbour.tries = 1;
      return;
    case kProbe:
      if (neighbour.tries < config_.requests) {
        act(NeighbourAction::Kind::kAskDirectly);
        return again();
      }
      act(NeighbourAction::Kind::kFailed);
      return erase(neighbour, retired);
    default:
      break;
  }
  act(NeighbourAction::Kind::kForgotten);
  erase(neighbour, retired);
}

uint64_t Neighbours::next_due_ns(uint64_t now_ns) const noexcept {
  uint64_t due = UINT64_MAX;
  for (const Timers& timers : queues_) {
    if (timers.first == 0) continue;
    const uint32_t waited_ms = to_ms(now_ns) - at(timers.first).since_ms;
    const uint32_t left_ms = waited_ms < timers.timeout_ms ? timers.timeout_ms - waited_ms : 0;
    due = std::min(due, now_ns + left_ms * kNsPerMs);
  }
  return due;
}

std::optional<NeighbourInfo> Neighbours::get(const Table& table, IpAddress address) noexcept {
  const Neighbour* neighbour = find(table, address);
  if (neighbour == nullptr) return std::nullopt;
  return info_of(*neighbour);
}

// A part of the dump is a range of hashes; the order of slots is that of hashes, except that a neighbour may
// lie behind its own slot, before the next empty one.
bool Neighbours::dump(const Table& table, uint64_t& cursor, std::vector<NeighbourInfo>& neighbours) {
  constexpr uint64_t kEnd = uint64_t{1} << 32;
  constexpr uint32_t kSlotsAtOnce = 32;
  const NeighbourTable* own = table.own();
  if (own == nullptr || cursor >= kEnd) {
    cursor = kEnd;
    return false;
  }
  const uint32_t first = own->home(static_cast<uint32_t>(cursor));
  const uint64_t end_slot = uint64_t{first} + kSlotsAtOnce;
  const uint64_t end =
      end_slot >= own->capacity ? kEnd : ((end_slot << 32) + own->capacity - 1) / own->capacity;
  for (uint32_t i = 0; i < own->capacity; ++i) {
    const Neighbour* neighbour = own->slots()[(first + i) % own->capacity].load(std::memory_order_relaxed);
    if (neighbour == nullptr && i >= kSlotsAtOnce) break;
    if (neighbour == nullptr || neighbour == NeighbourTable::tombstone()) continue;
    const uint32_t hash = neighbour_hash(neighbour->address);
    if (hash >= cursor && hash < end) neighbours.push_back(info_of(*neighbour));
  }
  cursor = end;
  return end < kEnd;
}

void Neighbours::detach(Table& table) noexcept {
  if (table.own() == nullptr) return;
  for_each(*table.own(), [&](Neighbour& neighbour) { dequeue(neighbour); });
  count_ -= table.own()->count;
}

void Neighbours::dismantle(Table& table, Returns& returns) const noexcept {
  NeighbourTable* own = table.own();
  if (own == nullptr) return;
  for_each(*own, [&](Neighbour& neighbour) { pools_.give_back(neighbour.retired, returns); });
  pools_.give_back(own->retired, returns);
  table.publish(nullptr);
}

}  // namespace mayfly
