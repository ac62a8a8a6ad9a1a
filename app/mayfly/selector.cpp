// SPDX-License-Identifier: BSD-3-Clause
#include "selector.hpp"

namespace mayfly::cli {

bool take_condition(Words& words, Selector& selector) {
  if (words.take("group")) {
    selector.group = words.take("default") ? 0 : static_cast<uint32_t>(words.number(0, UINT32_MAX));
  } else if (words.take({"parent", "master"})) {
    selector.parent = words.text();
  } else if (words.take("type")) {
    selector.kind = words.text();
  } else if (words.take("vlan")) {
    selector.outer = words.range(UINT16_MAX);
  } else if (words.take("inner")) {
    selector.inner = words.range(UINT16_MAX);
    if (!selector.outer) words.fail(EINVAL, "'inner' follows 'vlan A[-B]'");
  } else if (words.take("up")) {
    selector.admin_up = true;
  } else if (words.take("down")) {
    selector.admin_up = false;
  } else if (words.take("limit")) {
    selector.limit = words.number(1, UINT64_MAX);
  } else {
    return false;
  }
  return true;
}

void put_selector(RequestMessage& message, uint16_t attribute, const Selector& selector) {
  const RequestMessage::Nest nest(message, attribute);
  if (selector.group) message.put_u32(protocol::kSelectGroup, *selector.group);
  if (selector.parent) message.put_string(protocol::kSelectParent, *selector.parent);
  if (selector.kind) message.put_string(protocol::kSelectKind, *selector.kind);
  if (selector.outer) {
    message.put_u16(protocol::kSelectOuterFirst, static_cast<uint16_t>(selector.outer->first));
    message.put_u16(protocol::kSelectOuterLast, static_cast<uint16_t>(selector.outer->last));
  }
  if (selector.inner) {
    message.put_u16(protocol::kSelectInnerFirst, static_cast<uint16_t>(selector.inner->first));
    message.put_u16(protocol::kSelectInnerLast, static_cast<uint16_t>(selector.inner->last));
  }
  if (selector.admin_up) message.put_u8(protocol::kSelectAdminUp, *selector.admin_up ? 1 : 0);
  if (selector.limit) message.put_u64(protocol::kSelectLimit, *selector.limit);
}

Status check_deletable(const Selector& selector) {
  if (selector.limit) return fail(EINVAL, "'limit' is for showing: what it would delete is left to chance");
  if (selector.group == 0)
    return fail(
        EINVAL,
        "group 0 is where every interface is that was put nowhere else: it is not deleted as a group");
  if (selector.empty())
    return fail(EINVAL, "say which interfaces: a name, or a selector (group, parent, type, vlan, up, down)");
  return {};
}

}  // namespace mayfly::cli
