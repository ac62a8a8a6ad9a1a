// SPDX-License-Identifier: BSD-3-Clause
// Loading, refusing and dumping YAML.

#include "config/config.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace mayfly {
namespace {

std::string error_of(std::string_view text) {
  const auto config = parse_config(text, "f.yaml");
  return config ? "accepted" : config.error().text;
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string kExamples = MAYFLY_EXAMPLES;

TEST(Config, NothingMeansTheDefaults) {
  const std::string defaults = dump_config(Config{});
  for (const char* empty : {"", "\n", "# only a comment\n", "---\n", "{}\n", "eal:\nworkers:\nports:\nlog:\n",
                            "---\nlog:\n...\n"}) {
    const auto config = parse_config(empty, "f.yaml");
    ASSERT_TRUE(config.has_value()) << config.error().text;
    EXPECT_EQ(dump_config(*config), defaults);
  }
}

TEST(Config, ExampleSaysTheDefaults) {
  const auto config = load_config(kExamples + "/mayflyd.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(dump_config(*config), dump_config(Config{}));
}

// The comments of the example are uncommented: they too must be right.
TEST(Config, ExampleShowsEveryKeyOfAPort) {
  std::string text = file_text(kExamples + "/mayflyd.yaml");
  text.erase(text.find("\nports: []"), 10);
  for (size_t at = text.find("\n#ports:"); at != std::string::npos; at = text.find("\n#  ", at + 1))
    text.erase(at + 1, 1);
  text.replace(text.find("# memory:"), 2, "");
  const auto config = parse_config(text, "example");
  ASSERT_TRUE(config.has_value()) << config.error().text << text;
  ASSERT_EQ(config->ports.size(), 1u);
  EXPECT_EQ(config->eal.memory_bytes, EalConfig::kMemoryWithoutHugepages);
  Config expected;
  expected.eal.memory_bytes = EalConfig::kMemoryWithoutHugepages;
  expected.ports.push_back({.name = "port0", .devargs = "net_af_packet0,iface=veth0"});
  expected.ports[0].rx_queues = 1;
  EXPECT_EQ(dump_config(*config), dump_config(expected));
}

TEST(Config, MinimalExampleLoads) {
  const auto config = load_config(kExamples + "/two-ports.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().text;
  ASSERT_EQ(config->ports.size(), 2u);
  EXPECT_EQ(config->ports[1].devargs, "net_af_packet1,iface=veth1");
  EXPECT_EQ(config->rx_queues(config->ports[1]), 1u);
}

TEST(Config, ReadsEveryKey) {
  const auto config = parse_config(R"(
eal: {hugepages: true, memory: 1GiB, args: ["-a", "0000:03:00.0"]}
workers: {count: 2, cpus: [1, 0x3], idle: {policy: poll, after: 1ms, sleep: 1000us}}
mbufs: {count: 010000, size: 4KiB, cache: 0}
ports:
  - {name: wan, devargs: "0000:03:00.0", rx_queues: 4, rx_descriptors: 512, tx_descriptors: 256, mtu: 3000, promiscuous: false}
interfaces: {limit: 10}
neighbours: {limit: 20, per_interface: 5}
routes: {limit: 30}
namespaces: {limit: 40}
socket: {path: /tmp/s, group: "adm", mode: 0600}
teardown: {workers: 3, nice: 0, policy: fail, high_objects: 10, low_objects: 9, high_bytes: 2KiB, low_bytes: 1KiB}
log: {level: debug}
)",
                                   "f.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_TRUE(config->eal.hugepages);
  EXPECT_EQ(config->eal.memory_bytes, uint64_t{1} << 30);
  EXPECT_EQ(config->eal.args, (std::vector<std::string>{"-a", "0000:03:00.0"}));
  EXPECT_EQ(config->workers.count, 2u);
  EXPECT_EQ(config->workers.cpus, (std::vector<uint32_t>{1, 3}));
  EXPECT_FALSE(config->workers.idle.adaptive);
  EXPECT_EQ(config->workers.idle.after_ns, 1'000'000u);
  EXPECT_EQ(config->workers.idle.sleep_ns, 1'000'000u);
  EXPECT_EQ(config->mbufs.count, 10'000u) << "decimal, not octal";
  EXPECT_EQ(config->mbufs.size_bytes, 4'096u);
  EXPECT_EQ(config->mbufs.cache, 0u);
  ASSERT_EQ(config->ports.size(), 1u);
  EXPECT_EQ(config->ports[0].rx_queues, 4u);
  EXPECT_EQ(config->ports[0].rx_descriptors, 512u);
  EXPECT_EQ(config->ports[0].tx_descriptors, 256u);
  EXPECT_EQ(config->ports[0].mtu, 3'000u);
  EXPECT_FALSE(config->ports[0].promiscuous);
  EXPECT_EQ(config->limits.interfaces, 10u);
  EXPECT_EQ(config->limits.neighbours, 20u);
  EXPECT_EQ(config->limits.neighbours_per_interface, 5u);
  EXPECT_EQ(config->limits.routes, 30u);
  EXPECT_EQ(config->limits.namespaces, 40u);
  EXPECT_EQ(config->socket.path, "/tmp/s");
  EXPECT_EQ(config->socket.group, "adm");
  EXPECT_EQ(config->socket.mode, 0600u);
  EXPECT_EQ(config->teardown.workers, 3u);
  EXPECT_EQ(config->teardown.nice, 0);
  EXPECT_FALSE(config->teardown.block);
  EXPECT_EQ(config->teardown.high_objects, 10u);
  EXPECT_EQ(config->teardown.low_objects, 9u);
  EXPECT_EQ(config->teardown.high_bytes, 2'048u);
  EXPECT_EQ(config->teardown.low_bytes, 1'024u);
  EXPECT_EQ(config->log_level, LogLevel::debug);
}

TEST(Config, ErrorsNameFileLineKeyValueAndWhatIsAccepted) {
  EXPECT_EQ(error_of("workers:\n  count: 65\n"), "f.yaml:2: workers.count: value 65: accepted 1..64");
  EXPECT_EQ(error_of("workers:\n  count: many\n"),
            "f.yaml:2: workers.count: value 'many': expected a number, accepted 1..64");
  EXPECT_EQ(error_of("workers:\n  idle:\n    sleep: 2ms\n"),
            "f.yaml:3: workers.idle.sleep: value '2ms': accepted 1 us..1.0 ms");
  EXPECT_EQ(error_of("\nmbufs: {size: 2176}\n"),
            "f.yaml:2: mbufs.size: value '2176': the unit is missing (B, KiB, MiB, GiB)");
  EXPECT_EQ(error_of("workers: {idle: {policy: eager}}"),
            "f.yaml:1: workers.idle.policy: value 'eager': expected one of adaptive, poll");
  EXPECT_EQ(error_of("socket: {mode: '0999'}"),
            "f.yaml:1: socket.mode: value '0999': expected octal digits, accepted 0000..0777");
  EXPECT_EQ(error_of("socket: {mode: '01777'}"),
            "f.yaml:1: socket.mode: value '01777': expected octal digits, accepted 0000..0777");
  EXPECT_EQ(error_of("workers: {count: 2, cpus: [1, x]}"),
            "f.yaml:1: workers.cpus[1]: value 'x': expected a number, accepted 0..1023");
}

TEST(Config, BooleansAreTrueOrFalse) {
  for (const char* text : {"no", "yes", "on", "off", "1", "True", "~", ""})
    EXPECT_TRUE(
        error_of(fmt::format("eal:\n  hugepages: {}\n", text)).starts_with("f.yaml:2: eal.hugepages: "))
        << text;
}

TEST(Config, UnknownKeysAreRefusedWithTheNearest) {
  EXPECT_EQ(error_of("log: {level: info}\nworkesr:\n  count: 1\n"),
            "f.yaml:2: workesr: unknown key; the nearest known: workers, ports, routes, socket");
  EXPECT_EQ(error_of("workers:\n  count: 1\n  idle: {polic: poll}\n"),
            "f.yaml:3: workers.idle.polic: unknown key; the nearest known: policy, after, sleep");
  EXPECT_TRUE(
      error_of("ports:\n- name: a\n  devarg: b\n").starts_with("f.yaml:3: ports[0].devarg: unknown key"));
  EXPECT_TRUE(error_of("a: &a {count: 1}\nworkers:\n  <<: *a\n").starts_with("f.yaml:1: a: unknown key"));
  EXPECT_TRUE(error_of("workers:\n  <<: {count: 1}\n").starts_with("f.yaml:2: workers.<<: unknown key"));
}

TEST(Config, RepeatedKeysAreRefusedWithBothLines) {
  EXPECT_EQ(error_of("workers:\n  count: 1\n\n  count: 1\n"),
            "f.yaml:4: workers.count: given twice, first at f.yaml:2");
  EXPECT_EQ(error_of("log: {level: info}\nlog: {level: info}\n"),
            "f.yaml:2: log: given twice, first at f.yaml:1");
}

TEST(Config, WrongTypesAreRefused) {
  EXPECT_TRUE(error_of("- a\n").starts_with("f.yaml:1: a list here: expected a map"));
  EXPECT_TRUE(error_of("hello\n").starts_with("f.yaml:1: a value here: expected a map"));
  EXPECT_TRUE(error_of("workers: 3\n").starts_with("f.yaml:1: workers: a value here: expected a map"));
  EXPECT_EQ(error_of("workers:\n  count: [1]\n"), "f.yaml:2: workers.count: a list here: expected a value");
  EXPECT_EQ(error_of("workers:\n  count: {a: 1}\n"), "f.yaml:2: workers.count: a map here: expected a value");
  EXPECT_EQ(error_of("workers:\n  count:\n"), "f.yaml:2: workers.count: nothing here: expected a value");
  EXPECT_EQ(error_of("workers:\n  cpus: 1\n"), "f.yaml:2: workers.cpus: a value here: expected a list");
  EXPECT_EQ(error_of("ports: {name: a}\n"), "f.yaml:1: ports: a map here: expected a list");
  EXPECT_TRUE(error_of("ports:\n- port0\n").starts_with("f.yaml:2: ports[0]: a value here: expected a map"));
  EXPECT_EQ(error_of("eal: {args: [[a]]}\n"), "f.yaml:1: eal.args[0]: a list here: expected a value");
  EXPECT_TRUE(error_of("? [a]\n: b\n").starts_with("f.yaml:1: a list as a key"));
}

TEST(Config, MandatoryKeysOfAPort) {
  EXPECT_EQ(error_of("ports:\n  - mtu: 1500\n    name: a\n"),
            "f.yaml:2: ports[0].devargs: missing: this key is mandatory");
  EXPECT_EQ(error_of("ports:\n  - devargs: a\n"), "f.yaml:2: ports[0].name: missing: this key is mandatory");
  EXPECT_EQ(error_of("ports:\n  -\n"), "f.yaml:3: ports[0].name: missing: this key is mandatory");
}

TEST(Config, NamesOfPorts) {
  const auto with_name = [](std::string_view name) {
    return error_of(fmt::format("ports:\n- name: \"{}\"\n  devargs: d\n", name));
  };
  EXPECT_EQ(with_name("a"), "accepted");
  EXPECT_EQ(with_name("123456789012345"), "accepted");
  EXPECT_EQ(with_name("1234567890123456"),
            "f.yaml:2: ports[0].name: value '1234567890123456': expected a name of 1..15 characters");
  for (const char* bad : {"", "a/b", "a b", ".", ".."})
    EXPECT_TRUE(with_name(bad).starts_with("f.yaml:2: ports[0].name: value '")) << bad;
  for (const char* bad : {"a\\tb", "a\\nb", "a\\0b", "a\\x7fb"})
    EXPECT_TRUE(with_name(bad).ends_with("expected no control characters")) << bad;
}

TEST(Config, PortsAreDistinct) {
  EXPECT_EQ(error_of("ports:\n- name: a\n  devargs: net_null0\n- name: a\n  devargs: net_null1\n"),
            "f.yaml:4: ports[1].name: value 'a': a port of this name exists already, at f.yaml:2, expected "
            "another name");
  EXPECT_EQ(error_of("ports:\n- name: a\n  devargs: net_null0\n- name: b\n  devargs: \"net_null0,size=9\"\n"),
            "f.yaml:5: ports[1].devargs: value 'net_null0,size=9': a port of this device exists already, at "
            "f.yaml:3, "
            "expected another device");
}

TEST(Config, ValuesThatDoNotFitTogether) {
  EXPECT_EQ(error_of("workers:\n  count: 2\n  cpus: [1]\n"),
            "f.yaml:3: workers.cpus: a list of 1: expected one CPU for each of 2 workers");
  EXPECT_TRUE(
      error_of("workers: {count: 2, cpus: [1, 1]}").starts_with("f.yaml:1: workers.cpus[1]: value 1: "));
  EXPECT_EQ(error_of("teardown:\n  high_objects: 1000000\n"),
            "f.yaml:2: teardown.low_objects: value 1000000: expected below teardown.high_objects (1000000)");
  EXPECT_EQ(
      error_of("teardown:\n  low_bytes: 3GiB\n"),
      "f.yaml:2: teardown.low_bytes: value 3221225472 B: expected below teardown.high_bytes (2147483648 B)");
  EXPECT_EQ(error_of("ports:\n- name: a\n  devargs: d\n  mtu: 9000\n"),
            "f.yaml:4: ports[0].mtu: value 9000: accepted 68..2026 with mbufs.size 2176 B; "
            "a larger MTU needs larger mbufs");
  EXPECT_EQ(error_of("neighbours:\n  per_interface: 87001\n"),
            "f.yaml:2: neighbours.per_interface: value 87001: accepted 1..87000");
  EXPECT_EQ(error_of("neighbours:\n  limit: 10\n"),
            "f.yaml:2: neighbours.per_interface: value 8192: accepted 1..10 (neighbours.limit)");
  EXPECT_EQ(
      error_of("mbufs:\n  count: 1000000\n"),
      "f.yaml:2: eal.memory: value 256MiB: 1000000 mbufs of 2176 B need more, accepted 3931MiB and above");
  EXPECT_EQ(error_of("eal: {hugepages: true}\nmbufs:\n  count: 1000000\n"), "accepted");
  EXPECT_EQ(error_of("mbufs: {count: 512, cache: 400}"),
            "f.yaml:1: mbufs.cache: value 400: accepted at most two thirds of mbufs.count (512)");
  EXPECT_EQ(error_of("eal: {memory: 65537KiB}"),
            "f.yaml:1: eal.memory: value 67109888 B: expected a whole number of MiB");
  EXPECT_TRUE(error_of("socket: {path: ''}").starts_with("f.yaml:1: socket.path: value ''"));
  EXPECT_TRUE(
      error_of(fmt::format("socket: {{path: '/{:a>108}'}}", "")).starts_with("f.yaml:1: socket.path: "));
  EXPECT_TRUE(error_of("socket: {group: 'a b'}").starts_with("f.yaml:1: socket.group: value 'a b'"));
}

TEST(Config, WhatIsNotYamlIsRefusedWithItsLine) {
  EXPECT_TRUE(error_of("workers:\n  count: [1\n").starts_with("f.yaml:3: not YAML: "));
  EXPECT_TRUE(error_of("workers: *nobody\n").starts_with("f.yaml:1: not YAML: "));
  EXPECT_EQ(error_of("workers:\n---\nworkers:\n"),
            "f.yaml:2: a second YAML document or what belongs to none: expected one document");
  EXPECT_NE(error_of("log:\n  level: info\n]\n"), "accepted");
  EXPECT_TRUE(error_of(", log\n").starts_with("f.yaml:1: a second YAML document or what belongs to none"));
  EXPECT_TRUE(error_of(std::string_view("log:\n\0", 6)).starts_with("f.yaml:2: byte 0x00: expected YAML"));
  EXPECT_TRUE(error_of("log:\n  level: info\n\x04\nrubbish: 1\n").starts_with("f.yaml:3: byte 0x04"));
}

TEST(Config, AnchorsAndAliasesWork) {
  const auto config = parse_config(
      "ports:\n- &p {name: a, devargs: net_null0, mtu: &m 1400}\n- {name: b, devargs: net_null1, mtu: *m}\n",
      "f.yaml");
  ASSERT_TRUE(config.has_value()) << config.error().text;
  EXPECT_EQ(config->ports[1].mtu, 1'400u);
}

TEST(Config, HostileNestingIsRefused) {
  for (const char* open : {"[", "{", "- ", "? ", "{a: ", "[[{"}) {
    std::string text;
    for (int i = 0; i < 50'000; ++i) text += open;
    EXPECT_NE(error_of(text), "accepted") << open;
  }
  std::string aliases = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) aliases += fmt::format("a{}: &a{} [*a{}, *a{}]\n", i, i, i - 1, i - 1);
  EXPECT_NE(error_of(aliases + "eal: {args: *a59}\n"), "accepted");
  EXPECT_NE(error_of("eal: &a {args: [*a]}\n"), "accepted");
}

TEST(Config, LongValuesAreRefusedAndCutInTheMessage) {
  const std::string error = error_of("socket: {path: " + std::string(1 << 20, 'a') + "}");
  EXPECT_TRUE(error.starts_with("f.yaml:1: socket.path: value 'aaaa"));
  EXPECT_LT(error.size(), 200u);
}

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "mayfly-config-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
};

TEST_F(ConfigFile, MissingDirectoryAndTooLarge) {
  auto missing = load_config(path("none.yaml"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_EQ(missing.error().text,
            path("none.yaml") + ": cannot open the configuration: No such file or directory");

  auto directory = load_config(directory_);
  ASSERT_FALSE(directory.has_value());
  EXPECT_EQ(directory.error().code, EISDIR);

  std::ofstream(path("large.yaml")) << "#";
  std::filesystem::resize_file(path("large.yaml"), kMaxConfigBytes + 1);
  auto large = load_config(path("large.yaml"));
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, EFBIG);
  EXPECT_EQ(large.error().text, path("large.yaml") + ": 536870913 bytes: accepted at most 512 MiB");

  auto endless = load_config("/dev/zero");
  ASSERT_FALSE(endless.has_value());
  EXPECT_EQ(endless.error().text, "/dev/zero: is a device: expected a YAML file");
}

TEST_F(ConfigFile, OriginsTellWhereAValueCameFrom) {
  std::ofstream(path("a.yaml")) << "workers:\n  count: 2\n";
  Origins origins;
  ASSERT_TRUE(load_config(path("a.yaml"), &origins).has_value());
  EXPECT_EQ(origins["workers.count"], path("a.yaml") + ":2");
  EXPECT_FALSE(origins.contains("workers.cpus"));
}

// What is dumped loads into the same: every key, over random valid configurations.
class RandomConfig {
 public:
  explicit RandomConfig(std::mt19937_64& random) : random_(random) {}

  uint64_t pick(uint64_t least, uint64_t most) { return least + random_() % (most - least + 1); }
  bool coin() { return random_() % 2 == 0; }

  std::string text(size_t least, size_t most, bool name) {
    static constexpr std::string_view kBytes = "abcXYZ019-_:#'\"\\{}[]&*!|>%@`,=?~\xc3\xa4\xe2\x82\xac";
    std::string out;
    const size_t length = pick(least, most);
    while (out.size() < length) {
      const size_t at = random_() % (kBytes.size() - 5);
      out += name ? std::string(1, "abcdefgh:#'\"\\{}-"[random_() % 16]) : std::string(1, kBytes[at]);
    }
    return out;
  }

  Config make() {
    Config config;
    config.eal.hugepages = coin();
    if (coin()) config.eal.memory_bytes = pick(1'024, 4'096) << 20;
    for (uint64_t i = pick(0, 4); i > 0; --i) config.eal.args.push_back(text(1, 30, false));
    config.workers.count = static_cast<uint32_t>(pick(1, 64));
    if (coin())
      for (uint32_t i = 0; i < config.workers.count; ++i) config.workers.cpus.push_back(i * 3 + 1);
    config.workers.idle = {coin(), pick(1'000, 1'000'000'000), pick(1'000, 1'000'000)};
    config.mbufs = {static_cast<uint32_t>(pick(1'024, 50'000)), static_cast<uint32_t>(pick(2'048, 3'000)),
                    static_cast<uint32_t>(pick(0, 512))};
    for (uint64_t i = pick(0, 5); i > 0; --i) add_port(config);
    config.limits = {static_cast<uint32_t>(pick(256, 1u << 24)), static_cast<uint32_t>(pick(1'000, 1u << 24)),
                     static_cast<uint32_t>(pick(1, 1'000)), static_cast<uint32_t>(pick(1, 1u << 24))};
    config.socket = {fmt::format("/{}", text(1, 60, true)), text(0, 1, true) == ":" ? "" : "adm",
                     static_cast<uint32_t>(pick(0, 0777))};
    config.teardown.workers = static_cast<uint32_t>(pick(1, 16));
    config.teardown.nice = static_cast<int>(pick(0, 19));
    config.teardown.block = coin();
    config.teardown.low_objects = pick(1, 1'000'000);
    config.teardown.high_objects = config.teardown.low_objects + pick(1, 1'000'000);
    config.teardown.low_bytes = pick(1, uint64_t{1} << 33);
    config.teardown.high_bytes = config.teardown.low_bytes + pick(1, uint64_t{1} << 33);
    config.log_level = static_cast<LogLevel>(pick(0, 3));
    return config;
  }

 private:
  void add_port(Config& config) {
    PortConfig port;
    port.name = text(1, 10, true) + fmt::format("{}", config.ports.size());
    port.devargs = fmt::format("net_null{},{}", config.ports.size(), text(0, 40, false));
    port.rx_queues = coin() ? 0 : static_cast<uint32_t>(pick(1, 128));
    port.rx_descriptors = static_cast<uint32_t>(pick(32, 32'768));
    port.tx_descriptors = static_cast<uint32_t>(pick(32, 32'768));
    port.mtu = static_cast<uint32_t>(pick(68, 1'898));
    port.promiscuous = coin();
    config.ports.push_back(std::move(port));
  }

  std::mt19937_64& random_;
};

// Field by field, so that a key that dump and load both forget cannot pass unseen.
void expect_equal(const Config& a, const Config& b) {
  EXPECT_EQ(a.eal.hugepages, b.eal.hugepages);
  EXPECT_EQ(a.eal.memory_bytes, b.eal.memory_bytes);
  EXPECT_EQ(a.eal.args, b.eal.args);
  EXPECT_EQ(a.workers.count, b.workers.count);
  EXPECT_EQ(a.workers.cpus, b.workers.cpus);
  EXPECT_EQ(a.workers.idle.adaptive, b.workers.idle.adaptive);
  EXPECT_EQ(a.workers.idle.after_ns, b.workers.idle.after_ns);
  EXPECT_EQ(a.workers.idle.sleep_ns, b.workers.idle.sleep_ns);
  EXPECT_EQ(a.mbufs.count, b.mbufs.count);
  EXPECT_EQ(a.mbufs.size_bytes, b.mbufs.size_bytes);
  EXPECT_EQ(a.mbufs.cache, b.mbufs.cache);
  ASSERT_EQ(a.ports.size(), b.ports.size());
  for (size_t i = 0; i < a.ports.size(); ++i) {
    EXPECT_EQ(a.ports[i].name, b.ports[i].name);
    EXPECT_EQ(a.ports[i].devargs, b.ports[i].devargs);
    EXPECT_EQ(a.ports[i].rx_queues, b.ports[i].rx_queues);
    EXPECT_EQ(a.ports[i].rx_descriptors, b.ports[i].rx_descriptors);
    EXPECT_EQ(a.ports[i].tx_descriptors, b.ports[i].tx_descriptors);
    EXPECT_EQ(a.ports[i].mtu, b.ports[i].mtu);
    EXPECT_EQ(a.ports[i].promiscuous, b.ports[i].promiscuous);
  }
  EXPECT_EQ(a.limits.interfaces, b.limits.interfaces);
  EXPECT_EQ(a.limits.neighbours, b.limits.neighbours);
  EXPECT_EQ(a.limits.neighbours_per_interface, b.limits.neighbours_per_interface);
  EXPECT_EQ(a.limits.routes, b.limits.routes);
  EXPECT_EQ(a.limits.namespaces, b.limits.namespaces);
  EXPECT_EQ(a.socket.path, b.socket.path);
  EXPECT_EQ(a.socket.group, b.socket.group);
  EXPECT_EQ(a.socket.mode, b.socket.mode);
  EXPECT_EQ(a.teardown.workers, b.teardown.workers);
  EXPECT_EQ(a.teardown.nice, b.teardown.nice);
  EXPECT_EQ(a.teardown.block, b.teardown.block);
  EXPECT_EQ(a.teardown.high_objects, b.teardown.high_objects);
  EXPECT_EQ(a.teardown.low_objects, b.teardown.low_objects);
  EXPECT_EQ(a.teardown.high_bytes, b.teardown.high_bytes);
  EXPECT_EQ(a.teardown.low_bytes, b.teardown.low_bytes);
  EXPECT_EQ(a.log_level, b.log_level);
}

TEST(Config, DumpLoadsBackIdentically) {
  const char* given = std::getenv("MAYFLY_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("MAYFLY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300; ++i) {
    const Config config = RandomConfig(random).make();
    const std::string text = dump_config(config);
    const auto loaded = parse_config(text, "dump");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().text << "\n" << text;
    expect_equal(config, *loaded);
    EXPECT_EQ(dump_config(*loaded), text);
    if (HasFailure()) return;
  }
}

TEST(Config, MemoryIsDescribedForTheWorkersThereAre) {
  Config config;
  EXPECT_NE(describe_memory(config).find("at most 512 B each"), std::string::npos) << describe_memory(config);
  config.workers.count = 3;
  EXPECT_NE(describe_memory(config).find("at most 656 B each"), std::string::npos);
  EXPECT_NE(describe_memory(config).find("4,194,304 (interfaces.limit)"), std::string::npos);
  EXPECT_NE(describe_memory(config).find("256 MiB without hugepages"), std::string::npos);
}

}  // namespace
}  // namespace mayfly
