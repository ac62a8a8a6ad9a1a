// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// All ports, as the control thread sees them, and the queue lists that workers read.
//
//   begin_add -> starting -> (port thread) -> running      its interface exists and is up, its queues are
//   published
//                                          -> failed       with the reason; nothing is left of the device
//   running -> gone      the device vanished: queues unpublished, its interface stays, without a carrier
//   begin_remove -> stopping: queues unpublished -> grace period (lib/reclaim) -> (port thread) closed ->
//   gone
//
// Every call: control thread, constant time or proportional to ports and workers; none waits. Results arrive
// with poll_completions(), as one PortEvent each; whoever asked for a cookie with expect_answer() finds its
// own with answer(). A device that is gone is closed by begin_remove() only: until then its ethdev number,
// which its interface and those stacked on it carry, can not become another device's. The port thread belongs
// to whoever created it and outlives the table.
//
// Order at the end: workers stop, Reclaim::stop(), shutdown(), then the table, the mbuf pool and the EAL go.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "port/port.hpp"
#include "port/port_thread.hpp"
#include "port/queue_list.hpp"

namespace mayfly {

enum class PortState : uint8_t { starting, running, stopping, failed, gone };
std::string_view describe(PortState state) noexcept;

struct Port {
  PortSettings settings;
  PortState state = PortState::starting;
  PortInfo info;                    // from running on
  PortCounters counters;            // as of the last refresh
  Error error;                      // failed and gone only
  uint32_t ifindex = kNoInterface;  // its interface
  uint64_t interface_id = 0;
  std::vector<uint32_t> workers;  // by receive queue: which worker polls it
};

struct PortEvent {
  enum class Type : uint8_t {
    added,         // it runs; its interface is live
    failed,        // result says why
    removed,       // the device is closed
    changed,       // an answer to begin_set_*: result says whether
    link_changed,  // info.link_up differs from before; its interface's carrier, too
    gone,          // the device vanished
  };
  Type type;
  std::string name;
  uint64_t cookie = 0;  // of the request
  Status result;
};

class PortTable final : public Returnable {
 public:
  // netns: where the interfaces of ports appear. Publishes an empty list a worker. ENOBUFS without blocks for
  // them.
  static Result<std::unique_ptr<PortTable>> create(PortThread& thread, InterfaceTable& interfaces,
                                                   Netns* netns);
  // As shutdown().
  ~PortTable() override;

  // Workers, online: see queue_list.hpp.
  const PublishedQueueList& queues(uint32_t worker) const noexcept { return queues_[worker]; }

  // EEXIST: a port, an interface or a device of this name; a failed port is replaced. EINVAL: name, number of
  // queues. settings.tx_queues is the number of workers, whatever it says. keep_failed: one that fails stays
  // in the table with its reason, until it is added again or removed.
  Status begin_add(PortSettings settings, uint64_t cookie = 0, bool keep_failed = true);
  // The port's interface is gone already, and so are those stacked on it: the caller retires them first, on
  // the same list. ENODEV: no such port. EBUSY: it is still starting or stopping, or has its interface.
  Status begin_remove(std::string_view name, RetireList& list, uint64_t cookie = 0);
  // The port runs. Its interface follows when the device has accepted; a lowered MTU lowers the interface's
  // too.
  Status begin_set_mtu(std::string_view name, uint32_t mtu, uint64_t cookie = 0);
  Status begin_set_mac(std::string_view name, Mac mac, uint64_t cookie = 0);
  Status begin_set_promiscuous(std::string_view name, bool on, uint64_t cookie = 0);
  // The driver's own counters, with its answer.
  Status begin_read_xstats(std::string_view name, uint64_t cookie);

  // A cookie whose answer is kept until it is taken or forgotten.
  uint64_t expect_answer();
  struct Answer {
    Status result;
    ExtendedCounters xstats;
  };
  // nullopt: not yet.
  std::optional<Answer> answer(uint64_t cookie);
  void forget_answer(uint64_t cookie) { awaited_.erase(cookie); }

