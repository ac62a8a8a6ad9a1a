// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include "fake_daemon.hpp"
#include "mayfly/batch.hpp"

namespace mayfly::cli {
namespace {

using mayfly::test::FakeDaemon;
using mayfly::test::Reply;

std::vector<std::string> split(std::string line) {
  std::vector<std::string_view> words;
  const Status status = split_line(&line, &words);
  if (!status) return {"error: " + status.error().text};
  return {words.begin(), words.end()};
}

using Strings = std::vector<std::string>;

TEST(SplitLine, TakesQuotesAndBackslashes) {
  EXPECT_EQ(split("link  add\tsub0"), (Strings{"link", "add", "sub0"}));
  EXPECT_EQ(split("alias 'two words' x"), (Strings{"alias", "two words", "x"}));
  EXPECT_EQ(split("alias \"it's\""), (Strings{"alias", "it's"}));
  EXPECT_EQ(split("alias 'a\"b'"), (Strings{"alias", "a\"b"}));
  EXPECT_EQ(split(R"(a\ b \'c\' "d\"e" 'f\g')"), (Strings{"a b", "'c'", "d\"e", "f\\g"}));
  EXPECT_EQ(split("a'b c'd"), (Strings{"ab cd"}));
  EXPECT_EQ(split("alias ''"), (Strings{"alias", ""}));
  EXPECT_EQ(split("sub{} \r"), (Strings{"sub{}"}));
}

TEST(SplitLine, LeavesCommentsOut) {
  EXPECT_EQ(split("# all of it"), Strings{});
  EXPECT_EQ(split("   "), Strings{});
  EXPECT_EQ(split("link show # the rest"), (Strings{"link", "show"}));
  EXPECT_EQ(split("alias a#b '#c' \\#d"), (Strings{"alias", "a#b", "#c", "#d"}));
}

TEST(SplitLine, RefusesAnOpenQuote) {
  EXPECT_EQ(split("alias 'two"), Strings{"error: a ' is not closed"});
  EXPECT_EQ(split("alias \"two"), Strings{"error: a \" is not closed"});
}

// A pipe that holds the text and is closed behind it.
class Text {
 public:
  explicit Text(const std::string& text) {
    EXPECT_EQ(pipe(ends_), 0);
    writer_ = std::thread([this, text] {
      for (size_t at = 0; at < text.size();) {
        const ssize_t written = write(ends_[1], text.data() + at, text.size() - at);
        if (written <= 0) break;
        at += static_cast<size_t>(written);
      }
      close(ends_[1]);
    });
  }
  ~Text() {
    char rest[4096];
    while (read(ends_[0], rest, sizeof rest) > 0) continue;
    writer_.join();
    close(ends_[0]);
  }
  int fd() const { return ends_[0]; }

 private:
  int ends_[2];
  std::thread writer_;
};

TEST(LineReader, JoinsLinesAndCountsThem) {
  Text text("one\n\ntwo \\\nthree\nfour\\\\\nlast");
  LineReader reader(text.fd());
  std::vector<std::pair<uint64_t, std::string>> lines;
  std::string line;
  while (*reader.next(&line, [] {})) lines.emplace_back(reader.number(), line);
  const std::vector<std::pair<uint64_t, std::string>> expected = {
      {1, "one"}, {2, ""}, {3, "two  three"}, {5, "four\\\\"}, {6, "last"}};
  EXPECT_EQ(lines, expected);
}

