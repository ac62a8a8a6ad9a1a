// SPDX-License-Identifier: BSD-3-Clause
// kCmdLinkBulkAdd: interfaces by the hundred thousand from one template.
//
// Two sliced passes. Claim: each member is named, validated and reserved; a conflict for others, invisible to
// look-ups. Commit: cannot fail. Without kBulkForce the first failure turns the second pass into giving
// everything back.
#include <linux/genetlink.h>
#include <linux/if_link.h>

#include "control/bulk_result.hpp"
#include "control/handlers.hpp"
#include "control/link_request.hpp"
#include "control/netns_use.hpp"
#include "control/protocol.hpp"
#include "iface/name_pattern.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kStepsPerLook = 32;
constexpr uint16_t kLongestPattern = 64;

constexpr AttributeSpec kBulkSpecs[] = {
    {kBulkName, AttributeSpec::Type::string, "name", kLongestPattern},
    {kBulkCount, AttributeSpec::Type::u64, "count"},
    {kBulkTemplate, AttributeSpec::Type::nested, "template"},
    {kBulkUp, AttributeSpec::Type::flag, "up"},
    {kBulkRange, AttributeSpec::Type::nested, "range", 0, true},
    {kBulkForce, AttributeSpec::Type::flag, "force"},
    {kBulkDryRun, AttributeSpec::Type::flag, "dry-run"},
    {kBulkWantProgress, AttributeSpec::Type::flag, "progress"},
};

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

// What is to be made, copied out of the message: the operation outlives it.
struct BulkPlan {
  NamePattern pattern;
  InterfaceSpec spec;
  std::string alias;
  std::string parent_name;
  std::optional<NamePattern> peer_pattern;
  std::vector<Range> ranges;  // the last one varies fastest
  uint64_t count = 0;
  bool force = false;
  bool dry_run = false;
  bool progress = false;
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

// The ranges, and a template whose required parameters the ranges may supply.
Status parse_ranges(const RequestAttributes& attributes, BulkPlan& plan) {
  const KindDescription& kind = interface_kinds()[plan.spec.kind]->description();
  Status status;
  attributes.each(kBulkRange, [&](const nlattr& nested) {
    if (!status) return;
    auto range = parse_range(kind, nested);
    if (!range) {
      status = std::unexpected(range.error());
      return;
    }
    for (const Range& other : plan.ranges)
      if (other.parameter == range->parameter)
        status =
            fail(EINVAL, "range: {} {} is given twice", kind.name, kind.parameters[range->parameter].word);
    plan.ranges.push_back(*range);
  });
  return status;
}

Status parse_count(const RequestAttributes& attributes, const InterfaceTable& table, BulkPlan& plan) {
  uint64_t product = plan.ranges.empty() ? 0 : 1;
  for (const Range& range : plan.ranges) product *= range.size();
  plan.count = attributes.u64(kBulkCount).value_or(product);
  if (plan.count == 0)
    return fail(EINVAL, "count: missing, and no range gives it; accepted 1..{}", table.limit());
  if (plan.count > table.limit()) return fail(ERANGE, "count {}: accepted 1..{}", plan.count, table.limit());
  if (product != 0 && plan.count > product)
    return fail(ERANGE, "count {}: the ranges give {} members only", plan.count, product);
  if (plan.count > 1 && !plan.pattern.varies())
    return fail(EINVAL, "name '{}': {} interfaces need a field like {{}} to differ in", plan.pattern.text(),
                plan.count);
  return {};
}

Result<BulkPlan> parse_plan(Connection& connection, const RequestAttributes& attributes) {
  BulkPlan plan;
  const nlattr* nested = attributes.find(kBulkTemplate);
  if (nested == nullptr) return fail(EINVAL, "template: missing");
  auto shared = RequestAttributes::parse_nested(*nested, link_attribute_specs());
  if (!shared) return std::unexpected(shared.error());
  if (shared->has(IFLA_IFNAME)) return fail(EINVAL, "template: the name is given as a pattern beside it");
  auto pattern = NamePattern::parse(attributes.string(kBulkName).value_or("{parent}.{outer}.{inner}"));
  if (!pattern) return std::unexpected(pattern.error());
  plan.pattern = std::move(*pattern);
  auto spec = parse_link_template(connection.dataplane(), connection.netns(), *shared);
  if (!spec) return std::unexpected(spec.error());
  plan.spec = *spec;
  plan.alias = spec->alias;
  plan.spec.up = attributes.has(kBulkUp);
  if (spec->peer) {
    auto of_peer = NamePattern::parse(spec->peer->name);
    if (!of_peer) return fail(of_peer.error().code, "peer: {}", of_peer.error().text);
    plan.peer_pattern = std::move(*of_peer);
  }
  if (spec->parent != kNoInterface)
    plan.parent_name = connection.dataplane().interfaces.record(spec->parent).name;
  if (auto ranges = parse_ranges(attributes, plan); !ranges) return std::unexpected(ranges.error());
  for (const Range& range : plan.ranges) plan.spec.values.set(range.parameter, 0);
  const KindDescription& kind = interface_kinds()[plan.spec.kind]->description();
  if (auto complete = check_required(kind, plan.spec.values); !complete)
    return std::unexpected(complete.error());
  if (auto count = parse_count(attributes, connection.dataplane().interfaces, plan); !count)
    return std::unexpected(count.error());
  plan.force = attributes.has(kBulkForce);
  plan.dry_run = attributes.has(kBulkDryRun);
  plan.progress = attributes.has(kBulkWantProgress);
  return plan;
}

class BulkAdd final : public Operation {
 public:
  BulkAdd(Connection& connection, const nlmsghdr& request, BulkPlan plan)
      : connection_(connection), request_(request), plan_(std::move(plan)), use_(*plan_.spec.netns) {
    plan_.spec.alias = plan_.alias;
    if (plan_.spec.peer) peer_use_.emplace(*plan_.spec.peer->netns);
    claimed_.reserve(plan_.count);
    for (const Range& range : plan_.ranges) at_.push_back(range.first);
    result_.matched = plan_.count;
  }

