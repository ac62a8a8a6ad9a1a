// SPDX-License-Identifier: BSD-3-Clause
// kCmdLinkBulkDel: what a selector, a name pattern or a list of names means, deleted as one batch.
//
// Claim: the victims are found and marked, with everything stacked on them. Commit: cannot fail. Without
// kBulkForce one failure (an unknown name, a port) leaves everything as it was.
#include <linux/genetlink.h>

#include "control/bulk_result.hpp"
#include "control/handlers.hpp"
#include "control/interface_removal.hpp"
#include "control/link_request.hpp"
#include "control/netns_use.hpp"
#include "control/protocol.hpp"
#include "iface/name_pattern.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kStepsPerLook = 32;
constexpr size_t kMostListed = 16'000'000;

constexpr AttributeSpec kDeleteSpecs[] = {
    {kBulkName, AttributeSpec::Type::string, "name", 64},
    {kBulkCount, AttributeSpec::Type::u64, "count"},
    {kBulkSelector, AttributeSpec::Type::nested, "selector"},
    {kBulkListed, AttributeSpec::Type::flag, "listed"},
    {kBulkFlush, AttributeSpec::Type::flag, "flush"},
    {kBulkForce, AttributeSpec::Type::flag, "force"},
    {kBulkDryRun, AttributeSpec::Type::flag, "dry-run"},
    {kBulkWantProgress, AttributeSpec::Type::flag, "progress"},
    {kBulkSkipMissing, AttributeSpec::Type::flag, "skip missing"},
};

constexpr AttributeSpec kNamesSpecs[] = {
    {kBulkNameEntry, AttributeSpec::Type::string, "name", 255, true},
};

// Where a bulk delete's victims come from, one at a time.
class VictimSource {
 public:
  virtual ~VictimSource() = default;
  // kNoInterface when the next one failed (reported in result) or the deadline came; finished() tells.
  virtual uint32_t next(BulkResult& result, const Deadline& deadline) = 0;
  virtual bool finished() const = 0;
  virtual std::string describe() const = 0;
};

class SelectedVictims final : public VictimSource {
 public:
  SelectedVictims(const Dataplane& dataplane, const Selector& selector)
      : text_(describe_selector(dataplane, selector)), walk_(dataplane.interfaces, selector) {}
  uint32_t next(BulkResult&, const Deadline& deadline) override { return walk_.next(deadline); }
  bool finished() const override { return walk_.done(); }
  std::string describe() const override { return text_; }

 private:
  std::string text_;
  SelectorWalk walk_;
};

class NamedVictims final : public VictimSource {
 public:
  NamedVictims(const Dataplane& dataplane, const Netns& netns, NamePattern pattern, uint64_t count,
               bool skip_missing)
      : table_(dataplane.interfaces),
        netns_(netns),
        pattern_(std::move(pattern)),
        count_(count),
        skip_missing_(skip_missing) {}
  uint32_t next(BulkResult& result, const Deadline&) override {
    std::array<char, kInterfaceNameBytes> buffer;
    const std::string_view name = pattern_.format({next_, {}, 0, 0}, buffer);
    const uint64_t member = next_++;
    const uint32_t ifindex = table_.find(&netns_, name);
    if (ifindex == kNoInterface && !skip_missing_) {
      const std::string shown =
          name.empty() ? fmt::format("member {} of '{}'", member, pattern_.text()) : std::string(name);
      result.failed(shown, {ENODEV, fmt::format("interface '{}' does not exist", shown)});
    }
    return ifindex;
  }
  bool finished() const override { return next_ == count_; }
  std::string describe() const override { return fmt::format("name {} count {}", pattern_.text(), count_); }

 private:
  const InterfaceTable& table_;
  const Netns& netns_;
  NamePattern pattern_;
  uint64_t count_;
  bool skip_missing_;
  uint64_t next_ = 0;
};

// Everything in the namespace that can be deleted.
class NetnsVictims final : public VictimSource {
 public:
  NetnsVictims(const Dataplane& dataplane, const Netns& netns)
      : text_(fmt::format("everything in netns {}", netns.name)),
        table_(dataplane.interfaces),
        walk_(dataplane.interfaces, Selector::everything_in(netns)) {}
  uint32_t next(BulkResult&, const Deadline& deadline) override {
    const uint32_t ifindex = walk_.next(deadline);
    // Ports stay.
    return ifindex != kNoInterface && table_.interface(ifindex).kind == kPortKind ? kNoInterface : ifindex;
  }
  bool finished() const override { return walk_.done(); }
  std::string describe() const override { return text_; }

