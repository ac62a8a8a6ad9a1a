// SPDX-License-Identifier: BSD-3-Clause
#include "iface/retired_interface.hpp"

#include <cstddef>
#include <cstdlib>

#include "base/poison.hpp"
#include "iface/address_list.hpp"
#include "iface/interface_table.hpp"

namespace mayfly {

RetiredInterfaces& retired_interfaces() {
  static RetiredInterfaces kind;
  return kind;
}

uint32_t RetiredInterfaces::ifindex_of(const Retired& object) const noexcept {
  const auto* record = reinterpret_cast<const InterfaceRecord*>(&object);
  return static_cast<uint32_t>(record - &table_->record(0));
}

void RetiredInterfaces::dismantle(Retired& object, Returns& returns) const {
  const uint32_t ifindex = ifindex_of(object);
  Interface& interface = table_->interface(ifindex);
  if (interface.neighbours.own() != nullptr) table_->neighbours().dismantle(interface.neighbours, returns);
  if (AddressList* addresses = interface.addresses.own(); addresses != nullptr)
    table_->blocks().give_back(addresses->retired, returns);
  std::free(table_->record(ifindex).alias);
}

bool RetiredInterfaces::drained(const Retired& object) const {
  const uint32_t ifindex = ifindex_of(object);
  for (uint32_t worker = 0; worker < table_->workers(); ++worker)
    if (table_->references(worker)[ifindex].load(std::memory_order_acquire) != 0) return false;
  return true;
}

void RetiredInterfaces::reclaim(Retired& object, Returns& returns) const {
  const uint32_t ifindex = ifindex_of(object);
  // The flags stay 0: a message that still names the number finds nobody there.
  poison_memory(&table_->interface(ifindex).id, sizeof(Interface) - offsetof(Interface, id));
  poison_memory(&table_->record(ifindex), sizeof(InterfaceRecord));
  returns.add(*table_, ifindex);
}

std::string RetiredInterfaces::describe(const Retired& object) const {
  const uint32_t ifindex = ifindex_of(object);
  return fmt::format("interface {} (ifindex {}, id {})", table_->record(ifindex).name, ifindex,
                     table_->interface(ifindex).id);
}

std::vector<Holder> RetiredInterfaces::holders(const Retired& object) const {
  const uint32_t ifindex = ifindex_of(object);
  std::vector<Holder> holders;
  for (uint32_t worker = 0; worker < table_->workers(); ++worker)
    if (const uint64_t count = table_->references(worker)[ifindex].load(std::memory_order_acquire);
        count != 0)
      holders.push_back({worker, count, "neighbour queue"});
  return holders;
}

}  // namespace mayfly
