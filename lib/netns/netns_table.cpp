// SPDX-License-Identifier: BSD-3-Clause
#include "netns/netns_table.hpp"

#include <algorithm>
#include <functional>

#include "base/check.hpp"

namespace mayfly {
namespace {

uint64_t hash_name(std::string_view name) noexcept {
  return mix_hash(std::hash<std::string_view>{}(name));
}

class RetiredNetnses final : public RetiredKind {
 public:
  RetiredNetnses() : RetiredKind("namespace") {}
  void bind(NetnsTable& table) noexcept { table_ = &table; }

  void dismantle(Retired& object, Returns& returns) const override {
    auto& netns = reinterpret_cast<Netns&>(object);
    netns.rib.dismantle(returns);
    netns.fib.dismantle(returns);
    netns.fib6.dismantle(returns);
  }
  void reclaim(Retired& object, Returns& returns) const override {
    auto& netns = reinterpret_cast<Netns&>(object);
    const uint32_t number = netns.number;
    netns.~Netns();
    returns.add(*table_, number);
  }
  std::string describe(const Retired& object) const override {
    return fmt::format("namespace {}", reinterpret_cast<const Netns&>(object).name);
  }

 private:
  NetnsTable* table_ = nullptr;  // the one of the process
};

RetiredNetnses& retired_netnses() {
  static RetiredNetnses kind;
  return kind;
}

}  // namespace

Status check_netns_name(std::string_view name) {
  if (name.empty() || name.size() > kMostNetnsNameBytes)
    return fail(EINVAL, "netns name '{}': {} characters, accepted 1..{}", name, name.size(),
                kMostNetnsNameBytes);
  if (name == "." || name == "..")
    return fail(EINVAL, "netns name '{}': not accepted as a namespace name", name);
  for (const char c : name)
    if (c == '/' || static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      return fail(EINVAL, "netns name '{}': '/', white space and control characters are not accepted", name);
  return {};
}

uint64_t NetnsTable::NameTraits::hash(uint32_t number) const noexcept {
  return hash_name(static_cast<const Netns*>(pool->at(number))->name);
}

NetnsTable::NetnsTable(BlockPools& blocks, RouteTable& routes, uint32_t limit)
    : blocks_(blocks),
      routes_(routes),
      limit_(limit),
      pool_("namespaces", kBlockBytes, limit),
      names_(limit, NameTraits{&pool_}) {
  retired_netnses().bind(*this);
  initial_ = *add(kDefaultNetnsName);
}

NetnsTable::~NetnsTable() {
  MAYFLY_DEBUG_CHECK(pool_.in_use() == 1, "namespaces were left behind");
  initial_->~Netns();
}

Result<Netns*> NetnsTable::add(std::string_view name) {
  if (Status valid = check_netns_name(name); !valid) return std::unexpected(valid.error());
  if (find(name) != nullptr) return fail(EEXIST, "netns '{}' exists", name);
  void* memory = pool_.allocate();
  if (memory == nullptr)
    return fail(ENOBUFS, "netns '{}': all {} namespaces of the limit are in use", name, limit_);
  auto* netns = new (memory) Netns(std::string(name), blocks_, routes_);
  netns->retired.kind = retired_netnses().id();
  netns->number = pool_.index_of(memory);
  netns->id = next_id_++;
  names_.insert(netns->number);
  if (ids_.size() <= netns->number) ids_.resize(netns->number + 1);
  ids_[netns->number] = netns->id;
  ++live_;
  ++changes_;
  return netns;
}

Status NetnsTable::rename(Netns& netns, std::string_view name) {
  if (Status valid = check_netns_name(name); !valid) return valid;
  if (&netns == initial_) return fail(EPERM, "netns '{}': the first namespace keeps its name", netns.name);
  if (const Netns* other = find(name); other != nullptr) {
    if (other == &netns) return {};
    return fail(EEXIST, "netns '{}' exists", name);
  }
  names_.erase(netns.number);
  netns.name = name;
  names_.insert(netns.number);
  ++changes_;
  return {};
}

void NetnsTable::unlink(Netns& netns) noexcept {
  MAYFLY_CHECK(&netns != initial_, "the first namespace was unlinked");
  names_.erase(netns.number);
  netns.dying = netns.doomed = true;
  ids_[netns.number] = 0;
  --live_;
  ++changes_;
}

void NetnsTable::retire(Netns& netns, RetireList& retired) noexcept {
  MAYFLY_DEBUG_CHECK(ids_[netns.number] == 0, "a namespace was retired before it was unlinked");
  MAYFLY_DEBUG_CHECK(netns.bulk_requests == 0, "a namespace was retired under a bulk request");
  netns.rib.detach();
  const size_t bytes = kBlockBytes + netns.fib.bytes() + netns.fib6.bytes() + netns.rib.bytes();
  netns.retired.bytes = static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX));
  retired.retire(netns.retired);
}

Netns* NetnsTable::find(std::string_view name) const noexcept {
  const uint32_t number =
      names_.find(hash_name(name), [&](uint32_t candidate) { return at(candidate).name == name; });
  return number == kNoSlot ? nullptr : &at(number);
}

Netns* NetnsTable::next(uint32_t from) const noexcept {
  for (uint32_t number = from; number < ids_.size(); ++number)
    if (ids_[number] != 0) return &at(number);
  return nullptr;
}

}  // namespace mayfly
