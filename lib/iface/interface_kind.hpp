// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What a kind of interface does: validate and reserve its key, fill in how packets leave, and undo that.
//
// A kind is stateless and lives for ever (kinds/NAME.cpp, listed in kinds/kinds.cpp, its words in
// kind_parameters.hpp). All calls: control thread.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "iface/interface.hpp"
#include "iface/kind_parameters.hpp"

namespace mayfly {

class InterfaceTable;

// Values of a kind's parameters, in the order of its KindDescription.
struct KindValues {
  std::array<uint16_t, kMostKindParameters> value{};
  uint8_t present = 0;  // one bit a parameter

  bool has(size_t index) const noexcept { return (present >> index & 1) != 0; }
  void set(size_t index, uint16_t to) noexcept {
    value[index] = to;
    present = static_cast<uint8_t>(present | 1u << index);
  }
};

// The other end of a pair, created and deleted with it.
struct PeerSpec {
  std::string_view name;
  Netns* netns = nullptr;
  uint32_t mtu = 0;
  std::optional<Mac> mac;
  bool up = false;
};

// What is asked of a new interface. Views and pointers are only read during the call.
struct InterfaceSpec {
  std::string_view name;
  KindId kind = 0;
  KindValues values;
  Netns* netns = nullptr;
  uint32_t parent = kNoInterface;
  uint32_t ifindex = 0;  // 0: the lowest free one
  uint32_t group = 0;
  uint32_t mtu = 0;  // 0: what the kind and the parent give
  std::optional<Mac> mac;
  std::string_view alias;
  bool up = false;
  uint32_t settings = 0;  // of Interface::kSettings
  uint32_t unnumbered = kNoInterface;
  uint16_t port = kNoPort;          // kind port only
  std::optional<PeerSpec> peer;     // kind veth only
  uint32_t peer_of = kNoInterface;  // this is the other end of that one: set by kind veth itself
};

class InterfaceKind {
 public:
  explicit InterfaceKind(const KindDescription& description) : description_(description) {}
  virtual ~InterfaceKind() = default;
  const KindDescription& description() const noexcept { return description_; }

  // Validates the spec, reserves the kind's key for interface.ifindex, and fills in port, tags, mtu,
  // mtu_limit and mac. On failure nothing is reserved.
  virtual Status claim(InterfaceTable& table, const InterfaceSpec& spec, Interface& interface,
                       InterfaceRecord& record) const = 0;
  // Makes workers lose it: the key is free afterwards.
  virtual void unlink(InterfaceTable& table, Interface& interface, RetireList& list) const = 0;
  // Whether the interface has the key that claim() would reserve for the spec, whose parent is the same.
  virtual bool has_key_of(const InterfaceTable&, const InterfaceSpec&, const Interface&) const {
    return true;
  }
  // The value of a parameter, for dumps; nullopt when it has none.
  virtual std::optional<uint16_t> parameter(const Interface& interface, uint16_t attribute) const = 0;

 private:
  const KindDescription& description_;
};

// Every kind; a KindId is an index into it.
std::span<const InterfaceKind* const> interface_kinds() noexcept;
// nullopt when there is no such kind.
std::optional<KindId> find_kind(std::string_view name) noexcept;
extern const KindId kPortKind;
extern const KindId kVethKind;

// "port, vlan, dummy": for error texts.
std::string list_kinds();

}  // namespace mayfly
