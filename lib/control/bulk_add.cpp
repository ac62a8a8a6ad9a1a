// SPDX-License-Identifier: BSD-3-Clause
// kCmdLinkBulkAdd: interfaces by the hundred thousand, from one template or listed one by one; with
// kBulkReplace the resync of a control plane with what is there.
//
//   match   (replace) each member is looked up: missing, equal, to be changed in place, or in the way
//   sweep   (replace) members of the group that are not listed are marked, and what stands on them
//   claim   what is missing is validated and reserved: a conflict for others, invisible to look-ups
//   commit  it appears, with its dressing; then the changes in place; then what is marked is retired
//
// Each is sliced. Up to the end of claim nothing is changed, and without kBulkForce the first failure gives
// everything back. From then on only memory can run out: while members appear, that takes back those before
// it.
//
// With kBulkForce what is possible is done. Then what is marked goes first, so that a member may get a name
// or a tag that another interface had: one whose type, parent or key differs is deleted and created anew.
// Without it that is refused: once the old one is gone, nothing could bring it back.
#include <linux/genetlink.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "control/bulk_match.hpp"
#include "control/bulk_members.hpp"
#include "control/bulk_result.hpp"
#include "control/handlers.hpp"
#include "control/interface_removal.hpp"
#include "control/link_change.hpp"
#include "control/netns_use.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr uint64_t kStepsPerLook = 32;  // interfaces without dressing
constexpr uint16_t kLongestPattern = 64;

constexpr AttributeSpec kBulkSpecs[] = {
    {kBulkName, AttributeSpec::Type::string, "name", kLongestPattern},
    {kBulkCount, AttributeSpec::Type::u64, "count"},
    {kBulkTemplate, AttributeSpec::Type::nested, "template"},
    {kBulkUp, AttributeSpec::Type::flag, "up"},
    {kBulkDown, AttributeSpec::Type::flag, "down"},
    {kBulkRange, AttributeSpec::Type::nested, "range", 0, true},
    {kBulkForce, AttributeSpec::Type::flag, "force"},
    {kBulkDryRun, AttributeSpec::Type::flag, "dry-run"},
    {kBulkWantProgress, AttributeSpec::Type::flag, "progress"},
    {kBulkListed, AttributeSpec::Type::flag, "listed"},
    {kBulkReplace, AttributeSpec::Type::flag, "replace"},
    {kBulkSweepGroup, AttributeSpec::Type::u32, "sweep group"},
    {kBulkAddress, AttributeSpec::Type::nested, "addr", 0, true},
    {kBulkRoute, AttributeSpec::Type::nested, "route", 0, true},
    {kBulkNeighbour, AttributeSpec::Type::nested, "neigh", 0, true},
};

struct Options {
  bool force = false;
  bool dry_run = false;
  bool progress = false;
  bool replace = false;
  std::optional<uint32_t> sweep;
};

// What became of a member so far.
enum class Fate : uint8_t { open, failed, kept, change, replace, claimed };

class BulkAdd final : public Operation {
 public:
  BulkAdd(Connection& connection, const nlmsghdr& request, std::unique_ptr<BulkMembers> members,
          Options options)
      : connection_(connection),
        dataplane_(connection.dataplane()),
        request_(request),
        members_(std::move(members)),
        options_(options),
        fates_(members_->count(), Fate::open),
        removal_(dataplane_) {
    uses_.try_emplace(&connection.netns(), connection.netns());
    for (Netns* netns : members_->kept_netns()) uses_.try_emplace(netns, *netns);
    claimed_.reserve(members_->count());
    if (options_.replace) {
      listed_.resize(size_t{dataplane_.interfaces.limit()} + 1);
      result_.replaced.emplace();
    }
    result_.matched = members_->count();
    enter(options_.replace ? Phase::match : Phase::claim);
  }

  Progress step(const Deadline& deadline) override {
    if (options_.progress && !cancelled_)
      result_.tell_progress(connection_, request_,
                            passes_ * members_->count() + std::max(members_->number(), committed_),
                            (options_.replace ? 4 : 2) * members_->count());
    while (run(deadline))
      if (phase_ == Phase::done) {
        finish();
        return Progress::done;
      }
    return Progress::more;
  }

  bool cancel() override {
    cancelled_ = true;
    if (phase_ < Phase::commit) give_up();
    return false;
  }

 private:
  // In the order of a request that is not forced, but for the last three: giving back.
  enum class Phase { match, sweep, walk, claim, commit, change, down, retire, undo, abandon, release, done };

