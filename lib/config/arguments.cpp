// SPDX-License-Identifier: BSD-3-Clause
#include "config/arguments.hpp"

#include <set>
#include <vector>

#include "base/units.hpp"
#include "config/nearest.hpp"
#include "config/ranges.hpp"

namespace mayfly {
namespace {

constexpr std::string_view kUsage =
    "mayflyd [-c FILE] [--socket PATH] [--port NAME=DEVARGS]... [--check] [--log-level LEVEL] [--workers N]\n"
    "        [--help] [--version] [-- EAL options]\n"
    "\n"
    "  -c FILE               configuration in YAML; without it the defaults\n"
    "  --socket PATH         control socket (default /run/mayfly/mayfly.sock)\n"
    "  --port NAME=DEVARGS   a port: --port port0=net_af_packet0,iface=veth0, --port wan=0000:03:00.0;\n"
    "                        after the ports of the file\n"
    "  --check               check the configuration, show the memory it may take, and leave\n"
    "  --log-level LEVEL     error, warning, info or debug (default info)\n"
    "  --workers N           polling threads (default 1)\n"
    "  --help, --version\n"
    "  -- EAL options        handed to the EAL as they are, after those of the file\n";

constexpr std::string_view kOptions[] = {"-c",        "--socket", "--port",    "--check", "--log-level",
                                         "--workers", "--help",   "--version", "--"};

// What each word of the command line meant, before the file is read.
struct Words {
  std::optional<std::string> file, socket, log_level, workers;
  std::vector<std::string> ports;
  std::vector<std::string> eal;
  bool check = false, help = false, version = false;
};

std::optional<std::string>* valued_option(Words& words, std::string_view name) {
  if (name == "-c") return &words.file;
  if (name == "--socket") return &words.socket;
  if (name == "--log-level") return &words.log_level;
  if (name == "--workers") return &words.workers;
  return nullptr;
}

bool* flag_option(Words& words, std::string_view name) {
  if (name == "--check") return &words.check;
  if (name == "--help" || name == "-h") return &words.help;
  if (name == "--version") return &words.version;
  return nullptr;
}

std::string_view expected_value(std::string_view name) {
  if (name == "-c") return "the name of a YAML file";
  if (name == "--socket") return "the path of the control socket";
  if (name == "--port") return "NAME=DEVARGS, like port0=net_af_packet0,iface=veth0";
  if (name == "--log-level") return "one of error, warning, info, debug";
  return "a number of workers";
}

Status read_flag(bool* flag, std::string_view name, bool has_value) {
  if (has_value) return fail(EINVAL, "{}: expected no value", name);
  if (*flag) return fail(EINVAL, "{}: given twice, expected once", name);
  *flag = true;
  return {};
}

// Sorts the words into options; values are looked at later.
Result<Words> sort_words(std::span<const char* const> argv) {
  Words words;
  for (size_t i = 0; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    if (word == "--") {
      words.eal.assign(argv.begin() + static_cast<ptrdiff_t>(i) + 1, argv.end());
      break;
    }
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string_view name = word.substr(0, equals);
    if (bool* flag = flag_option(words, name)) {
      if (auto status = read_flag(flag, name, equals != std::string_view::npos); !status)
        return std::unexpected(status.error());
      continue;
    }
    std::optional<std::string>* single = valued_option(words, name);
    if (single == nullptr && name != "--port")
      return fail(EINVAL, "'{}': expected an option, the nearest known: {}", shown(word),
                  nearest_words(name, kOptions));
    if (single != nullptr && single->has_value()) return fail(EINVAL, "{}: given twice, expected once", name);
    if (equals == std::string_view::npos && i + 1 == argv.size())
      return fail(EINVAL, "{}: the value is missing: expected {}", name, expected_value(name));
    const std::string value(equals == std::string_view::npos ? std::string_view(argv[++i])
                                                             : word.substr(equals + 1));
    if (value.empty() || value == "--")
      return fail(EINVAL, "{} '{}': expected {}", name, value, expected_value(name));
    if (single != nullptr)
      *single = value;
    else
      words.ports.push_back(value);
  }
  return words;
}

Status apply_log_level(const std::string& text, LogLevel& level) {
  for (const auto& [name, meaning] : kLogLevels)
    if (text == name) {
      level = meaning;
      return {};
    }
  return fail(EINVAL, "--log-level '{}': expected {}", shown(text), expected_value("--log-level"));
}

Status apply_ports(const std::vector<std::string>& ports, Config& config, Origins& origins) {
  for (const std::string& text : ports) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return fail(EINVAL, "--port '{}': expected {}", shown(text), expected_value("--port"));
    origins[fmt::format("ports[{}]", config.ports.size())] = "--port";
    for (const std::string_view key : {"name", "devargs"})
      origins[fmt::format("ports[{}].{}", config.ports.size(), key)] = fmt::format("--port {}", shown(text));
    PortConfig& port = config.ports.emplace_back();
    port.name = text.substr(0, equals);
    port.devargs = text.substr(equals + 1);
  }
  return {};
}

// The command line over the configuration.
Status apply_words(const Words& words, Config& config, Origins& origins) {
  if (words.log_level)
    if (auto status = apply_log_level(*words.log_level, config.log_level); !status) return status;
  if (words.workers) {
    const auto count =
        parse_number("--workers", shown(*words.workers), kWorkersRange.least, kWorkersRange.most);
    if (!count) return std::unexpected(count.error());
    config.workers.count = static_cast<uint32_t>(*count);
    origins["workers.count"] = "--workers";
  }
  if (words.socket) {
    config.socket.path = *words.socket;
    origins["socket.path"] = "--socket";
  }
  if (auto status = apply_ports(words.ports, config, origins); !status) return status;
  for (const std::string& option : words.eal) {
    origins[fmt::format("eal.args[{}]", config.eal.args.size())] = "after --";
    config.eal.args.push_back(option);
  }
  return check_config(config, origins);
}

}  // namespace

std::string_view usage() noexcept {
  return kUsage;
}

Result<Arguments> parse_arguments(std::span<const char* const> argv, bool* usage_error) {
  bool ignored = false;
  bool& at_usage = usage_error != nullptr ? *usage_error : ignored;
  at_usage = true;
  auto words = sort_words(argv);
  if (!words) return std::unexpected(words.error());
  Arguments arguments;
  arguments.file = words->file;
  arguments.check = words->check;
  arguments.help = words->help;
  arguments.version = words->version;
  if (arguments.help || arguments.version) return arguments;
  Origins origins;
  if (words->file) {
    auto loaded = load_config(*words->file, &origins);
    if (!loaded) {
      at_usage = false;
      return std::unexpected(loaded.error());
    }
    arguments.config = std::move(*loaded);
  }
  if (auto status = apply_words(*words, arguments.config, origins); !status)
    return std::unexpected(status.error());
  return arguments;
}

}  // namespace mayfly
