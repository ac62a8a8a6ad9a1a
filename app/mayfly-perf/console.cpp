// SPDX-License-Identifier: BSD-3-Clause
#include "console.hpp"

#include <vector>

#include <nlohmann/json.hpp>

#include "mayfly/session.hpp"

namespace mayfly::perf {

using ReadJson = nlohmann::ordered_json;

struct Console::Parts {
  cli::Options options;
  cli::Output output{-1};
  cli::Session session{options, output};
};

namespace {

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace

Console::Console(std::string socket, std::string netns) : parts_(std::make_unique<Parts>()) {
  parts_->options.socket = std::move(socket);
  parts_->options.netns = std::move(netns);
  parts_->options.json = true;
}

Console::~Console() = default;
Console::Console(Console&& other) noexcept = default;

Result<std::string> Console::answer(std::string_view line) {
  const auto failed = [&line](const Error& error) { return fail(error.code, "{}: {}", line, error.text); };
  const std::vector<std::string_view> words = split(line);
  cli::Plan plan;
  if (auto understood = cli::parse_command(words, parts_->options, plan); !understood)
    return failed(understood.error());
  if (!plan.present) {
    const auto done = parts_->session.request(plan.family, plan.message);
    if (!done) return failed(done.error());
    return parts_->output.take();
  }
  const auto status = plan.present(parts_->session, plan);
  std::string text = parts_->output.take();
  if (!status) return failed(status.error());
  if (*status != cli::kExitOk) return fail(EIO, "{}: {}", line, text);
  return text;
}

Status Console::run(std::string_view line) {
  auto done = answer(line);
  if (!done) return std::unexpected(done.error());
  return {};
}

Result<ReadJson> Console::read(std::string_view line) {
  const auto text = answer(line);
  if (!text) return std::unexpected(text.error());
  ReadJson document = ReadJson::parse(*text, nullptr, false);
  if (document.is_discarded()) return fail(EPROTO, "{}: no JSON: {}", line, *text);
  return document;
}

ReadJson Console::look(std::string_view line) {
  auto document = read(line);
  return document ? std::move(*document) : ReadJson();
}

Result<ControlClient> Console::connect(uint32_t family) const {
  return ControlClient::connect({.socket = parts_->options.socket,
                                 .family = family,
                                 .netns = parts_->options.netns,
                                 .client_name = "mayfly-perf"});
}

const std::string& Console::socket() const noexcept {
  return parts_->options.socket;
}

}  // namespace mayfly::perf
