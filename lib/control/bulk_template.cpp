// SPDX-License-Identifier: BSD-3-Clause
// Members of a template: a name pattern, ranges of the kind's parameters, and what all of them share.
#include <linux/if_link.h>

#include "control/bulk_members.hpp"
#include "control/protocol.hpp"
#include "iface/name_pattern.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr AttributeSpec kRangeSpecs[] = {
    {kRangeParameter, AttributeSpec::Type::u16, "range parameter"},
    {kRangeFirst, AttributeSpec::Type::u32, "range first"},
    {kRangeLast, AttributeSpec::Type::u32, "range last"},
};

// One parameter of the kind that varies over the members.
struct Range {
  size_t parameter;  // index in the kind's description
  uint32_t first;
  uint32_t last;
  uint64_t size() const noexcept { return uint64_t{last} - first + 1; }
};

Result<Range> parse_range(const KindDescription& kind, const nlattr& nested) {
  auto attributes = RequestAttributes::parse_nested(nested, kRangeSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  const uint16_t number = attributes->u16(kRangeParameter).value_or(0);
  for (size_t i = 0; i < kind.parameters.size(); ++i) {
    const KindParameter& parameter = kind.parameters[i];
    if (parameter.attribute != number || !parameter.ranged) continue;
    const Range range{i, attributes->u32(kRangeFirst).value_or(0), attributes->u32(kRangeLast).value_or(0)};
    if (range.first < parameter.least || range.last > parameter.most || range.first > range.last)
      return fail(ERANGE, "{} {} {}-{}: accepted {}..{}, the first not above the last", kind.name,
                  parameter.word, range.first, range.last, parameter.least, parameter.most);
    return range;
  }
  return fail(EINVAL, "range: parameter {} of type {} cannot be one", number, kind.name);
}

// An interface that a template names once and for all: it may go while the request runs.
class Referred {
 public:
  Referred() = default;
  Referred(const InterfaceTable& table, uint32_t ifindex)
      : ifindex_(ifindex), id_(ifindex == kNoInterface ? 0 : table.interface(ifindex).id) {}
  bool there(const InterfaceTable& table) const noexcept {
    return ifindex_ == kNoInterface || (table.exists(ifindex_) && table.interface(ifindex_).id == id_);
  }

 private:
  uint32_t ifindex_ = kNoInterface;
  uint64_t id_ = 0;
};

class TemplateMembers final : public BulkMembers {
 public:
  explicit TemplateMembers(const InterfaceTable& table) : table_(table) {}

  Status parse(Connection& connection, const RequestAttributes& attributes, BulkDefaults defaults);

  void rewind() override {
    number_ = 0;
    for (size_t i = 0; i < ranges_.size(); ++i) at_[i] = ranges_[i].first;
  }

  void advance() override {
    ++number_;
    for (size_t i = ranges_.size(); i-- > 0;) {
      if (at_[i]++ < ranges_[i].last) return;
      at_[i] = ranges_[i].first;
    }
  }

  Result<const BulkMember*> make() override {
    InterfaceSpec& spec = member_.spec;
    for (size_t i = 0; i < ranges_.size(); ++i)
      spec.values.value[ranges_[i].parameter] = static_cast<uint16_t>(at_[i]);
    const NameFields fields{number_, parent_name_, tag(KindParameter::Role::outer),
                            tag(KindParameter::Role::inner)};
    spec.name = pattern_.format(fields, name_);
    if (spec.name.empty()) return too_long("name", pattern_);
    if (spec.peer) {
      spec.peer->name = peer_pattern_.format(fields, peer_name_);
      if (spec.peer->name.empty()) return too_long("peer name", peer_pattern_);
    }
    if (!parent_.there(table_)) return fail(ENODEV, "link '{}': was deleted meanwhile", parent_name_);
    if (!lender_.there(table_)) return fail(ENODEV, "unnumbered: the interface was deleted meanwhile");
    if (auto valid = dressing_.check(number_); !valid) return std::unexpected(valid.error());
    member_.step = number_;
    return &member_;
  }

  const Dressing& dressing() override { return dressing_; }
  uint64_t step() const noexcept override { return number_; }
  std::string describe() const override { return pattern_.text(); }

 private:
  Status parse_template(Connection& connection, const RequestAttributes& attributes, BulkDefaults defaults);
  Status parse_ranges(const RequestAttributes& attributes);
  Status parse_count(const RequestAttributes& attributes);

  std::unexpected<Error> too_long(std::string_view what, const NamePattern& pattern) const {
    return fail(EINVAL, "{} '{}': longer than 15 characters for member {}", what, pattern.text(), number_);
  }

  // The value of the parameter that is this tag, for {outer} and {inner} in names.
  uint16_t tag(KindParameter::Role role) const noexcept {
    const auto parameters = interface_kinds()[member_.spec.kind]->description().parameters;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].role == role) return member_.spec.values.value[i];
    return 0;
  }

  const InterfaceTable& table_;
  NamePattern pattern_;
  NamePattern peer_pattern_;
  std::string alias_;
  std::string parent_name_;
  Referred parent_;
  Referred lender_;
  std::vector<Range> ranges_;  // the last one varies fastest
  std::vector<uint32_t> at_;   // their present values
  Dressing dressing_;
  std::array<char, kInterfaceNameBytes> name_;
  std::array<char, kInterfaceNameBytes> peer_name_;
};

