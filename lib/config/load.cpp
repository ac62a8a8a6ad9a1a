// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <sstream>

#include "config/config.hpp"
#include "config/nearest.hpp"
#include "config/network_load.hpp"
#include "config/yaml_map.hpp"

namespace mayfly {
namespace {

using Keys = std::string_view;

void read_eal(YamlMap& root, EalConfig& eal) {
  static constexpr Keys kKeys[] = {"hugepages", "memory", "args"};
  YamlMap map = root.section("eal", kKeys);
  map.boolean("hugepages", eal.hugepages);
  if (map.has("memory")) map.bytes("memory", eal.memory_bytes.emplace(), kEalMemoryRange);
  for (const auto& element : map.list("args", kMostEalArgs))
    if (auto arg = map.element_text(element)) eal.args.push_back(std::move(*arg));
}

void read_workers(YamlMap& root, WorkersConfig& workers) {
  static constexpr Keys kKeys[] = {"count", "cpus", "idle"};
  static constexpr Keys kIdleKeys[] = {"policy", "after", "sleep"};
  YamlMap map = root.section("workers", kKeys);
  map.number("count", workers.count, kWorkersRange);
  for (const auto& element : map.list("cpus", kWorkersRange.most)) {
    const auto text = map.element_text(element);
    if (!text) return;
    const auto cpu = parse_number("value", *text, kCpuRange.least, kCpuRange.most);
    if (!cpu) return map.refuse_element(element, cpu.error().text);
    workers.cpus.push_back(static_cast<uint32_t>(*cpu));
  }
  YamlMap idle = map.section("idle", kIdleKeys);
  static constexpr YamlMap::Choice<bool> kPolicies[] = {{"adaptive", true}, {"poll", false}};
  idle.choice<bool>("policy", workers.idle.adaptive, kPolicies);
  idle.duration("after", workers.idle.after_ns, kIdleAfterRange);
  idle.duration("sleep", workers.idle.sleep_ns, kIdleSleepRange);
}

void read_mbufs(YamlMap& root, MbufsConfig& mbufs) {
  static constexpr Keys kKeys[] = {"count", "size", "cache"};
  YamlMap map = root.section("mbufs", kKeys);
  map.number("count", mbufs.count, kMbufCountRange);
  map.bytes("size", mbufs.size_bytes, kMbufSizeRange);
  map.number("cache", mbufs.cache, kMbufCacheRange);
}

void read_ports(YamlMap& root, std::vector<PortConfig>& ports) {
  static constexpr Keys kKeys[] = {"name",           "devargs", "rx_queues",  "rx_descriptors",
                                   "tx_descriptors", "mtu",     "promiscuous"};
  for (const auto& element : root.list("ports", kMostPorts)) {
    YamlMap map = root.element_map(element, kKeys);
    map.require("name");
    map.require("devargs");
    PortConfig& port = ports.emplace_back();
    map.text("name", port.name);
    map.text("devargs", port.devargs);
    map.number("rx_queues", port.rx_queues, kQueuesRange);
    map.number("rx_descriptors", port.rx_descriptors, kDescriptorsRange);
    map.number("tx_descriptors", port.tx_descriptors, kDescriptorsRange);
    map.number("mtu", port.mtu, kMtuRange);
    map.boolean("promiscuous", port.promiscuous);
  }
}

void read_limits(YamlMap& root, LimitsConfig& limits) {
  static constexpr Keys kKeys[] = {"limit"};
  static constexpr Keys kNeighbourKeys[] = {"limit", "per_interface"};
  root.section("interfaces", kKeys).number("limit", limits.interfaces, kTableRange);
  YamlMap neighbours = root.section("neighbours", kNeighbourKeys);
  neighbours.number("limit", limits.neighbours, kTableRange);
  neighbours.number("per_interface", limits.neighbours_per_interface, kInterfaceNeighboursRange);
  root.section("routes", kKeys).number("limit", limits.routes, kTableRange);
  root.section("namespaces", kKeys).number("limit", limits.namespaces, kTableRange);
}

void read_socket(YamlMap& root, SocketConfig& socket) {
  static constexpr Keys kKeys[] = {"path", "group", "mode"};
  YamlMap map = root.section("socket", kKeys);
  map.text("path", socket.path);
  map.text("group", socket.group);
  map.mode("mode", socket.mode);
}

void read_teardown(YamlMap& root, TeardownConfig& teardown) {
  static constexpr Keys kKeys[] = {"workers",     "nice",       "policy",   "high_objects",
                                   "low_objects", "high_bytes", "low_bytes"};
  YamlMap map = root.section("teardown", kKeys);
  map.number("workers", teardown.workers, kTeardownWorkersRange);
  auto nice = static_cast<uint32_t>(teardown.nice);
  map.number("nice", nice, kNiceRange);
  teardown.nice = static_cast<int>(nice);
  static constexpr YamlMap::Choice<bool> kPolicies[] = {{"block", true}, {"fail", false}};
  map.choice<bool>("policy", teardown.block, kPolicies);
  map.number("high_objects", teardown.high_objects, kBacklogObjectsRange);
  map.number("low_objects", teardown.low_objects, kBacklogObjectsRange);
  map.bytes("high_bytes", teardown.high_bytes, kBacklogBytesRange);
  map.bytes("low_bytes", teardown.low_bytes, kBacklogBytesRange);
}

void read_log(YamlMap& root, LogLevel& level) {
  static constexpr Keys kKeys[] = {"level"};
  root.section("log", kKeys).choice<LogLevel>("level", level, kLogLevels);
}

Config read_document(const YAML::Node& document, std::string_view file, YamlErrors& errors,
                     Origins& origins) {
  static constexpr Keys kKeys[] = {"eal",    "workers",    "mbufs",  "ports",    "interfaces", "neighbours",
                                   "routes", "namespaces", "socket", "teardown", "log",        "network"};
  YamlMap root(errors, origins, document, 1, "", kKeys);
  Config config;
  read_eal(root, config.eal);
  read_workers(root, config.workers);
  read_mbufs(root, config.mbufs);
  read_ports(root, config.ports);
  read_limits(root, config.limits);
  read_socket(root, config.socket);
  read_teardown(root, config.teardown);
  read_log(root, config.log_level);
  config.network.file = file;
  for (const PortConfig& port : config.ports) config.network.port_mtus[port.name] = port.mtu;
  read_network(root, config.network);
  return config;
}

// Hears where a document begins, and nothing else.
class DocumentStart final : public YAML::EventHandler {
 public:
  int line() const noexcept { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

 private:
  int line_ = 1;
};

// YAML::LoadAll() would tell how many there are, but never returns from a file that begins with a comma.
std::optional<int> line_of_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (parser.HandleNextDocument(start) && parser.HandleNextDocument(start)) return start.line();
  return std::nullopt;
}

// yaml-cpp takes byte 4 for the end of the file and NUL for several things: text has none of them.
Status check_text(std::string_view text, std::string_view file) {
  if (text.size() > kMaxConfigBytes)
    return fail(EFBIG, "{}: {} bytes: accepted at most {}", file, text.size(), format_bytes(kMaxConfigBytes));
  size_t line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f)
      return fail(EINVAL, "{}:{}: byte 0x{:02x}: expected YAML in UTF-8, without control characters", file,
                  line, byte);
  }
  return {};
}