  // Tells devices that are not promiscuous which addresses stacked interfaces have of their own, where that
  // changed. Cheap when nothing did: for every round of the control loop.
  void sync_filters();
  // Link and counters of every running port, afresh. Nothing while the answers of the last time are still on
  // their way.
  void refresh();

  // Readable (for epoll) when poll_completions() has something to do.
  int completion_fd() const noexcept { return thread_.completion_fd(); }
  // What is retired here goes on the list; the caller submits it. visit may call the table.
  void poll_completions(RetireList& list, const std::function<void(const PortEvent&)>& visit);

  // nullptr when there is none. Valid until the next call that is not const.
  const Port* find(std::string_view name) const noexcept;
  const Port* find_ethdev(uint16_t port) const noexcept;
  // In the order they were added.
  std::vector<const Port*> all() const;

  // No worker runs any more and nothing is in teardown. Unpublishes everything, closes every device and joins
  // the port thread: blocks, some 30 ms a port. Interfaces of ports stay in their table.
  void shutdown();

  // A removed port's grace period is over.
  void take_back(uint32_t slot) noexcept override;

 private:
  struct Entry : Port {
    uint64_t remove_cookie = 0;
    bool keep_failed = true;
    bool filter_in_flight = false;
    uint64_t filter_changes = 0;  // of OwnMacs, that the device was told
    bool undoing = false;         // failed, and the port thread has yet to close the device
    // Blocks put aside for the lists without this port, so that a removal can not fail.
    std::vector<QueueList*> spares;
  };

  PortTable(PortThread& thread, InterfaceTable& interfaces, Netns* netns);
  uint32_t worker_count() const noexcept { return interfaces_.workers(); }
  Status check_settings(const PortSettings& settings) const;
  Result<uint32_t> running_slot(std::string_view name) const;
  uint32_t slot_of(std::string_view name) const noexcept;

  void finish_add(uint32_t slot, PortReply& reply, RetireList& list, PortEvent& event);
  Status go_live(Entry& entry, RetireList& list);
  Status claim_interface(Entry& entry);
  void finish_change(Entry& entry, PortReply& reply, PortEvent& event);
  Status follow_device(const Entry& entry, PortRequest::Type change);
  bool finish_refresh(uint32_t slot, PortReply& reply, RetireList& list, PortEvent& event);
  void become_gone(Entry& entry, RetireList& list);
  void publish_without(Entry& entry, RetireList& list) noexcept;
  bool has_interface(const Entry& entry) const noexcept {
    return interfaces_.exists(entry.ifindex) && interfaces_.interface(entry.ifindex).id == entry.interface_id;
  }
  // What its interface shows of the device.
  void follow_frames(const Entry& entry) noexcept;
  MacFilterRequest filter_of(Entry& entry);
  PortRequest request_of(PortRequest::Type type, uint32_t slot, uint64_t cookie) const;

  std::vector<uint32_t> worker_loads() const;
  bool allocate_lists(std::vector<QueueList*>& lists);
  void free_lists(std::vector<QueueList*>& lists) noexcept;
  // Fills the lists from the ports that run, publishes them, and retires those before.
  void publish(std::vector<QueueList*>& lists, RetireList& list) noexcept;
  void fill(QueueList& list, uint32_t worker) const noexcept;

  PortThread& thread_;
  InterfaceTable& interfaces_;
  Netns* netns_;
  std::unique_ptr<PublishedQueueList[]> queues_;
  std::map<uint32_t, Entry> entries_;  // by slot; slots are never used again
  uint32_t next_slot_ = 0;
  uint32_t refreshes_pending_ = 0;
  uint64_t next_cookie_ = uint64_t{1} << 32;
  std::map<uint64_t, std::optional<Answer>> awaited_;
  bool shut_down_ = false;
};

}  // namespace mayfly