  Progress step(const Deadline& deadline) override {
    if (plan_.progress && !cancelled_)
      // The two passes count half each.
      result_.tell_progress(connection_, request_, (next_ + result_.changed) / 2, plan_.count);
    if (phase_ == Phase::claim && !claim(deadline)) return Progress::more;
    if (phase_ == Phase::claim)
      phase_ = plan_.dry_run || cancelled_ || (result_.failures() > 0 && !plan_.force) ? Phase::abandon
                                                                                       : Phase::commit;
    if (phase_ == Phase::commit ? !commit(deadline) : !abandon(deadline)) return Progress::more;
    if (!cancelled_) {
      if (plan_.dry_run) result_.changed = result_.matched - result_.failures();
      result_.answer(connection_, request_, plan_.force);
    }
    result_.log_line(connection_, fmt::format("link bulk add {}{}", plan_.pattern.text(),
                                              plan_.dry_run ? " (dry run)" : ""));
    return Progress::done;
  }

  bool cancel() override {
    cancelled_ = true;
    if (phase_ == Phase::claim) phase_ = Phase::abandon;
    return false;
  }

 private:
  enum class Phase { claim, commit, abandon };

  bool claim(const Deadline& deadline) {
    for (; next_ < plan_.count; ++next_) {
      if (next_ % kStepsPerLook == kStepsPerLook - 1 && deadline.over()) {
        // This member is still to come; the look at the clock must not repeat for ever.
        claim_one();
        ++next_;
        return next_ == plan_.count || stop_early();
      }
      claim_one();
      if (stop_early()) return true;
    }
    return true;
  }

  bool stop_early() const noexcept { return result_.failures() > 0 && !plan_.force && !plan_.dry_run; }