Status read_file(const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(errno, "{}: cannot open the configuration: {}", path, std::strerror(errno));
  Status status;
  struct stat about {};
  if (fstat(fd, &about) != 0)
    status = fail(errno, "{}: {}", path, std::strerror(errno));
  else if (S_ISDIR(about.st_mode))
    status = fail(EISDIR, "{}: is a directory: expected a YAML file", path);
  else if (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode))
    status = fail(EINVAL, "{}: is a device: expected a YAML file", path);
  else if (S_ISREG(about.st_mode) && static_cast<uint64_t>(about.st_size) > kMaxConfigBytes)
    status =
        fail(EFBIG, "{}: {} bytes: accepted at most {}", path, about.st_size, format_bytes(kMaxConfigBytes));
  std::array<char, 65'536> part;
  // One byte over the limit is enough for check_text() to refuse a pipe that does not end.
  while (status && text.size() <= kMaxConfigBytes) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got == 0) break;
    if (got > 0)
      text.append(part.data(), static_cast<size_t>(got));
    else if (errno != EINTR)
      status = fail(errno, "{}: cannot read the configuration: {}", path, std::strerror(errno));
  }
  close(fd);
  return status;
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view file, Origins* origins) {
  if (auto status = check_text(text, file); !status) return std::unexpected(status.error());
  YamlErrors errors(file);
  Origins found;
  Config config;
  try {
    const std::string copy(text);
    if (const auto line = line_of_second_document(copy))
      return fail(EINVAL, "{}:{}: a second YAML document or what belongs to none: expected one document",
                  file, *line);
    // yaml-cpp itself stops at a nesting of 500.
    config = read_document(YAML::Load(copy), file, errors, found);
  } catch (const YAML::Exception& exception) {
    return fail(EINVAL, "{}:{}: not YAML: {}", file, exception.mark.line + 1, exception.msg);
  } catch (const std::exception& exception) {
    return fail(EINVAL, "{}: cannot be read as YAML: {}", file, exception.what());
  }
  if (errors.failed()) return std::unexpected(*errors.first());
  if (auto status = check_config(config, found); !status) return std::unexpected(status.error());
  if (origins != nullptr) *origins = std::move(found);
  config.text = text;
  return config;
}

Result<Config> load_config(const std::string& path, Origins* origins) {
  std::string text;
  if (auto status = read_file(path, text); !status) return std::unexpected(status.error());
  return parse_config(text, path, origins);
}

}  // namespace mayfly
