// SPDX-License-Identifier: BSD-3-Clause
// The configuration of a running daemon: as it was loaded, as it is now, and another one.
#include <linux/genetlink.h>

#include <array>
#include <map>

#include "config/config.hpp"
#include "config_dump.hpp"
#include "plan.hpp"
#include "session.hpp"

namespace mayfly::cli {
namespace {

constexpr std::string_view kHelp =
    R"(Usage: mayfly config show              the file that is loaded, as it was read
       mayfly config dump              YAML of what is there now; mayflyd -c loads it back
       mayfly config reload FILE [--dry-run]
Reloading prints what differs from the loaded file (- goes, + comes, ~ changes) and makes it so, all or nothing.
)";

constexpr size_t kPieceBytes = 32'768;
constexpr size_t kHeaderRoom = 256;

void begin_show(Plan& plan) {
  plan.begin_generic(protocol::kCmdConfigShow, NLM_F_DUMP);
}

Result<int> show(Session& session, Plan&) {
  const auto loaded = read_loaded(session);
  if (!loaded) return std::unexpected(loaded.error());
  if (session.options().json)
    session.out().write_json(
        Json{{"file", loaded->file}, {"text", loaded->text}, {"boot_id", session.boot_id()}},
        session.options().pretty);
  else
    session.out().write(loaded->text);
  return kExitOk;
}

Status parse_show(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  begin_show(plan);
  plan.present = show;
  return {};
}

Result<int> dump(Session& session, Plan&) {
  const auto text = dump_running(session);
  if (!text) return std::unexpected(text.error());
  session.out().write(*text);
  return kExitOk;
}

Status parse_dump(Words& words, const Options&, Plan& plan) {
  if (!words.done()) return words.unknown();
  begin_show(plan);
  plan.present = dump;
  return {};
}

// ---------------------------------------------------------------------------------------------------- reload

// The blocks of a dump by their keys: "workers" and what belongs to it.
std::map<std::string, std::string> sections_of(const std::string& yaml) {
  std::map<std::string, std::string> sections;
  std::string* section = nullptr;
  for (size_t at = 0; at < yaml.size();) {
    const size_t end = yaml.find('\n', at) + 1;
    const std::string_view line = std::string_view(yaml).substr(at, end - at);
    if (line[0] != ' ') section = &sections[std::string(line.substr(0, line.find(':')))];
    section->append(line);
    at = end;
  }
  return sections;
}

std::vector<std::string> restart_needed(const Config& from, const Config& to) {
  const auto is = sections_of(dump_settings(from));
  std::vector<std::string> keys;
  for (const auto& [key, text] : sections_of(dump_settings(to)))
    if (is.at(key) != text) keys.push_back(key);
  return keys;
}

void put_messages(RequestMessage& message, uint16_t attribute, const Change::Messages& messages, size_t& at,
                  bool& full) {
  while (at < messages.size() && !full) {
    const auto* header = reinterpret_cast<const nlmsghdr*>(messages.data() + at);
    full = message.room() < header->nlmsg_len + kHeaderRoom;
    if (full) break;
    message.put(attribute, header, header->nlmsg_len);
    at += NLMSG_ALIGN(header->nlmsg_len);
  }
}

uint32_t family_of(bool generic) {
  return generic ? NETLINK_GENERIC : NETLINK_ROUTE;
}

// One change, in as many messages as it takes.
Status send_change(ControlClient& client, const Change& change, RequestMessage& message) {
  size_t at = 0;
  size_t undo_at = 0;
  for (bool first = true; first || at < change.messages.size() || undo_at < change.undo.size();
       first = false) {
    message.begin_generic(protocol::kCmdConfigChange);
    if (first) {
      message.put_string(protocol::kConfigNetns, change.netns);
      if (!change.undo_netns.empty()) message.put_string(protocol::kConfigUndoNetns, change.undo_netns);
      message.put_u32(protocol::kConfigFamily, family_of(change.generic));
      message.put_u32(protocol::kConfigUndoFamily, family_of(change.undo_generic));
      if (change.kind == Change::Kind::removal) message.put_flag(protocol::kConfigRemoval);
      message.put_string(protocol::kConfigWhere, change.where);
      message.put_string(protocol::kConfigWhat, change.what);
    } else {
      message.put_flag(protocol::kConfigContinued);
    }
    bool full = false;
    put_messages(message, protocol::kConfigMessage, change.messages, at, full);
    put_messages(message, protocol::kConfigUndo, change.undo, undo_at, full);
    if (auto sent = client.enqueue(message); !sent) return std::unexpected(sent.error());
  }
  return {};
}

Status send_text(ControlClient& client, std::string_view text, RequestMessage& message) {
  for (size_t at = 0; at < text.size(); at += kPieceBytes) {
    message.begin_generic(protocol::kCmdConfigText);
    message.put_string(protocol::kConfigText, text.substr(at, kPieceBytes));
    if (auto sent = client.enqueue(message); !sent) return std::unexpected(sent.error());
  }
  return {};
}

Status apply(Session& session, const std::vector<Change>& changes, const Config& wanted) {
  auto client = session.client(Plan::Family::generic);
  if (!client) return std::unexpected(client.error());
  std::optional<Error> refused;
  (*client)->on_refused([&refused](uint32_t, const Error& error) {
    if (!refused) refused = error;
  });
  RequestMessage message;
  Status sent;
  for (const Change& change : changes)
    if (sent = send_change(**client, change, message); !sent) break;
  if (sent) sent = send_text(**client, wanted.text, message);
  if (sent) sent = (*client)->drain();
  (*client)->on_refused({});
  if (!sent) return sent;
  if (refused) return fail(refused->code, "{}; nothing was changed", refused->text);
  message.begin_generic(protocol::kCmdConfigApply);
  return session.request(Plan::Family::generic, message);
}

void print_changes(Session& session, const std::vector<Change>& changes,
                   const std::vector<std::string>& restart) {
  for (const Change& change : changes) session.out().print("{} {}\n", change.sign(), change.what);
  for (const std::string& key : restart) session.out().print("! {}: needs a restart\n", key);
}

Json changes_json(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes)
    list.push_back({{"change", change.kind == Change::Kind::removal   ? "removed"
                               : change.kind == Change::Kind::setting ? "changed"
                                                                      : "added"},
                    {"what", change.what},
                    {"where", change.where}});
  return list;
}