  void claim_one() {
    std::array<char, kInterfaceNameBytes> buffer;
    for (size_t i = 0; i < plan_.ranges.size(); ++i)
      plan_.spec.values.value[plan_.ranges[i].parameter] = static_cast<uint16_t>(at_[i]);
    const NameFields fields{next_, plan_.parent_name, tag(KindParameter::Role::outer),
                            tag(KindParameter::Role::inner)};
    plan_.spec.name = plan_.pattern.format(fields, buffer);
    std::array<char, kInterfaceNameBytes> peer_buffer;
    if (plan_.peer_pattern) plan_.spec.peer->name = plan_.peer_pattern->format(fields, peer_buffer);
    advance();
    if (plan_.spec.name.empty()) return too_long("name", plan_.pattern);
    if (plan_.peer_pattern && plan_.spec.peer->name.empty())
      return too_long("peer name", *plan_.peer_pattern);
    auto ifindex = connection_.dataplane().interfaces.claim(plan_.spec);
    if (ifindex)
      claimed_.push_back(*ifindex);
    else
      result_.failed(plan_.spec.name, std::move(ifindex.error()));
  }

  void too_long(std::string_view what, const NamePattern& pattern) {
    result_.failed(fmt::format("member {}", next_),
                   {EINVAL, fmt::format("{} '{}': longer than 15 characters for member {}", what,
                                        pattern.text(), next_)});
  }

  // The value of the parameter that is this tag, for {outer} and {inner} in names.
  uint16_t tag(KindParameter::Role role) const noexcept {
    const auto parameters = interface_kinds()[plan_.spec.kind]->description().parameters;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (parameters[i].role == role) return plan_.spec.values.value[i];
    return 0;
  }

  void advance() noexcept {
    for (size_t i = plan_.ranges.size(); i-- > 0;) {
      if (at_[i]++ < plan_.ranges[i].last) return;
      at_[i] = plan_.ranges[i].first;
    }
  }

  bool commit(const Deadline& deadline) {
    Dataplane& dataplane = connection_.dataplane();
    while (result_.changed < claimed_.size()) {
      const uint32_t ifindex = claimed_[result_.changed++];
      dataplane.interfaces.commit(ifindex);
      dataplane.link_events.appeared(dataplane, ifindex);
      if (result_.changed % kStepsPerLook == 0 && deadline.over()) return result_.changed == claimed_.size();
    }
    return true;
  }

  bool abandon(const Deadline& deadline) {
    Dataplane& dataplane = connection_.dataplane();
    RetireList retired;
    while (!claimed_.empty()) {
      dataplane.interfaces.abandon(claimed_.back(), retired);
      claimed_.pop_back();
      if (claimed_.size() % kStepsPerLook == 0 && deadline.over()) break;
    }
    dataplane.reclaim.submit(retired);
    return claimed_.empty();
  }

  Connection& connection_;
  nlmsghdr request_;
  BulkPlan plan_;
  NetnsUse use_;
  std::optional<NetnsUse> peer_use_;
  BulkResult result_;
  Phase phase_ = Phase::claim;
  bool cancelled_ = false;
  uint64_t next_ = 0;
  std::vector<uint32_t> at_;       // the ranges' present values
  std::vector<uint32_t> claimed_;  // ifindexes; no one else can free a claimed number
};

}  // namespace

uint64_t bulk_add_objects(std::span<const std::byte> bytes) noexcept {
  auto attributes = RequestAttributes::parse(bytes, kBulkSpecs);
  if (!attributes) return 0;
  if (const auto count = attributes->u64(kBulkCount)) return *count;
  uint64_t product = 1;
  attributes->each(kBulkRange, [&](const nlattr& nested) {
    const auto range = RequestAttributes::parse_nested(nested, kRangeSpecs);
    if (!range) return;
    const uint64_t first = range->u32(kRangeFirst).value_or(0);
    const uint64_t last = range->u32(kRangeLast).value_or(0);
    if (last >= first && last - first < kTagValues) product *= last - first + 1;
  });
  return product;
}

HandlerResult handle_bulk_add(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kBulkSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  auto plan = parse_plan(connection, *attributes);
  if (!plan) return std::unexpected(plan.error());
  connection.start(std::make_unique<BulkAdd>(connection, request.header, std::move(*plan)));
  return Handled::operation;
}

}  // namespace mayfly
