// SPDX-License-Identifier: BSD-3-Clause
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include "control/client.hpp"
#include "fake_daemon.hpp"

namespace mayfly {
namespace {

using test::FakeDaemon;
using test::Reply;

RequestMessage delete_link(std::string_view name) {
  RequestMessage message;
  message.begin_route(RTM_DELLINK, 0, ifinfomsg{});
  message.put_string(IFLA_IFNAME, name);
  return message;
}

std::string name_in(const nlmsghdr& message) {
  return std::string(Attributes(message, sizeof(ifinfomsg)).string(IFLA_IFNAME));
}

ControlClient connect_to(const FakeDaemon& daemon) {
  auto client = ControlClient::connect({.socket = daemon.path()});
  EXPECT_TRUE(client) << client.error().text;
  return std::move(*client);
}

TEST(RequestMessage, PutsAttributesWhereLibmnlFindsThem) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdStatus);
  message.put_u8(1, 8);
  message.put_string(2, "abc");
  {
    const RequestMessage::Nest outer(message, 3);
    message.put_u64(4, 1ULL << 40);
    const RequestMessage::Nest inner(message, 5);
    message.put_flag(6);
  }
  message.put_u16(7, 9);
  const Attributes attributes(*message.header(), sizeof(genlmsghdr));
  EXPECT_EQ(attributes.number(1), 8u);
  EXPECT_EQ(attributes.string(2), "abc");
  EXPECT_EQ(attributes.bytes(2).size(), 4u);
  const auto outer = attributes.nested(3);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->number(4), 1ULL << 40);
  EXPECT_TRUE(outer->nested(5)->has(6));
  EXPECT_FALSE(outer->has(7));
  EXPECT_EQ(attributes.number(7), 9u);
  EXPECT_FALSE(message.overflown());
  EXPECT_EQ(message.size() % 4, 0u);
}

TEST(RequestMessage, SaysWhenSomethingDidNotFit) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdStatus);
  const std::string half(40'000, 'x');
  message.put_string(1, half);
  EXPECT_FALSE(message.overflown());
  message.put_string(2, half);
  EXPECT_TRUE(message.overflown());
  message.begin_generic(protocol::kCmdStatus);
  EXPECT_FALSE(message.overflown());
}

TEST(Attributes, StopAtDamage) {
  RequestMessage message;
  message.begin_generic(protocol::kCmdStatus);
  message.put_u32(1, 5);
  message.put_u32(2, 6);
  auto* second = reinterpret_cast<nlattr*>(reinterpret_cast<char*>(message.header()) + message.size() - 8);
  second->nla_len = 4000;
  const Attributes attributes(*message.header(), sizeof(genlmsghdr));
  EXPECT_EQ(attributes.number(1), 5u);
  EXPECT_FALSE(attributes.has(2));
  EXPECT_EQ(attributes.string(9), "");
  const Attributes beyond(*message.header(), 9000);
  EXPECT_FALSE(beyond.has(1));
}

TEST(ControlClient, SaysHello) {
  std::string netns;
  std::string name;
  FakeDaemon daemon(FakeDaemon::acknowledge_all, [&](const nlmsghdr& request, Reply& reply) {
    const Attributes hello(request, 0);
    netns = hello.string(protocol::kHelloNetns);
    name = hello.string(protocol::kHelloClient);
    EXPECT_EQ(hello.number(protocol::kHelloVersion), protocol::kVersion);
    EXPECT_EQ(hello.number(protocol::kHelloFamily), uint64_t{NETLINK_GENERIC});
    FakeDaemon::greet(request, reply);
  });
  const auto client = ControlClient::connect(
      {.socket = daemon.path(), .family = NETLINK_GENERIC, .netns = "blue", .client_name = "test"});
  ASSERT_TRUE(client) << client.error().text;
  EXPECT_EQ(client->daemon().boot_id, "boot-1");
  EXPECT_EQ(client->daemon().name, "fake 1");
  EXPECT_EQ(client->daemon().pid, 42u);
  EXPECT_EQ(netns, "blue");
  EXPECT_EQ(name, "test");
}

TEST(ControlClient, TellsWhatToDoWithoutADaemon) {
  const auto absent = ControlClient::connect({.socket = "/tmp/no-such-directory/mayfly.sock"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ENOENT);
  EXPECT_NE(absent.error().text.find("mayflyd is not running"), std::string::npos);
  EXPECT_NE(absent.error().text.find("/tmp/no-such-directory/mayfly.sock"), std::string::npos);

  std::string path;
  {
    FakeDaemon daemon(FakeDaemon::acknowledge_all);
    path = daemon.path();
  }
  const std::string stale = path + ".stale";
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, stale.data(), stale.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(listener);
  const auto refused = ControlClient::connect({.socket = stale});
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ECONNREFUSED);
  EXPECT_NE(refused.error().text.find("mayflyd is not running"), std::string::npos);

  const auto too_long = ControlClient::connect({.socket = std::string(200, 'x')});
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ENAMETOOLONG);
}

