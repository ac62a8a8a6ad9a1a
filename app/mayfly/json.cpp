// SPDX-License-Identifier: BSD-3-Clause
#include "json.hpp"

#include <cassert>

#include <nlohmann/json.hpp>

namespace mayfly::cli {

namespace {

std::string quoted(std::string_view value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Json::Json(double value) : text_(nlohmann::json(value).dump()) {}

Json::Json(std::string_view value) : text_(quoted(value)) {}

Json::Json(std::initializer_list<Member> members) : text_("{}") {
  update(members);
}

void Json::set(std::string_view key, const Json& value) {
  append(quoted(key) + ":" + value.text_, '}');
}

void Json::update(std::initializer_list<Member> members) {
  for (const Member& member : members) set(member.key, member.value);
}

std::string Json::pretty() const {
  return nlohmann::ordered_json::parse(text_).dump(kIndent);
}

void Json::append(std::string_view member, char end) {
  assert(text_.size() >= 2 && text_.back() == end &&
         "a member is added to an object, an element to an array");
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
  text_ += member;
  text_ += end;
}

}  // namespace mayfly::cli