Status TemplateMembers::parse_ranges(const RequestAttributes& attributes) {
  const KindDescription& kind = interface_kinds()[member_.spec.kind]->description();
  Status status;
  attributes.each(kBulkRange, [&](const nlattr& nested) {
    if (!status) return;
    auto range = parse_range(kind, nested);
    if (!range) {
      status = std::unexpected(range.error());
      return;
    }
    for (const Range& other : ranges_)
      if (other.parameter == range->parameter)
        status =
            fail(EINVAL, "range: {} {} is given twice", kind.name, kind.parameters[range->parameter].word);
    ranges_.push_back(*range);
    at_.push_back(range->first);
    // The ranges may supply what the kind requires.
    member_.spec.values.set(range->parameter, 0);
  });
  return status;
}

Status TemplateMembers::parse_count(const RequestAttributes& attributes) {
  uint64_t product = ranges_.empty() ? 0 : 1;
  for (const Range& range : ranges_) product *= range.size();
  count_ = attributes.u64(kBulkCount).value_or(product);
  if (count_ == 0)
    return fail(EINVAL, "count: missing, and no range gives it; accepted 1..{}", table_.limit());
  if (count_ > table_.limit()) return fail(ERANGE, "count {}: accepted 1..{}", count_, table_.limit());
  if (product != 0 && count_ > product)
    return fail(ERANGE, "count {}: the ranges give {} members only", count_, product);
  if (count_ > 1 && !pattern_.varies())
    return fail(EINVAL, "name '{}': {} interfaces need a field like {{}} to differ in", pattern_.text(),
                count_);
  return {};
}

Status TemplateMembers::parse_template(Connection& connection, const RequestAttributes& attributes,
                                       BulkDefaults defaults) {
  const nlattr* nested = attributes.find(kBulkTemplate);
  if (nested == nullptr) return fail(EINVAL, "template: missing");
  auto shared = RequestAttributes::parse_nested(*nested, link_attribute_specs());
  if (!shared) return std::unexpected(shared.error());
  if (shared->has(IFLA_IFNAME)) return fail(EINVAL, "template: the name is given as a pattern beside it");
  auto pattern = NamePattern::parse(attributes.string(kBulkName).value_or("{parent}.{outer}.{inner}"));
  if (!pattern) return std::unexpected(pattern.error());
  pattern_ = std::move(*pattern);
  auto spec = parse_link_template(connection.dataplane(), connection.netns(), *shared);
  if (!spec) return std::unexpected(spec.error());
  InterfaceSpec& ours = member_.spec = *spec;
  kept_netns_.push_back(ours.netns);
  if (ours.peer) kept_netns_.push_back(ours.peer->netns);
  member_.named = named_by(attributes, *shared);
  if (!member_.named.group && defaults.group) ours.group = *defaults.group;
  member_.named.group |= defaults.group.has_value();
  alias_ = spec->alias;
  ours.alias = alias_;
  ours.up = member_.named.up;
  if (ours.peer) {
    auto of_peer = NamePattern::parse(ours.peer->name);
    if (!of_peer) return fail(of_peer.error().code, "peer: {}", of_peer.error().text);
    peer_pattern_ = std::move(*of_peer);
  }
  if (ours.parent != kNoInterface) parent_name_ = table_.record(ours.parent).name;
  parent_ = Referred(table_, ours.parent);
  lender_ = Referred(table_, ours.unnumbered);
  return {};
}

Status TemplateMembers::parse(Connection& connection, const RequestAttributes& attributes,
                              BulkDefaults defaults) {
  if (auto done = parse_template(connection, attributes, defaults); !done) return done;
  if (auto ranges = parse_ranges(attributes); !ranges) return ranges;
  const KindDescription& kind = interface_kinds()[member_.spec.kind]->description();
  if (auto complete = check_required(kind, member_.spec.values); !complete) return complete;
  if (auto count = parse_count(attributes); !count) return count;
  auto dressing = Dressing::parse(attributes, count_);
  if (!dressing) return std::unexpected(dressing.error());
  dressing_ = std::move(*dressing);
  member_.dressing = &dressing_;
  return check_dressing(member_);
}

}  // namespace

uint64_t bulk_range_product(const RequestAttributes& attributes) noexcept {
  uint64_t product = 1;
  attributes.each(kBulkRange, [&](const nlattr& nested) {
    const auto range = RequestAttributes::parse_nested(nested, kRangeSpecs);
    if (!range) return;
    const uint64_t first = range->u32(kRangeFirst).value_or(0);
    const uint64_t last = range->u32(kRangeLast).value_or(0);
    if (last >= first && last - first < kTagValues) product *= last - first + 1;
  });
  return product;
}

Result<std::unique_ptr<BulkMembers>> template_members(Connection& connection,
                                                      const RequestAttributes& attributes,
                                                      BulkDefaults defaults) {
  auto members = std::make_unique<TemplateMembers>(connection.dataplane().interfaces);
  if (auto parsed = members->parse(connection, attributes, defaults); !parsed)
    return std::unexpected(parsed.error());
  return members;
}

}  // namespace mayfly