 private:
  std::string text_;
  const InterfaceTable& table_;
  SelectorWalk walk_;
};

class ListedVictims final : public VictimSource {
 public:
  ListedVictims(const Dataplane& dataplane, ListedInterfaces listed, BulkResult& result, bool skip_missing)
      : table_(dataplane.interfaces), listed_(std::move(listed)), skip_missing_(skip_missing) {
    if (skip_missing_) return;
    for (const auto& unknown : listed_.unknown)
      result.failed(unknown.name, {ENODEV, fmt::format("interface '{}' does not exist", unknown.name)});
    result.failed_beside(listed_.unknown_count - listed_.unknown.size());
  }
  uint32_t next(BulkResult& result, const Deadline&) override {
    const uint32_t ifindex = listed_.ifindexes[next_];
    const uint64_t id = listed_.ids[next_++];
    if (table_.exists(ifindex) && table_.interface(ifindex).id == id) return ifindex;
    if (!skip_missing_)
      result.failed(fmt::format("ifindex {}", ifindex), {ENODEV, "it was deleted meanwhile"});
    return kNoInterface;
  }
  bool finished() const override { return next_ == listed_.ifindexes.size(); }
  std::string describe() const override { return fmt::format("{} listed names", listed_.ifindexes.size()); }

 private:
  const InterfaceTable& table_;
  ListedInterfaces listed_;
  bool skip_missing_;
  size_t next_ = 0;
};

class BulkDelete final : public Operation {
 public:
  struct Options {
    bool force, dry_run, progress;
  };

  BulkDelete(Connection& connection, const nlmsghdr& request, std::unique_ptr<VictimSource> source,
             BulkResult result, Options options)
      : connection_(connection),
        request_(request),
        source_(std::move(source)),
        options_(options),
        use_(connection.netns()),
        result_(std::move(result)),
        removal_(connection.dataplane()) {}

  Progress step(const Deadline& deadline) override {
    if (options_.progress && !cancelled_)
      result_.tell_progress(connection_, request_, removal_.committed(), removal_.victims());
    if (phase_ == Phase::select && !select(deadline)) return Progress::more;
    if (phase_ == Phase::walk && !walk(deadline)) return Progress::more;
    if (phase_ == Phase::release) {
      if (!removal_.release(deadline)) return Progress::more;
      return finish();
    }
    RetireList& retired = connection_.retired();
    const uint64_t bytes_before = retired.bytes();
    const bool done = removal_.commit(retired, deadline);
    result_.to_reclaim_bytes += retired.bytes() - bytes_before;
    if (done || retired.objects() >= Reclaim::kSubmitEvery)
      connection_.dataplane().commit(retired);
    else
      connection_.dataplane().routes.commit(retired);
    result_.changed = removal_.committed();
    return done ? finish() : Progress::more;
  }

  bool cancel() override {
    cancelled_ = true;
    if (phase_ != Phase::commit) phase_ = Phase::release;
    return false;
  }

 private:
  enum class Phase { select, walk, commit, release };

  bool gives_up() const noexcept { return result_.failures() > 0 && !options_.force; }

  bool select(const Deadline& deadline) {
    for (uint64_t steps = 1; !source_->finished(); ++steps) {
      const uint32_t ifindex = source_->next(result_, deadline);
      if (ifindex != kNoInterface) {
        ++result_.matched;
        // The name is copied first: nothing of an interface is looked at once it is gone.
        if (auto added = removal_.add(ifindex); !added)
          result_.failed(connection_.dataplane().interfaces.record(ifindex).name, added.error());
      }
      if (steps % kStepsPerLook == 0 && deadline.over() && !source_->finished()) return false;
    }
    phase_ = gives_up() ? Phase::release : Phase::walk;
    return true;
  }

  bool walk(const Deadline& deadline) {
    auto walked = removal_.walk(deadline);
    if (!walked) {
      // With force, too: an interface that others are creating children on cannot go.
      result_.failed("children", walked.error());
      phase_ = Phase::release;
      return true;
    }
    if (!*walked) return false;
    matched_with_children_ = removal_.victims();
    result_.matched = std::max(result_.matched, matched_with_children_ + result_.failures());
    phase_ = options_.dry_run ? Phase::release : Phase::commit;
    return true;
  }