TEST(LineReader, ReadsLinesLongerThanItsBuffer) {
  const std::string longest(700'000, 'x');
  Text text(longest + "\nshort\n");
  LineReader reader(text.fd());
  std::string line;
  ASSERT_TRUE(*reader.next(&line, [] {}));
  EXPECT_EQ(line, longest);
  ASSERT_TRUE(*reader.next(&line, [] {}));
  EXPECT_EQ(line, "short");
  EXPECT_FALSE(*reader.next(&line, [] {}));
}

std::string name_in(const nlmsghdr& message) {
  return std::string(Attributes(message, sizeof(ifinfomsg)).string(IFLA_IFNAME));
}

// Refuses to delete "bad", and what is chained behind it.
class StrictDaemon {
 public:
  StrictDaemon() : daemon_([this](const nlmsghdr& request, Reply& reply) { answer(request, reply); }) {}

  struct Outcome {
    int status;
    std::string errors;
    std::string output;
  };
  Outcome run(const std::string& commands, bool force = false) {
    Options options;
    options.socket = daemon_.path();
    options.force = force;
    Output output(-1);
    Text text(commands);
    testing::internal::CaptureStderr();
    int status = 0;
    {
      Session session(options, output);
      status = Batch(session, "file").run(text.fd());
    }
    return {status, testing::internal::GetCapturedStderr(), output.take()};
  }
  const std::vector<std::string>& executed() const { return executed_; }

 private:
  void answer(const nlmsghdr& request, Reply& reply) {
    if (request.nlmsg_type == protocol::kGenericFamilyId) {
      reply.generic(request, protocol::kCmdLinkCount, [this](RequestMessage& message) {
        message.put_u64(protocol::kValueCount, executed_.size());
      });
      return reply.acknowledge(request);
    }
    const bool chained = (request.nlmsg_flags & protocol::kFlagChained) != 0;
    if (chained && broken_) return reply.acknowledge(request, ECANCELED);
    broken_ = name_in(request) == "bad";
    if (broken_) return reply.acknowledge(request, ENODEV, "interface 'bad' does not exist");
    executed_.push_back(name_in(request));
    FakeDaemon::acknowledge_all(request, reply);
  }

  bool broken_ = false;
  std::vector<std::string> executed_;
  FakeDaemon daemon_;
};

TEST(Batch, StopsAtTheFirstRefusal) {
  StrictDaemon daemon;
  std::string commands = "# comment\n\n";
  for (int i = 0; i < 100; ++i) commands += fmt::format("link del sub{}\n", i);
  commands += "link del bad\n";
  for (int i = 0; i < 20'000; ++i) commands += "link del after\n";
  const auto outcome = daemon.run(commands);
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.errors, "Error: interface 'bad' does not exist\nCommand failed file:103\n");
  EXPECT_EQ(daemon.executed().size(), 100u);
}

TEST(Batch, GoesOnWhenForced) {
  StrictDaemon daemon;
  const auto outcome =
      daemon.run("link del a\nlink del bad\nlink del b\nlink frog\nlink del c\nlink del bad\n", true);
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(daemon.executed(), (Strings{"a", "b", "c"}));
  EXPECT_NE(outcome.errors.find("Command failed file:2\n"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("unknown command of link 'frog'"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("Command failed file:4\n"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("Command failed file:6\n"), std::string::npos) << outcome.errors;
}

TEST(Batch, StopsAtWhatItDoesNotUnderstand) {
  StrictDaemon daemon;
  const auto outcome = daemon.run("link del a\nlink frog\nlink del b\n");
  EXPECT_EQ(outcome.status, kExitUsage);
  EXPECT_EQ(daemon.executed(), Strings{"a"});
  EXPECT_NE(outcome.errors.find("Command failed file:2\n"), std::string::npos) << outcome.errors;
  const auto quote = daemon.run("link del 'a\n");
  EXPECT_EQ(quote.status, kExitUsage);
  EXPECT_NE(quote.errors.find("a ' is not closed\nCommand failed file:1\n"), std::string::npos)
      << quote.errors;
}

// The mistake comes later in the file than the refusal, which is known only after what was sent ahead is
// answered.
TEST(Batch, ReportsTheEarlierOfTwoMistakes) {
  StrictDaemon daemon;
  const auto outcome = daemon.run("link del bad\nlink frog\n");
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_EQ(outcome.errors, "Error: interface 'bad' does not exist\nCommand failed file:1\n");
}

TEST(Batch, AsksOnlyAfterWhatWasSentBefore) {
  StrictDaemon daemon;
  const auto outcome = daemon.run("link del a\nlink del b\nlink count\nlink del c\nlink count\n");
  EXPECT_EQ(outcome.status, kExitOk) << outcome.errors;
  EXPECT_EQ(outcome.output, "2\n3\n");
}

TEST(Batch, WithoutADaemonFailsOnce) {
  Options options;
  options.socket = "/tmp/no-such-directory/mayfly.sock";
  Output output(-1);
  Session session(options, output);
  Text text("link del a\nlink del b\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Batch(session, "-").run(text.fd()), kExitRefused);
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_NE(errors.find("mayflyd is not running"), std::string::npos);
  EXPECT_NE(errors.find("Command failed -:1\n"), std::string::npos) << errors;
  EXPECT_EQ(errors.find("-:2"), std::string::npos) << errors;
}

TEST(Batch, SaysWhichLineADyingDaemonLeftUnanswered) {
  FakeDaemon daemon([](const nlmsghdr& request, Reply& reply) {
    if (name_in(request) == "fatal") return reply.close_connection();
    FakeDaemon::acknowledge_all(request, reply);
  });
  Options options;
  options.socket = daemon.path();
  Output output(-1);
  Session session(options, output);
  Text text("link del a\n\nlink del fatal\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Batch(session, "-").run(text.fd()), kExitRefused);
  const std::string errors = testing::internal::GetCapturedStderr();
  EXPECT_NE(errors.find("closed the connection"), std::string::npos) << errors;
  EXPECT_NE(errors.find("Command failed -:"), std::string::npos) << errors;
}

}  // namespace
}  // namespace mayfly::cli
