// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What can be retired, and the local queue a request gathers it on.
//
// An object that workers could reach starts with a Retired: a link of liburcu's wait-free queue, its kind,
// and the bytes it accounts for. Its life:
//
//   live -> unlinked -> retire (RetireList) -> submit (Reclaim) -> one grace period for the batch
//        -> dismantle and drain (teardown worker) -> take_back (control thread)
//
// A new kind of retired object is one RetiredKind: what it contains, what holds it, and to
// whom its number or memory goes back.

#include <urcu/wfcqueue.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mayfly {

using RetiredKindId = uint16_t;

struct Retired {
  cds_wfcq_node link;
  uint32_t bytes;  // what it accounts for in the backlog, its contents included
  RetiredKindId kind;
  uint16_t reserved;
};
static_assert(sizeof(Retired) == 16);

// Owner of numbers or memory that come back from teardown: an interface table, a pool.
class Returnable {
 public:
  virtual ~Returnable() = default;
  // Control thread, sliced: the number may be given to somebody else from now on.
  virtual void take_back(uint32_t token) noexcept = 0;
};

// What a teardown worker hands back: tokens grouped by owner.
class Returns {
 public:
  void add(Returnable& owner, uint32_t token) {
    if (groups_.empty() || groups_.back().owner != &owner) group_of(owner);
    groups_.back().tokens.push_back(token);
  }

  struct Group {
    Returnable* owner;
    std::vector<uint32_t> tokens;
  };
  std::vector<Group>& groups() noexcept { return groups_; }

 private:
  void group_of(Returnable& owner);
  std::vector<Group> groups_;
};

// Who keeps an object from being reclaimed: for `reclaim show` and the warning after ten seconds.
struct Holder {
  uint32_t worker = 0;
  uint64_t references = 0;
  std::string what;  // "neighbour queue"
};

class RetiredKind {
 public:
  // Registers the kind. Created and destroyed while nothing is in teardown; it outlives its objects.
  explicit RetiredKind(std::string_view name);
  virtual ~RetiredKind();
  RetiredKind(const RetiredKind&) = delete;
  RetiredKind& operator=(const RetiredKind&) = delete;

  RetiredKindId id() const noexcept { return id_; }
  std::string_view name() const noexcept { return name_; }

  // Teardown worker, after the grace period, which owns the object alone: takes its contents apart and adds
  // what they were made of to returns. Called once.
  virtual void dismantle(Retired& object, Returns& returns) const = 0;
  // Teardown worker, after dismantle: whether every worker's count of references is zero (their sum is not
  // enough, see architecture.md). Called again until it is true.
  virtual bool drained(const Retired& object) const;
  // Teardown worker, once drained: gives the object itself back. It is not touched afterwards.
  virtual void reclaim(Retired& object, Returns& returns) const = 0;
  // Teardown worker: a name for people, and who holds it.
  virtual std::string describe(const Retired& object) const;
  virtual std::vector<Holder> holders(const Retired& object) const;

  static const RetiredKind& of(RetiredKindId id) noexcept;

 private:
  RetiredKindId id_;
  std::string_view name_;
};

// The queue of one request: what it retires dies together. Control thread only.
class RetireList {
 public:
  RetireList() noexcept;
  ~RetireList();
  RetireList(const RetireList&) = delete;
  RetireList& operator=(const RetireList&) = delete;

  // The object is unlinked from everything workers read. Constant time, cannot fail.
  void retire(Retired& object) noexcept;

  uint64_t objects() const noexcept { return objects_; }
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  friend class Reclaim;
  __cds_wfcq_head head_;
  cds_wfcq_tail tail_;
  uint64_t objects_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace mayfly
