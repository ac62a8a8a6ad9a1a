// SPDX-License-Identifier: BSD-3-Clause
#include "control/configuration.hpp"

#include <linux/genetlink.h>
#include <linux/rtnetlink.h>

#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "base/log.hpp"
#include "control/change_list.hpp"
#include "control/generic_writer.hpp"
#include "control/handlers.hpp"
#include "control/protocol.hpp"

namespace mayfly {
namespace {

using namespace protocol;

constexpr size_t kPieceBytes = 32'768;
constexpr size_t kFreedAtOnce = 64;  // changes and pieces that are not worth a way through teardown

// What nobody needs any more, on its way to be freed where it holds nobody up.
struct Discarded {
  Retired retired;
  Changes changes;
  ConfigText text;
};

class DiscardedKind final : public RetiredKind {
 public:
  DiscardedKind() : RetiredKind("configuration") {}
  void dismantle(Retired& object, Returns&) const override {
    auto& discarded = reinterpret_cast<Discarded&>(object);
    discarded.changes = {};
    discarded.text = ConfigText();
  }
  void reclaim(Retired& object, Returns&) const override { delete reinterpret_cast<Discarded*>(&object); }
  std::string describe(const Retired&) const override { return "changes of the configuration"; }
};

const DiscardedKind kDiscardedKind;

constexpr AttributeSpec kBeginSpecs[] = {{kConfigFile, AttributeSpec::Type::string, "file", 4'095}};
constexpr AttributeSpec kTextSpecs[] = {{kConfigText, AttributeSpec::Type::string, "text"}};
constexpr AttributeSpec kChangeSpecs[] = {
    {kConfigContinued, AttributeSpec::Type::flag, "continued"},
    {kConfigNetns, AttributeSpec::Type::string, "netns", kMostNetnsNameBytes},
    {kConfigUndoNetns, AttributeSpec::Type::string, "undo netns", kMostNetnsNameBytes},
    {kConfigFamily, AttributeSpec::Type::u32, "family"},
    {kConfigUndoFamily, AttributeSpec::Type::u32, "undo family"},
    {kConfigRemoval, AttributeSpec::Type::flag, "removal"},
    {kConfigWhere, AttributeSpec::Type::string, "where", 4'200},
    {kConfigWhat, AttributeSpec::Type::string, "what", 4'096},
    {kConfigMessage, AttributeSpec::Type::nested, "message", 0, true},
    {kConfigUndo, AttributeSpec::Type::nested, "undo", 0, true},
};

// The settings, then the file's name and text, piece by piece.
class ConfigShow final : public Operation {
 public:
  ConfigShow(Connection& connection, const nlmsghdr& request)
      : connection_(connection),
        sequence_(request.nlmsg_seq),
        settings_(connection.dataplane().configuration.settings),
        file_(connection.dataplane().configuration.file),
        text_(connection.dataplane().configuration.text) {}

  Progress step(const Deadline& deadline) override {
    while (!connection_.writer().over_high_water()) {
      if (settings_at_ < settings_.size()) {
        write(kConfigSettings, std::string_view(settings_).substr(settings_at_, kPieceBytes));
        settings_at_ += kPieceBytes;
      } else if (piece_ < text_.pieces().size()) {
        write(kConfigText, text_.pieces()[piece_++]);
      } else {
        connection_.writer().done(sequence_, false);
        discard();
        return Progress::done;
      }
      if (deadline.over()) break;
    }
    return Progress::more;
  }
  bool cancel() override {
    discard();
    return true;
  }

 private:
  void write(uint16_t attribute, std::string_view piece) {
    MessageWriter& writer = connection_.writer();
    begin_generic(writer, sequence_, kCmdConfigShow, NLM_F_MULTI);
    writer.put_string(attribute, piece);
    if (attribute == kConfigText && piece_ == 1) writer.put_string(kConfigFile, file_);
    writer.end();
  }
  // A reload may have ended meanwhile, and left the text to this one.
  void discard() {
    Configuration::discard({}, std::move(text_), connection_.retired());
    connection_.dataplane().commit(connection_.retired());
  }

  Connection& connection_;
  uint32_t sequence_;
  std::string settings_;
  std::string file_;
  ConfigText text_;
  size_t settings_at_ = 0;
  size_t piece_ = 0;
};

class ConfigApply final : public Operation {
 public:
  ConfigApply(Connection& connection, const nlmsghdr& request)
      : connection_(connection),
        request_(request),
        list_(connection.dataplane(), std::move(connection.dataplane().configuration.pending()),
              fmt::format("{}, configuration", connection.describe())) {
    connection.dataplane().configuration.pending() = {};
  }

  Progress step(const Deadline& deadline) override {
    const Progress progress = list_.step(deadline);
    if (progress != Progress::done) return progress;
    Configuration& configuration = connection_.dataplane().configuration;
    Status outcome = list_.outcome();
    RetireList& retired = connection_.retired();
    if (outcome)
      configuration.adopt(retired);
    else
      say_what_is_left(outcome.error().text);
    configuration.release(connection_, retired);
    const size_t count = list_.size();
    Configuration::discard(list_.take_changes(), {}, retired);
    connection_.dataplane().commit(retired);
    log(LogLevel::info, "config", "{} changes of the configuration {}; {}", count,
        outcome ? "are made" : fmt::format("are undone: {}", outcome.error().text), connection_.describe());
    if (!cancelled_ && (!outcome || (request_.nlmsg_flags & NLM_F_ACK) != 0))
      connection_.writer().acknowledge(request_, outcome ? nullptr : &outcome.error());
    return Progress::done;
  }
  // Nobody is left with half a configuration because a client died.
  bool cancel() override {
    cancelled_ = true;
    return connection_.dataplane().configuration.stopping();
  }

 private:
  // A bulk request that was refused says of itself that it changed nothing.
  void say_what_is_left(std::string& text) const {
    constexpr std::string_view kNothing = "; nothing was changed";
    if (text.ends_with(kNothing)) text.resize(text.size() - kNothing.size());
    if (list_.not_undone() == 0)
      text += kNothing;
    else
      text += fmt::format("; {} changes before it could not be undone: the daemon's log says why",
                          list_.not_undone());
  }

  Connection& connection_;
  nlmsghdr request_;
  ChangeList list_;
  bool cancelled_ = false;
};

Status check_held(Connection& connection) {
  if (connection.dataplane().configuration.held_by(connection)) return {};
  return fail(EPERM, "configuration: begin a change of it first");
}

Result<bool> read_generic(const RequestAttributes& attributes, uint16_t number, bool absent) {
  const auto family = attributes.u32(number);
  if (!family) return absent;
  if (*family != NETLINK_ROUTE && *family != NETLINK_GENERIC)
    return fail_attribute(number, EINVAL, "family {}: accepted {} (route), {} (generic)", *family,
                          NETLINK_ROUTE, NETLINK_GENERIC);
  return *family == NETLINK_GENERIC;
}

// What a change may consist of: nothing that reads, waits, or changes the configuration itself.
Status check_changes(std::span<const std::byte> message, bool generic) {
  nlmsghdr header;
  std::memcpy(&header, message.data(), sizeof header);
  if (!generic) {
    for (const uint16_t type : {RTM_NEWLINK, RTM_DELLINK, RTM_SETLINK, RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE,
                                RTM_DELROUTE, RTM_NEWNEIGH, RTM_DELNEIGH})
      if (header.nlmsg_type == type) return {};
    return fail(EOPNOTSUPP, "message type {}: accepted are those that change", header.nlmsg_type);
  }
  if (header.nlmsg_type == kGenericFamilyId && header.nlmsg_len >= NLMSG_HDRLEN + GENL_HDRLEN) {
    const auto command = static_cast<uint8_t>(message[NLMSG_HDRLEN]);
    for (const uint8_t known :
         {kCmdLinkBulkAdd, kCmdLinkBulkNames, kCmdLinkBulkDel, kCmdNetnsAdd, kCmdNetnsDel})
      if (command == known) return {};
  }
  return fail(EOPNOTSUPP, "message type {}: accepted are commands that change interfaces and namespaces",
              header.nlmsg_type);
}

Status append_messages(const RequestAttributes& attributes, uint16_t number, bool generic,
                       Change::Messages& messages) {
  Status status;
  attributes.each(number, [&](const nlattr& attribute) {
    const auto bytes = RequestAttributes::bytes(attribute);
    nlmsghdr header{};
    if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len != bytes.size()) {
      status = fail_attribute(number, EINVAL, "message: {} bytes, which is no netlink message", bytes.size());
      return;
    }
    if (auto changes = check_changes(bytes, generic); !changes) {
      status = changes;
      return;
    }
    header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
    const size_t at = messages.size();
    messages.resize(at + NLMSG_ALIGN(bytes.size()));
    std::memcpy(messages.data() + at, bytes.data(), bytes.size());
    std::memcpy(messages.data() + at, &header, sizeof header);
  });
  return status;
}

}  // namespace

void ConfigText::append(std::string_view piece) {
  MAYFLY_DEBUG_CHECK(pieces_.use_count() == 1, "text was appended under somebody who reads it");
  bytes_ += piece.size();
  for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kPieceBytes)))
    pieces_->emplace_back(piece.substr(0, kPieceBytes));
}

std::string ConfigText::whole() const {
  std::string text;
  for (const std::string& piece : *pieces_) text += piece;
  return text;
}

Status Configuration::begin(Connection& connection, std::string_view new_file, RetireList& retired) {
  if (holder_ != nullptr && holder_ != &connection)
    return fail(EBUSY, "configuration: {} is changing it", holder_->describe());
  holder_ = &connection;
  discard(std::exchange(pending_, {}), std::exchange(pending_text_, {}), retired);
  pending_file_ = new_file;
  return {};
}

void Configuration::release(const Connection& connection, RetireList& retired) {
  if (holder_ != &connection) return;
  holder_ = nullptr;
  discard(std::exchange(pending_, {}), std::exchange(pending_text_, {}), retired);
}

Status Configuration::append_text(std::string_view piece) {
  if (pending_text_.size() + piece.size() > kMostTextBytes)
    return fail(EFBIG, "configuration: more than {} bytes", kMostTextBytes);
  pending_text_.append(piece);
  return {};
}

void Configuration::adopt(RetireList& retired) {
  file = std::move(pending_file_);
  discard({}, std::exchange(text, std::exchange(pending_text_, {})), retired);
}

void Configuration::discard(Changes changes, ConfigText text, RetireList& retired) {
  if (changes.size() + text.pieces().size() <= kFreedAtOnce) return;
  constexpr size_t kBytesOfChange = 512;
  const size_t bytes = changes.size() * kBytesOfChange + text.size();
  auto* discarded =
      new Discarded{{{}, static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX)), kDiscardedKind.id(), 0},
                    std::move(changes),
                    std::move(text)};
  retired.retire(discarded->retired);
}

