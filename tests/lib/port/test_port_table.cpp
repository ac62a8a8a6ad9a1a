// SPDX-License-Identifier: BSD-3-Clause
// Ports as the control thread sees them: states, queues a worker, and that a device outlives its readers.
#include <poll.h>
#include <rte_ethdev.h>

#include <atomic>
#include <thread>
#include <utility>

#include "neigh/neighbours.hpp"
#include "port/port_table.hpp"
#include "port_test_process.hpp"
#include "rcu/rcu.hpp"
#include "reclaim/reclaim.hpp"

namespace mayfly {
namespace {

constexpr uint32_t kWorkers = 2;
constexpr int kPatienceMs = 20'000;

// A worker that receives and frees, and that a test can keep from its quiescent states.
class FakeWorker {
 public:
  explicit FakeWorker(const PublishedQueueList& queues) : queues_(queues), thread_([this] { run(); }) {}
  ~FakeWorker() {
    hold(false);
    stop_.store(true);
    thread_.join();
  }
  void hold(bool on) {
    hold_.store(on);
    while (held_.load() != on) std::this_thread::yield();
  }

 private:
  void run() {
    rcu_register_worker();
    while (!stop_.load()) {
      const QueueList* list = queues_.read();
      do {
        poll_queues(*list);
        held_.store(hold_.load());
      } while (held_.load());
      rcu_quiescent_state();
    }
    rcu_unregister_worker();
  }
  static void poll_queues(const QueueList& list) {
    rte_mbuf* mbufs[32];
    for (uint32_t i = 0; i < list.rx_count; ++i) {
      const uint16_t count = rte_eth_rx_burst(list.rx[i].port, list.rx[i].queue, mbufs, 32);
      rte_pktmbuf_free_bulk(mbufs, count);
    }
  }