  void enter(Phase phase) {
    phase_ = phase;
    members_->rewind();
    ++passes_;
  }

  bool stopped() const noexcept { return result_.failures() > 0 && !options_.force && !options_.dry_run; }
  void give_up() { phase_ = Phase::abandon; }

  // Work on the present phase; true when it is over and the next one is entered.
  bool run(const Deadline& deadline) {
    switch (phase_) {
      case Phase::match:
        if (!each_member(deadline, [this] { match_one(); })) return false;
        begin_sweep();
        return true;
      case Phase::sweep:
        return sweep(deadline);
      case Phase::walk:
        return walk(deadline);
      case Phase::claim:
        if (!each_member(deadline, [this] { claim_one(); })) return false;
        if (options_.dry_run || stopped())
          give_up();
        else
          enter(Phase::commit);
        return true;
      case Phase::commit:
        return commit(deadline);
      case Phase::change:
        if (!each_member(deadline, [this] { change_one(); })) return publish();
        phase_ = Phase::down;
        return true;
      case Phase::down:
        if (!go_down(deadline)) return publish();
        publish();
        phase_ = options_.force ? Phase::done : Phase::retire;
        return true;
      case Phase::retire:
        return retire(deadline);
      case Phase::undo:
        return undo(deadline);
      case Phase::abandon:
        if (!abandon(deadline)) return false;
        phase_ = Phase::release;
        return true;
      case Phase::release:
        if (!removal_.release(deadline)) return false;
        phase_ = Phase::done;
        return true;
      case Phase::done:
        return true;
    }
    return true;
  }

  // The present pass over all members; false when the deadline came first. Ends early once all is lost.
  template <class Each>
  bool each_member(const Deadline& deadline, Each each) {
    for (uint64_t steps = 0; !members_->done();) {
      each();
      members_->advance();
      if (stopped() && phase_ <= Phase::claim) return true;
      steps += members_->weight();
      if (steps < kStepsPerLook) continue;
      steps = 0;
      if (deadline.over() && !members_->done()) return false;
    }
    return true;
  }

  Fate& fate() noexcept { return fates_[members_->number()]; }

  void failed(std::string_view name, Error error) {
    fate() = Fate::failed;
    result_.failed(name.empty() ? fmt::format("member {}", members_->number()) : std::string(name),
                   std::move(error), members_->number());
  }

  // The present member with its namespaces held.
  const BulkMember* make() {
    auto made = members_->make();
    if (!made) {
      failed(members_->name(), std::move(made.error()));
      return nullptr;
    }
    uses_.try_emplace((*made)->spec.netns, *(*made)->spec.netns);
    if (const auto& peer = (*made)->spec.peer) uses_.try_emplace(peer->netns, *peer->netns);
    return *made;
  }

  void match_one() {
    const InterfaceTable& table = dataplane_.interfaces;
    const BulkMember* member = make();
    if (member == nullptr) {
      // What is wrong is its description: it is listed, and not swept.
      listed_[table.find(&connection_.netns(), members_->name())] = true;
      return;
    }
    const InterfaceSpec& spec = member->spec;
    const uint32_t ifindex = table.find(spec.netns, spec.name);
    if (ifindex == kNoInterface) return hold_parents(spec.parent);
    if (listed_[ifindex]) return failed(spec.name, {EEXIST, "it is listed twice"});
    listed_[ifindex] = true;
    auto match = match_link(dataplane_, *member, ifindex);
    if (!match) return failed(spec.name, std::move(match.error()));
    if (*match == Match::replaced) return replace_one(spec, ifindex);
    for (uint32_t at = table.record(ifindex).parent; at != kNoInterface; at = table.record(at).parent)
      if (table.marked_by(at, removal_.number()))
        return failed(spec.name, {EBUSY, fmt::format("it stands on '{}', which is created anew: replace that "
                                                     "before, by itself",
                                                     table.record(at).name)});
    hold_parents(table.record(ifindex).parent);
    if (*match == Match::kept) ++result_.replaced->kept;
    fate() = *match == Match::kept ? Fate::kept : Fate::change;
  }

  // What it stands on is not swept.
  void hold_parents(uint32_t ifindex) {
    for (; ifindex != kNoInterface; ifindex = dataplane_.interfaces.record(ifindex).parent)
      parents_.insert(ifindex);
  }