HandlerResult handle_config_show(Connection& connection, const Request& request) {
  if (!request.dump()) return fail(EOPNOTSUPP, "the configuration is read by a dump");
  connection.start(std::make_unique<ConfigShow>(connection, request.header));
  return Handled::operation;
}

HandlerResult handle_config_begin(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kBeginSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  if (auto begun = connection.dataplane().configuration.begin(
          connection, attributes->string(kConfigFile).value_or(""), connection.retired());
      !begun)
    return std::unexpected(begun.error());
  return Handled::acknowledge;
}

HandlerResult handle_config_change(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kChangeSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  if (auto held = check_held(connection); !held) return std::unexpected(held.error());
  Changes& pending = connection.dataplane().configuration.pending();
  if (attributes->has(kConfigContinued) ? pending.empty() : pending.size() == Configuration::kMostChanges)
    return fail(EINVAL, "change: {} are here", pending.size());
  Change change;
  const bool continued = attributes->has(kConfigContinued);
  Change& target = continued ? pending.back() : change;
  auto generic = read_generic(*attributes, kConfigFamily, target.generic);
  if (!generic) return std::unexpected(generic.error());
  auto undo_generic =
      read_generic(*attributes, kConfigUndoFamily, continued ? target.undo_generic : *generic);
  if (!undo_generic) return std::unexpected(undo_generic.error());
  if (auto read = append_messages(*attributes, kConfigMessage, *generic, target.messages); !read)
    return std::unexpected(read.error());
  if (auto read = append_messages(*attributes, kConfigUndo, *undo_generic, target.undo); !read)
    return std::unexpected(read.error());
  if (continued) return Handled::acknowledge;
  change.generic = *generic;
  change.undo_generic = *undo_generic;
  change.kind = attributes->has(kConfigRemoval) ? Change::Kind::removal : Change::Kind::creation;
  change.netns = attributes->string(kConfigNetns).value_or(kDefaultNetnsName);
  change.undo_netns = attributes->string(kConfigUndoNetns).value_or("");
  change.where = attributes->string(kConfigWhere).value_or("");
  change.what = attributes->string(kConfigWhat).value_or("");
  if (change.messages.empty()) return fail(EINVAL, "change: it has no message");
  // They stand in the log.
  for (const std::string& text : {change.where, change.what})
    if (std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
      return fail(EINVAL, "change: control characters in where or what are not accepted");
  pending.push_back(std::move(change));
  return Handled::acknowledge;
}

HandlerResult handle_config_text(Connection& connection, const Request& request) {
  auto attributes = request.attributes<genlmsghdr>(kTextSpecs);
  if (!attributes) return std::unexpected(attributes.error());
  if (auto held = check_held(connection); !held) return std::unexpected(held.error());
  if (auto kept =
          connection.dataplane().configuration.append_text(attributes->string(kConfigText).value_or(""));
      !kept)
    return std::unexpected(kept.error());
  return Handled::acknowledge;
}

HandlerResult handle_config_apply(Connection& connection, const Request& request) {
  if (auto held = check_held(connection); !held) return std::unexpected(held.error());
  connection.start(std::make_unique<ConfigApply>(connection, request.header));
  return Handled::operation;
}

}  // namespace mayfly