  Progress finish() {
    if (!cancelled_) {
      if (options_.dry_run && !gives_up()) result_.changed = matched_with_children_;
      result_.answer(connection_, request_, options_.force);
    }
    result_.log_line(connection_,
                     fmt::format("link del {}{}", source_->describe(), options_.dry_run ? " (dry run)" : ""));
    return Progress::done;
  }

  Connection& connection_;
  nlmsghdr request_;
  std::unique_ptr<VictimSource> source_;
  Options options_;
  NetnsUse use_;
  BulkResult result_;
  InterfaceRemoval removal_;
  Phase phase_ = Phase::select;
  uint64_t matched_with_children_ = 0;
  bool cancelled_ = false;
};

Result<std::unique_ptr<VictimSource>> source_of(Connection& connection, const RequestAttributes& attributes,
                                                BulkResult& result) {
  Dataplane& dataplane = connection.dataplane();
  const int ways = (attributes.has(kBulkName) ? 1 : 0) + (attributes.has(kBulkSelector) ? 1 : 0) +
                   (attributes.has(kBulkListed) ? 1 : 0) + (attributes.has(kBulkFlush) ? 1 : 0);
  if (ways != 1)
    return fail(EINVAL, "link del: exactly one of a selector, a name pattern, a list and flush is needed");
  const bool skip_missing = attributes.has(kBulkSkipMissing);
  if (attributes.has(kBulkFlush)) return std::make_unique<NetnsVictims>(dataplane, connection.netns());
  if (attributes.has(kBulkListed)) {
    ListedInterfaces listed = std::move(connection.listed());
    connection.listed() = {};
    return std::make_unique<ListedVictims>(dataplane, std::move(listed), result, skip_missing);
  }
  if (const auto name = attributes.string(kBulkName)) {
    auto pattern = NamePattern::parse(*name);
    if (!pattern) return std::unexpected(pattern.error());
    const uint64_t count = attributes.u64(kBulkCount).value_or(1);
    if (count == 0 || count > dataplane.interfaces.limit())
      return fail(ERANGE, "count {}: accepted 1..{}", count, dataplane.interfaces.limit());
    if (count > 1 && !pattern->varies())
      return fail(EINVAL, "name '{}': {} interfaces differ in a field like {{}}", *name, count);
    return std::make_unique<NamedVictims>(dataplane, connection.netns(), std::move(*pattern), count,
                                          skip_missing);
  }
  auto selector = parse_selector(dataplane, connection.netns(), attributes.find(kBulkSelector));
  if (!selector) return std::unexpected(selector.error());
  if (selector->empty())
    return fail(EINVAL, "link del: a selector without a condition means every interface and is refused");
  if (selector->group && *selector->group == 0)
    return fail(EINVAL, "group 0: it is the default group of every interface and is refused");
  return std::make_unique<SelectedVictims>(dataplane, *selector);
}

}  // namespace

HandlerResult handle_bulk_delete(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kDeleteSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  BulkResult result;
  auto source = source_of(connection, *attributes, result);
  if (!source) return std::unexpected(source.error());
  if (auto stays = check_stays(connection.netns()); !stays) return std::unexpected(stays.error());
  connection.start(std::make_unique<BulkDelete>(
      connection, request.header, std::move(*source), std::move(result),
      BulkDelete::Options{attributes->has(kBulkForce), attributes->has(kBulkDryRun),
                          attributes->has(kBulkWantProgress)}));
  return Handled::operation;
}

HandlerResult handle_bulk_names(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kNamesSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  ListedInterfaces& listed = connection.listed();
  const InterfaceTable& table = connection.dataplane().interfaces;
  Status status;
  attributes->each(kBulkNameEntry, [&](const nlattr& entry) {
    if (listed.ifindexes.size() + listed.unknown_count >= kMostListed) {
      status = fail(E2BIG, "names: more than {} were listed", kMostListed);
      return;
    }
    const std::string_view name = RequestAttributes::text(entry);
    if (const uint32_t ifindex = table.find(&connection.netns(), name); ifindex != kNoInterface) {
      listed.ifindexes.push_back(ifindex);
      listed.ids.push_back(table.interface(ifindex).id);
    } else {
      if (++listed.unknown_count <= 10) listed.unknown.push_back({std::string(name)});
    }
  });
  if (!status) return std::unexpected(status.error());
  return Handled::acknowledge;
}

}  // namespace mayfly
