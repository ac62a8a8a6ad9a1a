// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The interfaces that one kCmdLinkBulkAdd is about, one after the other: the members of a template
// (a name pattern and ranges), or the items that kCmdLinkBulkItems sent before.
//
//   for (members.rewind(); !members.done(); members.advance()) {
//     auto member = members.make();        // its specification, or what is wrong with it
//   }
//
// A request walks over them several times (match, claim, commit); nothing of a member is kept in between but
// the bytes it came in, which is what it takes least memory as. So names of parents, namespaces and lenders
// are looked up anew each time; dressing() alone needs no look-up and cannot fail once make() succeeded.
//
// Control thread. make() costs about a microsecond and allocates only for an item with dressing.

#include <memory>
#include <string>
#include <vector>

#include "control/bulk_dressing.hpp"
#include "control/connection.hpp"
#include "control/link_request.hpp"

namespace mayfly {

struct BulkMember {
  // What the request says of an interface; the rest is left as it is where it exists.
  struct Named {
    bool mtu = false;
    bool mac = false;
    bool group = false;
    bool alias = false;
    bool up = false;
    bool down = false;
    bool unnumbered = false;
    uint32_t settings = 0;  // of Interface::kSettings
  };
  InterfaceSpec spec;
  Named named;
  const Dressing* dressing = nullptr;
  uint64_t step = 0;  // the member number that the dressing counts by
};

class BulkMembers {
 public:
  virtual ~BulkMembers() = default;

  uint64_t count() const noexcept { return count_; }
  uint64_t number() const noexcept { return number_; }  // of the present one, from 0
  bool done() const noexcept { return number_ == count_; }
  virtual void rewind() = 0;
  virtual void advance() = 0;

  // The present member. Its views are valid until the next call of make(), rewind() or advance(). On failure
  // name() is as much of its name as is known.
  virtual Result<const BulkMember*> make() = 0;
  virtual const Dressing& dressing() = 0;
  // What the dressing counts by.
  virtual uint64_t step() const noexcept { return 0; }
  // How much work the present member is, in interfaces without dressing.
  uint64_t weight() const noexcept {
    return 1 + (member_.dressing == nullptr ? 0 : member_.dressing->size());
  }
  // The namespaces that members keep pointers to from one make() to the next: hold them from the beginning.
  const std::vector<Netns*>& kept_netns() const noexcept { return kept_netns_; }
  std::string_view name() const noexcept { return member_.spec.name; }

  virtual std::string describe() const = 0;

 protected:
  BulkMember member_;
  std::vector<Netns*> kept_netns_;
  uint64_t count_ = 0;
  uint64_t number_ = 0;
};

// What a request gives its members when they do not say.
struct BulkDefaults {
  std::optional<uint32_t> group;
};

// What a template or an item (beside) and its attributes of RTM_NEWLINK (shared) name.
BulkMember::Named named_by(const RequestAttributes& beside, const RequestAttributes& shared) noexcept;
// EINVAL when it wears routes or neighbours and is not up.
Status check_dressing(const BulkMember& member);

// How many members the ranges of the request give at most: what its admission is asked for.
uint64_t bulk_range_product(const RequestAttributes& attributes) noexcept;

Result<std::unique_ptr<BulkMembers>> template_members(Connection& connection,
                                                      const RequestAttributes& attributes,
                                                      BulkDefaults defaults);
Result<std::unique_ptr<BulkMembers>> listed_members(Connection& connection,
                                                    const RequestAttributes& attributes, ListedItems items,
                                                    BulkDefaults defaults);

}  // namespace mayfly
