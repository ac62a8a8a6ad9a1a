// SPDX-License-Identifier: BSD-3-Clause
#include "control/change_list.hpp"

#include <cstring>
#include <iterator>

#include "base/log.hpp"
#include "control/dataplane.hpp"

namespace mayfly {
namespace {

bool says_it_is_gone(int code) noexcept {
  return code == ENODEV || code == ENOENT || code == ESRCH || code == EADDRNOTAVAIL;
}

// The message at this place.
std::span<const std::byte> message_at(const Change::Messages& messages, size_t offset) noexcept {
  nlmsghdr header;
  std::memcpy(&header, messages.data() + offset, sizeof header);
  return std::span(messages).subspan(offset, header.nlmsg_len);
}

int room_behind(const nlmsghdr& message, const nlattr* attribute) noexcept {
  return static_cast<int>(reinterpret_cast<const std::byte*>(&message) + message.nlmsg_len -
                          reinterpret_cast<const std::byte*>(attribute));
}

bool only_one(const Change::Messages& messages) noexcept {
  return NLMSG_ALIGN(message_at(messages, 0).size()) == messages.size();
}

}  // namespace

ChangeList::ChangeList(Dataplane& dataplane, std::vector<Change> changes, std::string description)
    : ChangeList(dataplane,
                 Changes(std::make_move_iterator(changes.begin()), std::make_move_iterator(changes.end())),
                 std::move(description)) {}

ChangeList::ChangeList(Dataplane& dataplane, Changes changes, std::string description)
    : dataplane_(dataplane),
      changes_(std::move(changes)),
      gone_(changes_.size()),
      connection_(dataplane, std::move(description)) {
  // What is deleted dies in one teardown batch, and changes of routes appear at once, as far as they are few.
  connection_.begin_batch();
}

ChangeList::~ChangeList() {
  connection_.close("the change of the configuration ends");
  // What is under way may wait for a grace period or for a device, whose ends nobody else collects here.
  while (!connection_.finished()) {
    connection_.run(Deadline::never());
    dataplane_.collect();
  }
}

Operation::Progress ChangeList::step(const Deadline& deadline) {
  while (phase_ != Phase::done) {
    if (!connection_.idle()) {
      const bool more = connection_.run(deadline);
      if (!connection_.idle()) return more ? Operation::Progress::more : Operation::Progress::waiting;
    }
    if (answer_due_) take_answer();
    if (phase_ == Phase::done) break;
    if (!send_next()) next_change();
    if (deadline.over()) return Operation::Progress::more;
  }
  return Operation::Progress::done;
}

bool ChangeList::send_next() {
  const bool back = phase_ == Phase::backward;
  if (at_ == changes_.size()) return false;
  const Change& change = changes_[at_];
  const Change::Messages& messages = back ? change.undo : change.messages;
  if (offset_ >= messages.size() || (back && gone_[at_])) return false;
  const auto message = message_at(messages, offset_);
  const bool generic = back ? change.undo_generic : change.generic;
  const std::string& netns = back && !change.undo_netns.empty() ? change.undo_netns : change.netns;
  offset_ += NLMSG_ALIGN(message.size());
  if (auto sent = connection_.execute(message, generic ? NETLINK_GENERIC : NETLINK_ROUTE, netns); !sent)
    refused(sent.error());
  else
    answer_due_ = true;
  return true;
}

// Among the answers of a message is one acknowledgement: a bulk request has its numbers before it.
void ChangeList::take_answer() {
  answer_due_ = false;
  MessageWriter& writer = connection_.writer();
  writer.flush();
  Error error{0, ""};
  for (; !writer.empty(); writer.pop_front()) {
    int left = static_cast<int>(writer.front().size());
    for (auto* message = reinterpret_cast<const nlmsghdr*>(writer.front().data());
         mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
      if (message->nlmsg_type != NLMSG_ERROR) continue;
      const auto* answer = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message));
      if (answer->error == 0) continue;
      error.code = -answer->error;
      const auto* attribute =
          static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(message, sizeof(nlmsgerr)));
      for (; mnl_attr_ok(attribute, room_behind(*message, attribute)); attribute = mnl_attr_next(attribute))
        if (mnl_attr_get_type(attribute) == NLMSGERR_ATTR_MSG) error.text = mnl_attr_get_str(attribute);
    }
  }
  if (error.code != 0) refused(error);
}

void ChangeList::refused(const Error& error) {
  const Change& change = changes_[at_];
  if (phase_ == Phase::backward) {
    // Of a change that was half done, part of what it asks for is there already, or not there yet.
    if (says_it_is_gone(error.code) || error.code == EEXIST) return;
    ++not_undone_;
    log(LogLevel::error, "config", "{}: {}: cannot be undone: {}", change.where, change.what, error.text);
    return;
  }
  if (change.kind == Change::Kind::removal && says_it_is_gone(error.code) && only_one(change.messages)) {
    gone_[at_] = true;
    return;
  }
  outcome_ = fail(error.code, "{}: {}: {}", change.where, change.what, error.text);
  phase_ = Phase::backward;
  connection_.listed() = {};
  // With what it did before.
  const bool half_done = offset_ > NLMSG_ALIGN(message_at(change.messages, 0).size());
  offset_ = 0;
  if (half_done) return;
  if (at_ == 0)
    at_ = changes_.size();
  else
    --at_;
}

void ChangeList::next_change() {
  offset_ = 0;
  if (phase_ == Phase::forward) {
    if (at_ < changes_.size()) ++at_;
    if (at_ < changes_.size()) return;
  } else if (at_ > 0 && at_ < changes_.size()) {
    --at_;
    return;
  }
  connection_.end_batch();
  phase_ = Phase::done;
}

}  // namespace mayfly