  const PublishedQueueList& queues_;
  std::atomic<bool> stop_{false}, hold_{false}, held_{false};
  std::thread thread_;
};

class PortTableTest : public testing::Test {
 protected:
  void SetUp() override {
    interfaces_ = std::move(*InterfaceTable::create(1'000, kWorkers, blocks_, neighbours_));
    ASSERT_TRUE(reclaim_.start());
    ASSERT_TRUE(thread_.start());
    auto created = PortTable::create(thread_, *interfaces_, nullptr);
    ASSERT_TRUE(created);
    ports_ = std::move(*created);
    for (uint32_t worker = 0; worker < kWorkers; ++worker)
      workers_.push_back(std::make_unique<FakeWorker>(ports_->queues(worker)));
  }

  void TearDown() override {
    workers_.clear();
    EXPECT_TRUE(reclaim_.stop(20 * kNsPerSecond));
    ports_->shutdown();
    ports_.reset();
    EXPECT_EQ(rte_eth_dev_count_avail(), 0u);
    EXPECT_EQ(blocks_.blocks_in_use(), 0u);
  }

  static PortSettings settings(std::string name, std::string devargs, uint32_t rx_queues = kWorkers) {
    PortSettings wanted;
    wanted.name = std::move(name);
    wanted.devargs = std::move(devargs);
    wanted.rx_queues = rx_queues;
    return wanted;
  }

  // What an epoll loop does, once; milliseconds to wait at most.
  void turn(int wait_ms) {
    pollfd ready[2] = {{ports_->completion_fd(), POLLIN, 0}, {reclaim_.completion_fd(), POLLIN, 0}};
    poll(ready, 2, wait_ms);
    reclaim_.collect(Deadline::never());
    RetireList list;
    ports_->poll_completions(list, [this](const PortEvent& event) { events_.push_back(event); });
    reclaim_.submit(list);
  }
  PortEvent next_event() {
    for (int waited = 0; events_.empty() && waited < kPatienceMs; waited += 10) turn(10);
    if (events_.empty()) {
      ADD_FAILURE() << "no event";
      return {};
    }
    const PortEvent event = events_.front();
    events_.erase(events_.begin());
    return event;
  }
  void add(const PortSettings& wanted) {
    ASSERT_TRUE(ports_->begin_add(wanted));
    const PortEvent event = next_event();
    ASSERT_EQ(event.type, PortEvent::Type::added) << event.result.error().text;
  }
  void begin_remove(const std::string& name, uint64_t cookie = 0) {
    RetireList list;
    interfaces_->retire(ports_->find(name)->ifindex, list);
    const auto begun = ports_->begin_remove(name, list, cookie);
    EXPECT_TRUE(begun) << begun.error().text;
    reclaim_.submit(list);
  }
  const QueueList& list_of(uint32_t worker) const { return *ports_->queues(worker).own(); }

  // Its size classes are kinds of retired objects, which are registered for the life of the process.
  static inline BlockPools blocks_{size_t{1} << 30};
  Neighbours neighbours_{blocks_};
  Reclaim reclaim_{TeardownConfig{}};
  PortThread thread_{PortTestProcess::pool->get(), {}};
  std::unique_ptr<InterfaceTable> interfaces_;
  std::unique_ptr<PortTable> ports_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::vector<PortEvent> events_;
};

TEST_F(PortTableTest, AddPublishesQueuesAndMakesTheInterface) {
  EXPECT_EQ(list_of(0).rx_count, 0u);
  ASSERT_TRUE(ports_->begin_add(settings("port0", "net_ring0"), 77));
  EXPECT_EQ(ports_->find("port0")->state, PortState::starting);
  const PortEvent event = next_event();
  ASSERT_EQ(event.type, PortEvent::Type::added);
  EXPECT_EQ(event.name, "port0");
  EXPECT_EQ(event.cookie, 77u);

  const Port& port = *ports_->find("port0");
  EXPECT_EQ(port.state, PortState::running);
  EXPECT_EQ(ports_->find_ethdev(port.info.port), &port);
  const uint32_t ifindex = interfaces_->find(nullptr, "port0");
  ASSERT_NE(ifindex, kNoInterface);
  EXPECT_EQ(port.ifindex, ifindex);
  EXPECT_TRUE(interfaces_->interface(ifindex).live_and_up());
  EXPECT_EQ(interfaces_->interface(ifindex).mac.load(), port.info.mac);
  EXPECT_EQ(interfaces_->interface(ifindex).mtu.load(), 1'500u);
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    ASSERT_EQ(list_of(worker).rx_count, 1u);
    EXPECT_EQ(list_of(worker).rx[0].queue, worker);
    EXPECT_EQ(list_of(worker).rx[0].ifindex, ifindex);
    EXPECT_EQ(list_of(worker).tx[port.info.port].queue, worker);
    EXPECT_EQ(list_of(worker).tx[port.info.port].ifindex, ifindex);
    EXPECT_EQ(list_of(worker).tx[port.info.port + 1].queue, kNoQueue);
  }
}

TEST_F(PortTableTest, PortsWithOneQueueSpreadOverWorkers) {
  add(settings("port0", "net_null0", 1));
  add(settings("port1", "net_null1", 1));
  EXPECT_EQ(list_of(0).rx_count, 1u);
  EXPECT_EQ(list_of(1).rx_count, 1u);
  EXPECT_EQ(ports_->all().size(), 2u);
}

TEST_F(PortTableTest, TheDeviceStaysUntilNoWorkerPollsIt) {
  add(settings("port0", "net_null0"));
  const uint16_t ethdev = ports_->find("port0")->info.port;
  workers_[1]->hold(true);
  begin_remove("port0", 5);
  EXPECT_EQ(list_of(1).rx_count, 0u);
  EXPECT_EQ(interfaces_->find(nullptr, "port0"), kNoInterface);
  for (int i = 0; i < 20; ++i) turn(5);
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(ports_->find("port0")->state, PortState::stopping);
  EXPECT_TRUE(rte_eth_dev_is_valid_port(ethdev));

  workers_[1]->hold(false);
  const PortEvent event = next_event();
  EXPECT_EQ(event.type, PortEvent::Type::removed);
  EXPECT_EQ(event.name, "port0");
  EXPECT_EQ(event.cookie, 5u);
  EXPECT_EQ(ports_->find("port0"), nullptr);
  EXPECT_FALSE(rte_eth_dev_is_valid_port(ethdev));
}

TEST_F(PortTableTest, AddAndRemoveOverAndOver) {
  for (int round = 0; round < 20; ++round) {
    add(settings("port0", "net_null0"));
    add(settings("port1", "net_ring0"));
    begin_remove("port0");
    begin_remove("port1");
    EXPECT_EQ(next_event().type, PortEvent::Type::removed);
    EXPECT_EQ(next_event().type, PortEvent::Type::removed);
  }
  EXPECT_TRUE(ports_->all().empty());
}

TEST_F(PortTableTest, AFailedPortSaysWhyAndCanBeReplaced) {
  ASSERT_TRUE(ports_->begin_add(settings("port0", "net_foo0"), 9));
  const PortEvent event = next_event();
  EXPECT_EQ(event.type, PortEvent::Type::failed);
  EXPECT_EQ(event.cookie, 9u);
  EXPECT_EQ(event.result.error().code, ENODEV);
  EXPECT_EQ(ports_->find("port0")->state, PortState::failed);
  EXPECT_EQ(ports_->find("port0")->error.text, event.result.error().text);
  EXPECT_EQ(interfaces_->find(nullptr, "port0"), kNoInterface);
  add(settings("port0", "net_null0"));
}

TEST_F(PortTableTest, AFailedPortCanBeRemoved) {
  ASSERT_TRUE(ports_->begin_add(settings("port0", "net_foo0")));
  EXPECT_EQ(next_event().type, PortEvent::Type::failed);
  RetireList list;
  ASSERT_TRUE(ports_->begin_remove("port0", list, 3));
  const PortEvent event = next_event();
  EXPECT_EQ(event.type, PortEvent::Type::removed);
  EXPECT_EQ(event.cookie, 3u);
  EXPECT_EQ(ports_->find("port0"), nullptr);
}

TEST_F(PortTableTest, ANameTakenMeanwhileUndoesTheDevice) {
  ASSERT_TRUE(ports_->begin_add(settings("port0", "net_null0")));
  InterfaceSpec dummy;
  dummy.name = "port0";
  dummy.kind = *find_kind("dummy");
  const auto claimed = interfaces_->claim(dummy);
  ASSERT_TRUE(claimed);
  interfaces_->commit(*claimed);
  const PortEvent event = next_event();
  ASSERT_EQ(event.type, PortEvent::Type::failed);
  EXPECT_EQ(event.result.error().text,
            "port0: its interface: name 'port0': an interface of this name exists");
  EXPECT_EQ(ports_->begin_add(settings("port0", "net_null0")).error().text,
            "port 'port0': an interface of this name exists");
  // Its device number is free again: the port thread has closed it first.
  add(settings("port1", "net_null0"));
  EXPECT_EQ(rte_eth_dev_count_avail(), 1u);
  RetireList list;
  interfaces_->retire(*claimed, list);
  reclaim_.submit(list);
}

TEST_F(PortTableTest, RefusesAtOnce) {
  add(settings("port0", "net_null0"));
  EXPECT_EQ(ports_->begin_add(settings("port0", "net_null1")).error().text,
            "port 'port0' exists already (running)");
  EXPECT_EQ(ports_->begin_add(settings("port1", "net_null0,size=100")).error().text,
            "port 'port1': the device net_null0 is port 'port0' already");
  EXPECT_EQ(ports_->begin_add(settings("a name", "net_null1")).error().code, EINVAL);
  EXPECT_EQ(ports_->begin_add(settings("port1", "")).error().code, EINVAL);
  EXPECT_EQ(ports_->begin_add(settings("port1", "net_null1", 0)).error().text,
            "port 'port1': rx_queues 0: accepted 1..256");
  RetireList list;
  EXPECT_EQ(ports_->begin_remove("port9", list).error().code, ENODEV);
  EXPECT_EQ(ports_->begin_remove("port0", list).error().text,
            "port 'port0' still has its interface: delete that first");
  EXPECT_EQ(ports_->begin_set_mtu("port9", 1'400).error().code, ENODEV);
  ASSERT_TRUE(ports_->begin_add(settings("port1", "net_null1")));
  EXPECT_EQ(ports_->begin_remove("port1", list).error().text, "port 'port1' is still starting");
  EXPECT_EQ(next_event().type, PortEvent::Type::added);
}

TEST_F(PortTableTest, ChangesReachTheInterface) {
  add(settings("port0", "net_null0,no-rx=1"));
  const Interface& interface = interfaces_->interface(ports_->find("port0")->ifindex);
  ASSERT_TRUE(ports_->begin_set_mtu("port0", 1'600, 1));
  PortEvent event = next_event();
  EXPECT_EQ(event.type, PortEvent::Type::changed);
  EXPECT_TRUE(event.result);
  EXPECT_EQ(event.cookie, 1u);
  EXPECT_EQ(interface.mtu.load(), 1'600u);

  ASSERT_TRUE(ports_->begin_set_mtu("port0", 20'000, 2));
  event = next_event();
  EXPECT_EQ(event.result.error().code, ERANGE);
  EXPECT_EQ(interface.mtu.load(), 1'600u);

  ASSERT_TRUE(ports_->begin_set_mac("port0", 0x02'00'00'00'00'07, 3));
  EXPECT_TRUE(next_event().result);
  EXPECT_EQ(interface.mac.load(), 0x02'00'00'00'00'07u);

  ASSERT_TRUE(ports_->begin_set_promiscuous("port0", false, 4));
  EXPECT_EQ(next_event().cookie, 4u);
}

TEST_F(PortTableTest, RefreshTellsOfLinksAndLosses) {
  if (!PortTestProcess::private_network) GTEST_SKIP() << "needs root and a network namespace of its own";
  ASSERT_TRUE(
      PortTestProcess::sh("ip link add veth0 type veth peer name veth1 && ip link set dev veth0 up && "
                          "ip link set dev veth1 up"));
  add(settings("port0", "net_af_packet0,iface=veth0"));
  EXPECT_TRUE(ports_->find("port0")->info.link_up);
  ASSERT_TRUE(PortTestProcess::sh("ip link set dev veth1 down"));
  ports_->refresh();
  ports_->refresh();  // the first one is still on its way
  const PortEvent event = next_event();
  EXPECT_EQ(event.type, PortEvent::Type::link_changed);
  EXPECT_FALSE(ports_->find("port0")->info.link_up);
  begin_remove("port0");
  EXPECT_EQ(next_event().type, PortEvent::Type::removed);
  PortTestProcess::sh("ip link del veth0");
}

TEST_F(PortTableTest, AnswersAreKeptForWhoeverAsks) {
  add(settings("port0", "net_null0,no-rx=1"));
  const uint64_t kept = ports_->expect_answer();
  const uint64_t forgotten = ports_->expect_answer();
  EXPECT_FALSE(ports_->answer(kept));
  ASSERT_TRUE(ports_->begin_set_mtu("port0", 20'000, kept));
  ASSERT_TRUE(ports_->begin_set_mtu("port0", 1'400, forgotten));
  ports_->forget_answer(forgotten);
  EXPECT_EQ(next_event().cookie, kept);
  EXPECT_EQ(next_event().cookie, forgotten);
  const auto answer = ports_->answer(kept);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->result.error().code, ERANGE);
  EXPECT_FALSE(ports_->answer(kept)) << "taken";
  EXPECT_FALSE(ports_->answer(forgotten));
  const uint64_t xstats = ports_->expect_answer();
  ASSERT_TRUE(ports_->begin_read_xstats("port0", xstats));
  next_event();
  const auto counters = ports_->answer(xstats);
  ASSERT_TRUE(counters);
  EXPECT_FALSE(counters->xstats.empty());
}

TEST_F(PortTableTest, AFailedPortIsForgottenWhenThatWasAsked) {
  ASSERT_TRUE(ports_->begin_add(settings("port0", "net_nonsense0"), 0, false));
  EXPECT_EQ(next_event().type, PortEvent::Type::failed);
  EXPECT_EQ(ports_->find("port0"), nullptr);
  ASSERT_TRUE(ports_->begin_add(settings("port0", "net_nonsense0")));
  EXPECT_EQ(next_event().type, PortEvent::Type::failed);
  ASSERT_NE(ports_->find("port0"), nullptr);
  EXPECT_EQ(ports_->find("port0")->state, PortState::failed);
}

TEST_F(PortTableTest, AVanishedDeviceIsGoneUntilItIsRemoved) {
  if (!PortTestProcess::private_network) GTEST_SKIP() << "needs root and a network namespace of its own";
  ASSERT_TRUE(
      PortTestProcess::sh("ip link add veth0 type veth peer name veth1 && ip link set dev veth0 up && "
                          "ip link set dev veth1 up"));
  add(settings("port0", "net_af_packet0,iface=veth0"));
  const uint32_t ifindex = ports_->find("port0")->ifindex;
  const uint16_t ethdev = ports_->find("port0")->info.port;
  ASSERT_TRUE(PortTestProcess::sh("ip link del veth0"));
  ports_->refresh();
  EXPECT_EQ(next_event().type, PortEvent::Type::gone);
  EXPECT_EQ(ports_->find("port0")->state, PortState::gone);
  EXPECT_EQ(ports_->find("port0")->error.text, "kernel interface 'veth0' was deleted");
  EXPECT_TRUE(interfaces_->exists(ifindex));
  EXPECT_FALSE(interfaces_->has_carrier(ifindex));
  EXPECT_EQ(ports_->begin_set_mtu("port0", 1'400).error().code, EBUSY);
  add(settings("port1", "net_null0,no-rx=1"));
  EXPECT_NE(ports_->find("port1")->info.port, ethdev)
      << "the number is not given away while interfaces carry it";
  begin_remove("port0");
  EXPECT_EQ(next_event().type, PortEvent::Type::removed);
  EXPECT_EQ(ports_->find("port0"), nullptr);
}

TEST_F(PortTableTest, ShutdownClosesWhatRuns) {
  add(settings("port0", "net_ring0"));
  ASSERT_TRUE(ports_->begin_add(settings("port1", "net_null1")));
}

}  // namespace
}  // namespace mayfly

int main(int argc, char** argv) {
  return mayfly::PortTestProcess::run(argc, argv, mayfly::kWorkers);
}