  void replace_one(const InterfaceSpec& spec, uint32_t ifindex) {
    if (!options_.force)
      return failed(spec.name, {EEXIST,
                                "it exists with another type, link or key, which do not change: delete it "
                                "before, or replace it with -force"});
    if (parents_.contains(ifindex))
      return failed(spec.name,
                    {EBUSY, "it would be deleted and created anew, but what is listed stands on it"});
    if (auto added = removal_.add(ifindex); !added) return failed(spec.name, std::move(added.error()));
    hold_parents(spec.parent);
    fate() = Fate::replace;
  }

  void begin_sweep() {
    if (stopped()) return give_up();
    phase_ = Phase::sweep;
    if (!options_.sweep) {
      phase_ = Phase::walk;
      return;
    }
    Selector selector;
    selector.netns = &connection_.netns();
    selector.group = options_.sweep;
    walk_.emplace(dataplane_.interfaces, selector);
  }

  bool sweep(const Deadline& deadline) {
    while (!walk_->done()) {
      if (const uint32_t ifindex = walk_->next(deadline); ifindex != kNoInterface) sweep_one(ifindex);
      if (deadline.over() && !walk_->done()) return false;
    }
    phase_ = Phase::walk;
    if (stopped()) give_up();
    return true;
  }

  // Ports come with their devices and stay; so does the other end of a pair that is listed.
  void sweep_one(uint32_t ifindex) {
    const InterfaceTable& table = dataplane_.interfaces;
    const uint32_t peer = table.peer(ifindex);
    if (listed_[ifindex] || (peer != kNoInterface && listed_[peer]) ||
        table.interface(ifindex).kind == kPortKind)
      return;
    ++result_.matched;
    const char* name = table.record(ifindex).name;
    if (parents_.contains(ifindex) || parents_.contains(peer)) {
      result_.failed(name, {EBUSY, fmt::format("group {}: it is not listed, but what is listed stands on it",
                                               *options_.sweep)});
      return;
    }
    if (auto added = removal_.add(ifindex); !added) result_.failed(name, std::move(added.error()));
  }

  bool walk(const Deadline& deadline) {
    auto walked = removal_.walk(deadline);
    if (!walked) {
      // With force, too: an interface that others are creating children on cannot go.
      result_.failed("children", std::move(walked.error()));
      give_up();
      return true;
    }
    if (!*walked) return false;
    victims_ = removal_.victims();
    if (options_.force && !options_.dry_run)
      phase_ = Phase::retire;
    else
      enter(Phase::claim);
    return true;
  }

  bool retire(const Deadline& deadline) {
    RetireList& retired = connection_.retired();
    const uint64_t before = retired.bytes();
    const bool done = removal_.commit(retired, deadline);
    result_.to_reclaim_bytes += retired.bytes() - before;
    if (result_.replaced) result_.replaced->deleted = removal_.committed();
    publish();
    if (!done) return false;
    if (options_.force && !cancelled_)
      enter(Phase::claim);
    else
      phase_ = Phase::done;
    return true;
  }

  void claim_one() {
    if (fate() == Fate::replace && options_.dry_run) {
      ++would_create_;
      return;
    }
    if (fate() != Fate::open && fate() != Fate::replace) return;
    const BulkMember* member = make();
    if (member == nullptr) return;
    auto ifindex = dataplane_.interfaces.claim(member->spec);
    if (!ifindex) return failed(member->spec.name, explained(member->spec, std::move(ifindex.error())));
    claimed_.push_back(*ifindex);
    fate() = Fate::claimed;
    dressed_ |= !member->dressing->empty();
  }

  // A name that is only claimed is invisible to whoever is told about it.
  Error explained(const InterfaceSpec& spec, Error error) const {
    const InterfaceTable& table = dataplane_.interfaces;
    if (error.code == EEXIST && table.name_taken(spec.netns, spec.name) &&
        table.find(spec.netns, spec.name) == kNoInterface)
      error.text =
          fmt::format("name '{}': it is listed twice, or being created by another request", spec.name);
    return error;
  }

  bool commit(const Deadline& deadline) {
    if (dressed_) return commit_dressed(deadline);
    while (committed_ < claimed_.size()) {
      appear(claimed_[committed_++]);
      if (committed_ % kStepsPerLook == 0 && deadline.over() && committed_ < claimed_.size()) return false;
    }
    all_there();
    return true;
  }

  void all_there() {
    committed_ = 0;
    enter(options_.replace ? Phase::change : Phase::done);
  }