TEST(ControlClient, NamesTheGroupWithoutPermission) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  FakeDaemon daemon(FakeDaemon::acknowledge_all);
  std::filesystem::permissions(std::filesystem::path(daemon.path()).parent_path(),
                               std::filesystem::perms(0755));
  std::filesystem::permissions(daemon.path(), std::filesystem::perms(0660));
  const group* daemons = getgrnam("daemon");
  ASSERT_NE(daemons, nullptr);
  ASSERT_EQ(chown(daemon.path().c_str(), 0, daemons->gr_gid), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const auto client = ControlClient::connect({.socket = daemon.path()});
  ASSERT_EQ(seteuid(0), 0);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, EACCES);
  EXPECT_NE(client.error().text.find("group 'daemon'"), std::string::npos) << client.error().text;
}

TEST(ControlClient, RefusesAnotherVersion) {
  FakeDaemon newer(FakeDaemon::acknowledge_all, [](const nlmsghdr& request, Reply& reply) {
    reply.message(request, protocol::kMsgHello, 0, {},
                  [](RequestMessage& answer) { answer.put_u32(protocol::kHelloVersion, 7); });
  });
  const auto client = ControlClient::connect({.socket = newer.path()});
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, EPROTO);
  EXPECT_NE(client.error().text.find("version 7"), std::string::npos);

  FakeDaemon strict(FakeDaemon::acknowledge_all, [](const nlmsghdr& request, Reply& reply) {
    reply.acknowledge(request, EPROTONOSUPPORT, "protocol version 1: this daemon speaks 2");
    reply.close_connection();
  });
  const auto refused = ControlClient::connect({.socket = strict.path()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, EPROTONOSUPPORT);
  EXPECT_EQ(refused.error().text, "protocol version 1: this daemon speaks 2");
}

TEST(ControlClient, TellsTheDaemonsText) {
  bool echo = false;
  FakeDaemon daemon([&echo](const nlmsghdr& request, Reply& reply) {
    const std::string name = name_in(request);
    if (name == "plain") return reply.acknowledge(request, EBUSY);
    if (name == "warn") return reply.acknowledge(request, 0, "it was asleep");
    echo = !echo;
    reply.acknowledge(request, ENODEV, "interface '" + name + "' does not exist", echo);
  });
  ControlClient client = connect_to(daemon);
  for (int round = 0; round < 2; ++round) {  // echoed whole, then capped
    RequestMessage message = delete_link("sub0");
    const Status done = client.request(message);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ENODEV);
    EXPECT_EQ(done.error().text, "interface 'sub0' does not exist");
  }
  RequestMessage plain = delete_link("plain");
  const Status done = client.request(plain);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "Device or resource busy");
  RequestMessage warn = delete_link("warn");
  EXPECT_TRUE(client.request(warn));
  EXPECT_EQ(client.take_warnings(), std::vector<std::string>{"it was asleep"});
  EXPECT_TRUE(client.take_warnings().empty());
}

TEST(ControlClient, FollowsADumpOverManyDatagrams) {
  constexpr int kLinks = 5000;
  FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    for (int link = 0; link < kLinks; ++link) {
      ifinfomsg fixed{};
      fixed.ifi_index = link + 1;
      reply.message(
          request, RTM_NEWLINK, NLM_F_MULTI, {reinterpret_cast<const char*>(&fixed), sizeof fixed},
          [link](RequestMessage& answer) { answer.put_string(IFLA_IFNAME, fmt::format("sub{}", link)); });
      if (link % 97 == 0) reply.send_now();
    }
    reply.done(request, NLM_F_DUMP_INTR);
  });
  ControlClient client = connect_to(daemon);
  RequestMessage message;
  message.begin_route(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{});
  int seen = 0;
  const Status done = client.request(message, [&seen](const nlmsghdr& answer) {
    EXPECT_EQ(name_in(answer), fmt::format("sub{}", seen));
    ++seen;
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(seen, kLinks);
  EXPECT_TRUE(client.dump_interrupted());
}

TEST(ControlClient, TellsWhyADumpFailed) {
  FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    if ((request.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) reply.done(request, 0, -ENOBUFS);
  });
  ControlClient client = connect_to(daemon);
  RequestMessage message;
  message.begin_route(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{});
  const Status done = client.request(message);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ENOBUFS);
}

// Each message is refused at length: neither side may wait for the other with full sockets.
TEST(ControlClient, ReadsWhileItSends) {
  constexpr uint32_t kMessages = 50'000;
  const std::string text(300, 'x');
  FakeDaemon daemon([&text](const nlmsghdr& request, Reply& reply) {
    reply.acknowledge(request, EEXIST, text);
    reply.send_now();
  });
  ControlClient client = connect_to(daemon);
  uint32_t refused = 0;
  uint32_t previous = 0;
  client.on_refused([&](uint32_t sequence, const Error& error) {
    EXPECT_GT(sequence, previous);
    previous = sequence;
    EXPECT_EQ(error.code, EEXIST);
    ++refused;
  });
  const RequestMessage message = delete_link("sub0");
  uint32_t last = 0;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const auto sequence = client.enqueue(message);
    ASSERT_TRUE(sequence);
    last = *sequence;
  }
  EXPECT_TRUE(client.drain());
  EXPECT_EQ(refused, kMessages);
  EXPECT_EQ(client.answered(), last);
}

