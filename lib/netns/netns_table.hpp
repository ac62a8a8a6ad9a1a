// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// All network namespaces: names, numbers, and the life of each.
//
//   add -> live -> (dying) -> unlink -> retire -> grace period -> dismantled (FIBs, routes) -> number free
//   again
//
// `default` is there from the beginning and cannot be deleted. A name is free again when its namespace is
// unlinked; an id is never used twice, so that whoever remembers a namespace over several slices remembers
// the id and asks alive().
//
// Every call: control thread, constant time unless stated; an empty namespace takes sizeof(Netns) and its
// name.

#include <memory>
#include <string_view>
#include <vector>

#include "base/index_hash.hpp"
#include "base/result.hpp"
#include "base/slot_space.hpp"
#include "netns/netns.hpp"

namespace mayfly {

inline constexpr std::string_view kDefaultNetnsName = "default";
constexpr size_t kMostNetnsNameBytes = 255;  // NAME_MAX, as for the kernel's named namespaces

// 1..255 bytes, no '/', no white space or control character, not '.' or '..'.
Status check_netns_name(std::string_view name);

class NetnsTable final : public Returnable {
 public:
  static constexpr uint32_t kDefaultLimit = 131'072;

  NetnsTable(BlockPools& blocks, RouteTable& routes, uint32_t limit = kDefaultLimit);
  // Every namespace but `default` has been retired and taken back; `default` has no routes.
  ~NetnsTable() override;
  NetnsTable(const NetnsTable&) = delete;
  NetnsTable& operator=(const NetnsTable&) = delete;

  Netns& initial() const noexcept { return *initial_; }

  // EINVAL (name), EEXIST, ENOBUFS (the limit, those in teardown included).
  Result<Netns*> add(std::string_view name);
  // EINVAL, EEXIST; EPERM for `default`.
  Status rename(Netns& netns, std::string_view name);
  // Name and id are dead from here on: nobody finds it, and its routes are not looked at any more. There is
  // no way back: whoever deletes it calls this when nothing can refuse any more.
  void unlink(Netns& netns) noexcept;
  // After unlink(), and when it has no interface any more. Its routes need not have been removed.
  void retire(Netns& netns, RetireList& retired) noexcept;

  // nullptr when there is none.
  Netns* find(std::string_view name) const noexcept;
  // The live one with the lowest number >= from, nullptr at the end: a cursor that survives any change.
  Netns* next(uint32_t from) const noexcept;
  // Whether the namespace with this number is still the one with this id.
  bool alive(uint32_t number, uint64_t id) const noexcept {
    return number < ids_.size() && ids_[number] == id;
  }

  uint32_t live() const noexcept { return live_; }
  uint32_t in_use() const noexcept { return pool_.in_use(); }  // the retired ones included
  uint32_t limit() const noexcept { return limit_; }
  // Grows with every namespace that appears, goes or changes its name: for NLM_F_DUMP_INTR.
  uint64_t changes() const noexcept { return changes_; }
  size_t committed_bytes() const noexcept { return pool_.committed_bytes(); }
  bool trim(uint32_t max_chunks) noexcept { return pool_.trim(max_chunks); }

  void take_back(uint32_t number) noexcept override { pool_.free_index(number); }

 private:
  struct NameTraits {
    const Pool* pool;
    uint32_t& next(uint32_t number) const noexcept {
      return static_cast<Netns*>(pool->at(number))->name_next;
    }
    uint64_t hash(uint32_t number) const noexcept;
  };

  static constexpr size_t kBlockBytes = (sizeof(Netns) + 15) / 16 * 16;
  static_assert(kBlockBytes <= 512, "an empty namespace is to stay small");

  Netns& at(uint32_t number) const noexcept { return *static_cast<Netns*>(pool_.at(number)); }

  BlockPools& blocks_;
  RouteTable& routes_;
  uint32_t limit_;
  Pool pool_;
  IndexHash<NameTraits> names_;
  std::vector<uint64_t> ids_;  // by number; 0: none, or retired
  Netns* initial_ = nullptr;
  uint64_t next_id_ = 1;
  uint32_t live_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace mayfly