  void appear(uint32_t ifindex) {
    dataplane_.interfaces.commit(ifindex);
    dataplane_.link_events.appeared(dataplane_, ifindex);
    ++created_;
  }

  bool commit_dressed(const Deadline& deadline) {
    const bool over = each_member(deadline, [this] {
      if (phase_ == Phase::commit && fate() == Fate::claimed) dress_one();
    });
    publish();
    if (phase_ != Phase::commit) return true;
    if (!over) return false;
    all_there();
    return true;
  }

  void dress_one() {
    const uint32_t ifindex = claimed_[committed_++];
    const uint64_t id = dataplane_.interfaces.interface(ifindex).id;
    RetireList& retired = connection_.retired();
    auto worn = members_->dressing().apply(dataplane_, ifindex, members_->step(), retired);
    if (worn) {
      appear(ifindex);
      if (!options_.force) appeared_.push_back({ifindex, id});
      return;
    }
    failed(dataplane_.interfaces.record(ifindex).name, std::move(worn.error()));
    dataplane_.interfaces.abandon(ifindex, retired);
    if (options_.force) return;
    // Those behind it are only claimed.
    claimed_.erase(claimed_.begin(), claimed_.begin() + static_cast<ptrdiff_t>(committed_));
    committed_ = 0;
    phase_ = Phase::undo;
  }

  // What appeared goes again; what others did with it in the meantime goes with it.
  bool undo(const Deadline& deadline) {
    const InterfaceTable& table = dataplane_.interfaces;
    if (!undo_) undo_.emplace(dataplane_);
    for (uint64_t steps = 1; !appeared_.empty(); ++steps) {
      const Appeared last = appeared_.back();
      appeared_.pop_back();
      // One that is being deleted already needs no help.
      if (table.exists(last.ifindex) && table.interface(last.ifindex).id == last.id &&
          table.state(last.ifindex) == InterfaceState::live) [[maybe_unused]]
        auto added = undo_->add(last.ifindex);
      if (steps % kStepsPerLook == 0 && deadline.over()) return false;
    }
    const auto walked = undo_->walk(deadline);
    if (walked && !*walked) return false;
    if (!walked) {
      result_.incomplete = true;
      if (!undo_->release(deadline)) return false;
    } else {
      const bool over = undo_->commit(connection_.retired(), deadline);
      publish();
      if (!over) return false;
      created_ = 0;
    }
    give_up();
    return true;
  }

  void change_one() {
    if (fate() != Fate::change) return;
    const BulkMember* member = make();
    if (member == nullptr) {
      result_.incomplete = true;
      return;
    }
    const uint32_t ifindex = dataplane_.interfaces.find(member->spec.netns, member->spec.name);
    Result<bool> changed = true;
    if (ifindex == kNoInterface) {
      changed = fail(ENODEV, "it was deleted meanwhile");
    } else if (auto match = match_link(dataplane_, *member, ifindex); !match) {
      changed = std::unexpected(match.error());
    } else if (*match == Match::replaced) {
      changed = fail(EEXIST, "it was replaced by another one meanwhile");
    } else if (*match == Match::changed) {
      changed = change_link_in_place(dataplane_, *member, ifindex, connection_.retired());
    }
    if (changed) {
      ++result_.changed;
      if (!*changed) going_down_.push_back(ifindex);
      return;
    }
    failed(member->spec.name, std::move(changed.error()));
    result_.incomplete = true;
  }

  // Those that lead to very many routes; nobody else touches them meanwhile.
  bool go_down(const Deadline& deadline) {
    for (; !going_down_.empty(); going_down_.pop_back())
      if (!finish_link_down(dataplane_, going_down_.back(), connection_.retired(), deadline)) return false;
    return true;
  }

  // Routes and blocks of this slice; false, for those who have more to do.
  bool publish() {
    RetireList& retired = connection_.retired();
    if (retired.objects() >= Reclaim::kSubmitEvery)
      dataplane_.commit(retired);
    else
      dataplane_.routes.commit(retired);
    return false;
  }

  bool abandon(const Deadline& deadline) {
    RetireList retired;
    while (!claimed_.empty()) {
      dataplane_.interfaces.abandon(claimed_.back(), retired);
      claimed_.pop_back();
      ++would_create_;
      if (claimed_.size() % kStepsPerLook == 0 && deadline.over()) break;
    }
    dataplane_.reclaim.submit(retired);
    return claimed_.empty();
  }

