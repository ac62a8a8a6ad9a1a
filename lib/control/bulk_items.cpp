// SPDX-License-Identifier: BSD-3-Clause
// Members that were described one by one: kCmdLinkBulkItems, and the walk over what it gathered.
#include <linux/genetlink.h>
#include <linux/if_link.h>

#include "base/check.hpp"
#include "control/bulk_members.hpp"
#include "control/handlers.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

// What one connection may have sent ahead, messages and all.
constexpr size_t kMostListedBytes = size_t{512} << 20;

constexpr AttributeSpec kItemsSpecs[] = {
    {kBulkItem, AttributeSpec::Type::nested, "item", 0, true},
};

constexpr AttributeSpec kItemSpecs[] = {
    {kBulkName, AttributeSpec::Type::string, "name", kInterfaceNameBytes - 1},
    {kBulkTemplate, AttributeSpec::Type::nested, "template"},
    {kBulkUp, AttributeSpec::Type::flag, "up"},
    {kBulkDown, AttributeSpec::Type::flag, "down"},
    {kBulkAddress, AttributeSpec::Type::nested, "addr", 0, true},
    {kBulkRoute, AttributeSpec::Type::nested, "route", 0, true},
    {kBulkNeighbour, AttributeSpec::Type::nested, "neigh", 0, true},
};

class ListedMembers final : public BulkMembers {
 public:
  ListedMembers(Connection& connection, ListedItems items, BulkDefaults defaults)
      : dataplane_(connection.dataplane()),
        netns_(connection.netns()),
        items_(std::move(items)),
        defaults_(defaults) {
    count_ = items_.count;
  }

  void rewind() override { number_ = part_ = offset_ = 0; }

  void advance() override {
    ++number_;
    offset_ += NLA_ALIGN(item().nla_len);
    if (offset_ < items_.parts[part_].size()) return;
    ++part_;
    offset_ = 0;
  }

  Result<const BulkMember*> make() override {
    member_ = {};
    auto beside = RequestAttributes::parse_nested(item(), kItemSpecs);
    if (!beside) return std::unexpected(beside.error());
    const auto name = beside->string(kBulkName);
    if (!name) return fail(EINVAL, "name: missing, accepted 1..15 characters");
    member_.spec.name = *name;
    const nlattr* nested = beside->find(kBulkTemplate);
    if (nested == nullptr) return fail(EINVAL, "template: missing");
    auto shared = RequestAttributes::parse_nested(*nested, link_attribute_specs());
    if (!shared) return std::unexpected(shared.error());
    if (shared->has(IFLA_IFNAME)) return fail(EINVAL, "template: the name is given beside it");
    auto spec = parse_link_spec(dataplane_, netns_, *shared);
    if (!spec) return std::unexpected(spec.error());
    member_.spec = *spec;
    member_.spec.name = *name;
    member_.named = named_by(*beside, *shared);
    member_.spec.up = member_.named.up;
    if (!member_.named.group && defaults_.group) member_.spec.group = *defaults_.group;
    member_.named.group |= defaults_.group.has_value();
    auto dressing = Dressing::parse(*beside, 1);
    if (!dressing) return std::unexpected(dressing.error());
    dressing_ = std::move(*dressing);
    member_.dressing = &dressing_;
    if (auto valid = check_dressing(member_); !valid) return std::unexpected(valid.error());
    return &member_;
  }

  const Dressing& dressing() override {
    auto beside = RequestAttributes::parse_nested(item(), kItemSpecs);
    MAYFLY_CHECK(beside.has_value(), "an item changed after it was made");
    auto dressing = Dressing::parse(*beside, 1);
    MAYFLY_CHECK(dressing.has_value(), "an item's dressing changed after it was made");
    dressing_ = std::move(*dressing);
    return dressing_;
  }

  std::string describe() const override { return fmt::format("of {} listed", count_); }

 private:
  const nlattr& item() const noexcept {
    return *reinterpret_cast<const nlattr*>(items_.parts[part_].data() + offset_);
  }

  const Dataplane& dataplane_;
  Netns& netns_;
  ListedItems items_;
  BulkDefaults defaults_;
  size_t part_ = 0;
  size_t offset_ = 0;
  Dressing dressing_;
};

}  // namespace

BulkMember::Named named_by(const RequestAttributes& beside, const RequestAttributes& shared) noexcept {
  BulkMember::Named named;
  named.mtu = shared.has(IFLA_MTU);
  named.mac = shared.has(IFLA_ADDRESS);
  named.group = shared.has(IFLA_GROUP);
  named.alias = shared.has(IFLA_IFALIAS);
  named.unnumbered = shared.has(kAttrUnnumbered);
  named.up = beside.has(kBulkUp);
  named.down = beside.has(kBulkDown) && !named.up;
  // Wrong values were refused with the rest of the description.
  if (const auto settings = parse_settings(shared)) named.settings = settings->named;
  return named;
}

Status check_dressing(const BulkMember& member) {
  if (member.dressing->needs_up() && !member.named.up)
    return fail(EINVAL, "route and neigh belong to an interface that is up: add 'up'");
  return {};
}

Result<std::unique_ptr<BulkMembers>> listed_members(Connection& connection,
                                                    const RequestAttributes& attributes, ListedItems items,
                                                    BulkDefaults defaults) {
  for (const uint16_t number :
       {kBulkName, kBulkTemplate, kBulkUp, kBulkDown, kBulkRange, kBulkAddress, kBulkRoute, kBulkNeighbour})
    if (attributes.has(number))
      return fail_attribute(number, EINVAL, "listed: each item describes itself, the request describes none");
  const auto count = attributes.u64(kBulkCount);
  if (!count || *count != items.count)
    return fail_attribute(kBulkCount, EINVAL, "count {}: {} items were listed on this connection",
                          count.value_or(0), items.count);
  return std::make_unique<ListedMembers>(connection, std::move(items), defaults);
}

// Items are looked into when they are used: only there is it known what for.
HandlerResult handle_bulk_items(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kItemsSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  uint64_t count = 0;
  attributes->each(kBulkItem, [&count](const nlattr&) { ++count; });
  if (count == 0) return Handled::acknowledge;
  ListedItems& items = connection.items();
  const auto bytes = request.payload.subspan(std::min(request.payload.size(), size_t{GENL_HDRLEN}));
  const uint32_t limit = connection.dataplane().interfaces.limit();
  if (items.count + count > limit)
    return fail(E2BIG, "items: {} were listed, accepted {}", items.count + count, limit);
  if (items.bytes + bytes.size() > kMostListedBytes)
    return fail(E2BIG, "items: {} bytes were listed, accepted {}", items.bytes + bytes.size(),
                kMostListedBytes);
  items.parts.emplace_back(bytes.begin(), bytes.end());
  items.bytes += bytes.size();
  items.count += count;
  return Handled::acknowledge;
}

}  // namespace mayfly
