// SPDX-License-Identifier: BSD-3-Clause
#include "port/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "base/log.hpp"
#include "port/eal_log.hpp"
#include "port/privilege.hpp"

namespace mayfly {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// No machine has it. A list of allowed devices keeps the EAL off all others; --no-pci would keep it off those
// that are added later, too.
constexpr std::string_view kNoPciDevice = "ffff:ff:1f.7";

std::string join(const std::vector<int>& cpus) {
  std::string text;
  for (const int cpu : cpus) text += fmt::format("{}{}", text.empty() ? "" : ",", cpu);
  return text;
}

std::string lcore_map(const EalSettings& settings) {
  std::string map = fmt::format("0@({})", join(settings.control_cpus));
  for (uint32_t worker = 0; worker < settings.worker_cpus.size(); ++worker)
    map += fmt::format(",{}@{}", worker_lcore(worker), settings.worker_cpus[worker]);
  return map;
}

// What an operator can do about it.
std::string_view advice(int error, bool hugepages) {
  switch (error) {
    case EACCES:
    case EPERM:
    case ENOMEM:
      if (hugepages)
        return "no free hugepages, or no right to them: as root, sysctl vm.nr_hugepages=512; or set "
               "eal.hugepages: false";
      if (error == ENOMEM) return "set eal.memory lower, or free memory";
      return "run as root, or set XDG_RUNTIME_DIR to a directory that can be written";
    case EINVAL:
      return "check eal.args, what follows '--' and workers.cpus";
    case EALREADY:
      return "DPDK starts once in a process";
    case ENOTSUP:
      return "this machine lacks what DPDK asks for";
    default:
      return hugepages ? "try eal.hugepages: false" : "see the log above";
  }
}

}  // namespace

bool is_pci_devargs(std::string_view devargs) noexcept {
  const std::string_view address = devargs.substr(0, devargs.find(','));
  const auto matches = [&](std::string_view shape) {
    return address.size() == shape.size() && std::ranges::equal(address, shape, [](char c, char s) {
             return s == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == s;
           });
  };
  return matches("hhhh:hh:hh.h") || matches("hh:hh.h");
}

std::string with_full_pci_address(std::string_view devargs) {
  if (!is_pci_devargs(devargs)) return std::string(devargs);
  const size_t end = std::min(devargs.find(','), devargs.size());
  std::string address(devargs.substr(0, end));
  std::ranges::transform(address, address.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool has_domain = std::ranges::count(address, ':') == 2;
  return (has_domain ? "" : "0000:") + address + std::string(devargs.substr(end));
}

std::vector<std::string> eal_arguments(const EalSettings& settings, std::string_view file_prefix) {
  std::vector<std::string> arguments{settings.program,        "--lcores", lcore_map(settings),
                                     "--main-lcore",          "0",        "--file-prefix",
                                     std::string(file_prefix)};
  arguments.emplace_back(settings.hugepages ? "--in-memory" : "--no-huge");
  if (settings.memory_bytes != 0) {
    arguments.emplace_back("-m");
    arguments.push_back(fmt::format("{}", (settings.memory_bytes + kMiB - 1) / kMiB));
  }
  if (!settings.telemetry) arguments.emplace_back("--no-telemetry");
  arguments.insert(arguments.end(), {"-a", std::string(kNoPciDevice)});
  for (const std::string& devargs : settings.port_devargs) {
    if (!is_pci_devargs(devargs)) continue;
    arguments.emplace_back("-a");
    arguments.push_back(with_full_pci_address(devargs));
  }
  arguments.insert(arguments.end(), settings.extra_args.begin(), settings.extra_args.end());
  return arguments;
}

Result<std::unique_ptr<Eal>> Eal::start(const EalSettings& settings) {
  redirect_eal_log();
  std::unique_ptr<Eal> eal(new Eal(fmt::format("mayfly-{}", getpid())));
  std::vector<std::string> arguments = eal_arguments(settings, eal->file_prefix_);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  EalErrorScope words;
  const int parsed = rte_eal_init(static_cast<int>(arguments.size()), argv.data());
  eal->note_runtime_directory();
  if (parsed < 0) {
    const int error = rte_errno != 0 ? rte_errno : EINVAL;
    if (const std::string directory = unwritable_runtime_directory(); !directory.empty())
      return fail(EACCES,
                  "DPDK did not start: uid {} may not write to {}: run as root, or set XDG_RUNTIME_DIR to a "
                  "directory that can be written{}",
                  geteuid(), directory, words.reason());
    return fail(error, "DPDK did not start: {} ({}){}", advice(error, settings.hugepages),
                std::strerror(error), words.reason());
  }
  eal->running_ = true;
  return eal;
}

// The EAL picks it by user and environment. Only a directory that is named after this process is ours to
// remove.
void Eal::note_runtime_directory() {
  const std::filesystem::path directory = rte_eal_get_runtime_dir();
  if (directory.filename() == file_prefix_) runtime_directory_ = directory;
}

Eal::~Eal() {
  if (running_) rte_eal_cleanup();
  if (runtime_directory_.empty()) return;
  std::error_code error;
  std::filesystem::remove_all(runtime_directory_, error);
  if (error) log(LogLevel::warning, "port", "{} can not be removed: {}", runtime_directory_, error.message());
}

}  // namespace mayfly