  void finish() {
    dataplane_.commit(connection_.retired());
    if (options_.dry_run) {
      created_ = would_create_;
      if (result_.replaced) {
        result_.changed = static_cast<uint64_t>(std::ranges::count(fates_, Fate::change));
        result_.replaced->deleted = victims_;
      }
    } else if (stopped() && !result_.incomplete && result_.replaced) {
      result_.replaced = BulkResult::Replaced{};
    }
    if (result_.replaced) {
      result_.replaced->created = created_;
      result_.matched = std::max(result_.matched, result_.replaced->kept + result_.changed + created_ +
                                                      result_.replaced->deleted + result_.failures());
    } else {
      result_.changed = created_;
    }
    if (!cancelled_) result_.answer(connection_, request_, options_.force);
    result_.log_line(connection_, describe());
  }

  std::string describe() const {
    std::string text =
        fmt::format("link bulk {} {}", options_.replace ? "replace" : "add", members_->describe());
    if (options_.sweep) text += fmt::format(" sweep group {}", *options_.sweep);
    if (options_.dry_run) text += " (dry run)";
    return text;
  }

  struct Appeared {
    uint32_t ifindex;
    uint64_t id;
  };

  Connection& connection_;
  Dataplane& dataplane_;
  nlmsghdr request_;
  std::unique_ptr<BulkMembers> members_;
  Options options_;
  std::unordered_map<Netns*, NetnsUse> uses_;
  BulkResult result_;
  Phase phase_ = Phase::claim;
  bool cancelled_ = false;
  uint64_t passes_ = UINT64_MAX;   // entered so far, the first one not counted
  std::vector<Fate> fates_;        // of each member
  std::vector<uint32_t> claimed_;  // ifindexes; no one else can free a claimed number
  uint64_t committed_ = 0;         // of claimed_
  uint64_t created_ = 0;
  uint64_t would_create_ = 0;
  bool dressed_ = false;
  std::vector<Appeared> appeared_;  // dressed ones, in case that they must go again
  std::optional<InterfaceRemoval> undo_;

  // Replace only.
  std::vector<uint32_t> going_down_;
  std::vector<bool> listed_;              // by ifindex: a member's name led there
  std::unordered_set<uint32_t> parents_;  // what members stand on
  std::optional<SelectorWalk> walk_;
  InterfaceRemoval removal_;
  uint64_t victims_ = 0;
};

Result<Options> parse_options(const RequestAttributes& attributes) {
  Options options;
  options.force = attributes.has(kBulkForce);
  options.dry_run = attributes.has(kBulkDryRun);
  options.progress = attributes.has(kBulkWantProgress);
  options.replace = attributes.has(kBulkReplace);
  options.sweep = attributes.u32(kBulkSweepGroup);
  if (options.sweep && !options.replace)
    return fail_attribute(kBulkSweepGroup, EINVAL, "sweep group {}: goes with replace", *options.sweep);
  if (options.sweep && *options.sweep == 0)
    return fail_attribute(kBulkSweepGroup, EINVAL,
                          "sweep group 0: it is the default group of every interface and is refused");
  return options;
}

}  // namespace

uint64_t bulk_add_objects(std::span<const std::byte> bytes) noexcept {
  auto attributes = RequestAttributes::parse(bytes, kBulkSpecs);
  if (!attributes) return 0;
  return attributes->u64(kBulkCount).value_or(bulk_range_product(*attributes));
}

HandlerResult handle_bulk_add(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kBulkSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  // Whatever becomes of the request, it uses up the list.
  const bool listed = attributes->has(kBulkListed);
  ListedItems items = listed ? std::exchange(connection.items(), {}) : ListedItems{};
  if (auto stays = check_stays(connection.netns()); !stays) return std::unexpected(stays.error());
  auto options = parse_options(*attributes);
  if (!options) return std::unexpected(options.error());
  const BulkDefaults defaults{options->sweep};
  auto members = listed ? listed_members(connection, *attributes, std::move(items), defaults)
                        : template_members(connection, *attributes, defaults);
  if (!members) return std::unexpected(members.error());
  if ((*members)->count() == 0 && !(options->sweep && options->force))
    return options->sweep
               ? fail(EINVAL, "nothing is listed: all of group {} would be deleted, which only -force does",
                      *options->sweep)
               : fail(EINVAL, "nothing is listed");
  connection.start(std::make_unique<BulkAdd>(connection, request.header, std::move(*members), *options));
  return Handled::operation;
}

}  // namespace mayfly
