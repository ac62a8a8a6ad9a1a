// SPDX-License-Identifier: BSD-3-Clause
// The command line, and the command line over a file.

#include "config/arguments.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace mayfly {
namespace {

Result<Arguments> parse(std::vector<const char*> words, bool* usage_error = nullptr) {
  return parse_arguments(words, usage_error);
}

std::string error_of(const std::vector<const char*>& words) {
  const auto arguments = parse(words);
  return arguments ? "accepted" : arguments.error().text;
}

class ArgumentsOverFile : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = ::testing::TempDir() + "mayfly-arguments-" + std::to_string(getpid()) + ".yaml";
    std::ofstream(file_) << "workers:\n  count: 1\n  cpus: [1]\n"
                            "ports:\n  - name: port0\n    devargs: net_null0\n"
                            "eal: {args: [\"--no-pci\"]}\nsocket: {path: /tmp/file}\nlog: {level: error}\n";
  }
  void TearDown() override { unlink(file_.c_str()); }

  std::string file_;
};

TEST(Arguments, NoneMeanTheDefaults) {
  const auto arguments = parse({});
  ASSERT_TRUE(arguments.has_value());
  EXPECT_EQ(dump_config(arguments->config), dump_config(Config{}));
  EXPECT_FALSE(arguments->check || arguments->help || arguments->version || arguments->file);
}

TEST(Arguments, EveryOption) {
  const auto arguments =
      parse({"--socket", "/tmp/s", "--port", "port0=net_af_packet0,iface=veth0", "--port=wan=0000:03:00.0",
             "--check", "--log-level=debug", "--workers", "2", "--", "--no-pci", "--port"});
  ASSERT_TRUE(arguments.has_value()) << arguments.error().text;
  const Config& config = arguments->config;
  EXPECT_TRUE(arguments->check);
  EXPECT_EQ(config.socket.path, "/tmp/s");
  ASSERT_EQ(config.ports.size(), 2u);
  EXPECT_EQ(config.ports[0].name, "port0");
  EXPECT_EQ(config.ports[0].devargs, "net_af_packet0,iface=veth0");
  EXPECT_EQ(config.ports[1].name, "wan");
  EXPECT_EQ(config.ports[1].devargs, "0000:03:00.0");
  EXPECT_EQ(config.log_level, LogLevel::debug);
  EXPECT_EQ(config.workers.count, 2u);
  EXPECT_EQ(config.eal.args, (std::vector<std::string>{"--no-pci", "--port"}));
}

TEST(Arguments, HelpAndVersionReadNothingElse) {
  EXPECT_TRUE(parse({"-c", "/does/not/exist", "--help"})->help);
  EXPECT_TRUE(parse({"--version"})->version);
  EXPECT_NE(usage().find("--port NAME=DEVARGS"), std::string_view::npos);
}

TEST(Arguments, MistakesSayWhatWasExpected) {
  EXPECT_EQ(error_of({"--sokcet", "x"}).substr(0, 64),
            "'--sokcet': expected an option, the nearest known: --socket, --p");
  EXPECT_TRUE(error_of({"port0"}).starts_with("'port0': expected an option"));
  EXPECT_TRUE(error_of({"-x"}).starts_with("'-x': expected an option"));
  EXPECT_TRUE(error_of({""}).starts_with("'': expected an option"));
  EXPECT_EQ(error_of({"--socket"}),
            "--socket: the value is missing: expected the path of the control socket");
  EXPECT_EQ(error_of({"--socket", ""}), "--socket '': expected the path of the control socket");
  EXPECT_EQ(error_of({"--socket", "--"}), "--socket '--': expected the path of the control socket");
  EXPECT_EQ(error_of({"--check=yes"}), "--check: expected no value");
  EXPECT_EQ(error_of({"--check", "--check"}), "--check: given twice, expected once");
  EXPECT_EQ(error_of({"--workers", "1", "--workers", "1"}), "--workers: given twice, expected once");
  EXPECT_EQ(error_of({"--workers", "0"}), "--workers 0: accepted 1..64");
  EXPECT_EQ(error_of({"--workers", "two"}), "--workers 'two': expected a number, accepted 1..64");
  EXPECT_EQ(error_of({"--log-level", "loud"}),
            "--log-level 'loud': expected one of error, warning, info, debug");
  for (const char* bad : {"port0", "=net_null0", "port0="})
    EXPECT_EQ(error_of({"--port", bad}),
              fmt::format("--port '{}': expected NAME=DEVARGS, like port0=net_af_packet0,iface=veth0", bad));
}

TEST(Arguments, ValuesAreCheckedLikeThoseOfAFile) {
  EXPECT_EQ(error_of({"--port", "a/b=net_null0"}),
            "--port a/b=net_null0: ports[0].name: value 'a/b': expected a name without '/' and white space");
  EXPECT_EQ(error_of({"--port", "a=net_null0", "--port", "a=net_null1"}),
            "--port a=net_null1: ports[1].name: value 'a': a port of this name exists already, "
            "at --port a=net_null0, expected another name");
  EXPECT_TRUE(error_of({"--socket", "/tmp/"}).starts_with("--socket: socket.path: value '/tmp/'"));
  EXPECT_TRUE(error_of({"--", ""}).starts_with("after --: eal.args[0]: value ''"));
}

TEST_F(ArgumentsOverFile, ReplaceAndAppend) {
  const auto arguments = parse({"-c", file_.c_str(), "--socket", "/tmp/line", "--port", "port1=net_null1",
                                "--log-level", "info", "--", "--no-telemetry"});
  ASSERT_TRUE(arguments.has_value()) << arguments.error().text;
  EXPECT_EQ(arguments->file, file_);
  EXPECT_EQ(arguments->config.socket.path, "/tmp/line");
  ASSERT_EQ(arguments->config.ports.size(), 2u);
  EXPECT_EQ(arguments->config.ports[1].name, "port1");
  EXPECT_EQ(arguments->config.eal.args, (std::vector<std::string>{"--no-pci", "--no-telemetry"}));
  EXPECT_EQ(arguments->config.log_level, LogLevel::info);
}

TEST_F(ArgumentsOverFile, ConflictsNameBothSides) {
  EXPECT_EQ(error_of({"-c", file_.c_str(), "--port", "port0=net_null1"}),
            "--port port0=net_null1: ports[1].name: value 'port0': a port of this name exists already, at " +
                file_ + ":5, expected another name");
  EXPECT_EQ(error_of({"-c", file_.c_str(), "--workers", "2"}),
            file_ + ":3: workers.cpus: a list of 1: expected one CPU for each of 2 workers");
}

TEST_F(ArgumentsOverFile, TellsUsageFromConfiguration) {
  bool usage_error = false;
  EXPECT_FALSE(parse({"--nothing"}, &usage_error).has_value());
  EXPECT_TRUE(usage_error);
  const auto missing = parse({"-c", "/does/not/exist.yaml"}, &usage_error);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_FALSE(usage_error);
}

}  // namespace
}  // namespace mayfly
