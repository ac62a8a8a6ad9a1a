// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// How teardown takes an interface apart (internal to lib/iface): its address list and neighbour table go back
// to the block pools, its references must drain on every worker, its memory is poisoned, its number goes
// back.

#include "reclaim/retire.hpp"

namespace mayfly {

class InterfaceTable;

class RetiredInterfaces final : public RetiredKind {
 public:
  RetiredInterfaces() : RetiredKind("interface") {}
  // The one table of the process.
  void bind(InterfaceTable& table) noexcept { table_ = &table; }

  void dismantle(Retired& object, Returns& returns) const override;
  bool drained(const Retired& object) const override;
  void reclaim(Retired& object, Returns& returns) const override;
  std::string describe(const Retired& object) const override;
  std::vector<Holder> holders(const Retired& object) const override;

 private:
  uint32_t ifindex_of(const Retired& object) const noexcept;
  InterfaceTable* table_ = nullptr;
};

RetiredInterfaces& retired_interfaces();

}  // namespace mayfly