TEST(ControlClient, PacksMessagesAndAsksOncePerDatagram) {
  constexpr uint32_t kMessages = 5000;
  std::atomic<int> asked{0};
  FakeDaemon daemon([&asked](const nlmsghdr& request, Reply& reply) {
    if ((request.nlmsg_flags & NLM_F_ACK) == 0) return;
    ++asked;
    reply.acknowledge(request);
  });
  ControlClient client = connect_to(daemon);
  const RequestMessage message = delete_link("sub0");
  for (uint32_t i = 0; i < kMessages; ++i)
    ASSERT_TRUE(client.enqueue(message, i == 0 ? 0 : protocol::kFlagChained));
  EXPECT_TRUE(client.drain());
  const size_t per_datagram = protocol::kMaxDatagram / message.size();
  EXPECT_EQ(daemon.datagrams(), (kMessages + per_datagram - 1) / per_datagram);
  EXPECT_EQ(asked, static_cast<int>(daemon.datagrams()));
  const std::vector<std::string> messages = daemon.messages();
  ASSERT_EQ(messages.size(), kMessages);
  for (uint32_t i = 0; i < kMessages; ++i) {
    const auto* header = reinterpret_cast<const nlmsghdr*>(messages[i].data());
    EXPECT_EQ(header->nlmsg_seq, i + 2);  // 1 was the hello
    EXPECT_EQ((header->nlmsg_flags & protocol::kFlagChained) != 0, i != 0);
  }
}

TEST(ControlClient, RequestsAfterWhatWasEnqueued) {
  FakeDaemon daemon(FakeDaemon::acknowledge_all);
  ControlClient client = connect_to(daemon);
  ASSERT_TRUE(client.enqueue(delete_link("first")));
  RequestMessage second = delete_link("second");
  EXPECT_TRUE(client.request(second));
  ASSERT_TRUE(client.enqueue(delete_link("dropped")));
  client.discard();
  RequestMessage third = delete_link("third");
  EXPECT_TRUE(client.request(third));
  std::string names;
  for (const std::string& message : daemon.messages())
    names += name_in(*reinterpret_cast<const nlmsghdr*>(message.data())) + " ";
  EXPECT_EQ(names, "first second third ");
}

TEST(ControlClient, SurvivesADaemonThatCloses) {
  FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    if (name_in(request) == "last") {
      reply.acknowledge(request, EPERM, "go away");
      reply.close_connection();
    } else {
      reply.close_connection();
    }
  });
  ControlClient client = connect_to(daemon);
  RequestMessage message = delete_link("sub0");
  const Status done = client.request(message);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ECONNRESET);
  EXPECT_NE(done.error().text.find("closed the connection with 1 request unanswered"), std::string::npos)
      << done.error().text;
  const Status again = client.request(message);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ECONNRESET);

  ControlClient other = connect_to(daemon);
  RequestMessage last = delete_link("last");
  const Status refused = other.request(last);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "go away");
}

// The daemon reads one datagram, answers it, and closes with the others unread.
TEST(ControlClient, ReadsWhatWasAnsweredBeforeTheClose) {
  FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    reply.acknowledge(request, EPERM, "go away");
    reply.close_connection();
  });
  ControlClient client = connect_to(daemon);
  std::vector<std::string> texts;
  client.on_refused([&texts](uint32_t, const Error& error) { texts.push_back(error.text); });
  Status going;
  for (int i = 0; i < 100'000 && going; ++i)
    if (const auto sequence = client.enqueue(delete_link("sub0")); !sequence)
      going = std::unexpected(sequence.error());
  if (going) going = client.drain();
  ASSERT_FALSE(going);
  EXPECT_EQ(going.error().code, ECONNRESET);
  EXPECT_EQ(texts, std::vector<std::string>{"go away"});
}

TEST(ControlClient, RefusesDamagedAnswers) {
  FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    nlmsghdr damaged = request;
    damaged.nlmsg_len = 4096;
    reply.raw({reinterpret_cast<const char*>(&damaged), sizeof damaged});
  });
  ControlClient client = connect_to(daemon);
  RequestMessage message = delete_link("sub0");
  const Status done = client.request(message);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, EPROTO);
}

TEST(ControlClient, DoesNotSendWhatDidNotFit) {
  FakeDaemon daemon(FakeDaemon::acknowledge_all);
  ControlClient client = connect_to(daemon);
  RequestMessage message = delete_link(std::string(70'000, 'x'));
  const Status done = client.request(message);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, E2BIG);
  EXPECT_FALSE(client.enqueue(message));
  EXPECT_TRUE(daemon.messages().empty());
}

}  // namespace
}  // namespace mayfly