Result<int> reload(Session& session, const std::string& file, bool dry_run) {
  auto wanted = load_config(file);
  if (!wanted) return std::unexpected(wanted.error());
  RequestMessage message;
  if (!dry_run) {
    message.begin_generic(protocol::kCmdConfigBegin);
    message.put_string(protocol::kConfigFile, file);
    if (auto begun = session.request(Plan::Family::generic, message); !begun)
      return std::unexpected(begun.error());
  }
  const auto loaded = read_loaded(session);
  if (!loaded) return std::unexpected(loaded.error());
  const auto from = mayfly::parse_config(loaded->text, loaded->file.empty() ? "configuration" : loaded->file);
  if (!from) return std::unexpected(from.error());
  const std::vector<Change> changes = difference(from->network, wanted->network);
  const std::vector<std::string> restart = restart_needed(*from, *wanted);
  const Options& options = session.options();
  if (!options.json) print_changes(session, changes, restart);
  session.out().flush();
  Status applied;
  if (!dry_run) applied = apply(session, changes, *wanted);
  if (options.json)
    session.out().write_json(Json{{"changes", changes_json(changes)},
                                  {"needs_restart", restart},
                                  {"applied", !dry_run && applied.has_value()},
                                  {"boot_id", session.boot_id()}},
                             options.pretty);
  if (!applied) return std::unexpected(applied.error());
  return kExitOk;
}

Status parse_reload(Words& words, const Options&, Plan& plan) {
  std::string file;
  bool dry_run = false;
  while (!words.done()) {
    if (words.take({"--dry-run", "-dry-run"})) {
      dry_run = true;
    } else if (file.empty()) {
      file = words.next();
    } else {
      return words.unknown();
    }
  }
  if (Status understood = words.status(); !understood) return understood;
  if (file.empty()) return fail(EINVAL, "the name of the file is missing: expected 'config reload FILE'");
  plan.family = Plan::Family::generic;
  plan.present = [file, dry_run](Session& session, Plan&) { return reload(session, file, dry_run); };
  return {};
}

constexpr std::array kCommands = {CommandEntry{"show", parse_show}, CommandEntry{"dump", parse_dump},
                                  CommandEntry{"reload", parse_reload}};

}  // namespace

Status parse_config(Words& words, const Options& options, Plan& plan) {
  return parse_in_table(kCommands, "command of config", "show", kHelp, words, options, plan);
}

}  // namespace mayfly::cli
