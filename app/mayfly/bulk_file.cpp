// SPDX-License-Identifier: BSD-3-Clause
#include "bulk_file.hpp"

#include <fcntl.h>
#include <linux/genetlink.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "dressing.hpp"
#include "output.hpp"

namespace mayfly::cli {
namespace {

// As it was read; what the CLI writes is Json (json.hpp).
using ReadJson = nlohmann::ordered_json;

constexpr size_t kInputChunk = 256 * 1024;

constexpr std::array<std::string_view, 18> kColumns = {
    "name",       "link",      "type",      "mtu",      "group",       "address", "alias", "up",    "netns",
    "unnumbered", "rp_filter", "proxy_arp", "proxy_nd", "addrgenmode", "peer",    "addr",  "route", "neigh",
};

bool is_parameter(std::string_view column) {
  for (const KindDescription& kind : kind_descriptions())
    for (const KindParameter& parameter : kind.parameters)
      if (parameter.word == column) return true;
  return false;
}

std::string all_columns() {
  std::string text;
  for (const std::string_view column : kColumns)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", column);
  for (const KindDescription& kind : kind_descriptions())
    for (const KindParameter& parameter : kind.parameters) text += fmt::format(", {}", parameter.word);
  return text;
}

struct Cell {
  std::string_view column;
  std::string value;
};

// One row after the other becomes an item; messages are as full as they get.
class Rows {
 public:
  Rows(BulkFile& file, const LinkSpec& defaults) : file_(file), defaults_(defaults) {
    item_.begin_generic(protocol::kCmdLinkBulkItems);
  }

  Status check_column(std::string_view column, uint32_t line) const {
    if (std::ranges::find(kColumns, column) != kColumns.end() || is_parameter(column)) return {};
    return fail(EINVAL, "{}:{}: column '{}': unknown, accepted {}", file_.name, line, column, all_columns());
  }

  Status add(std::span<const Cell> cells, uint32_t line) {
    LinkSpec spec = defaults_;
    DressingSpec dressing;
    // The type comes first: other columns are parameters of it.
    for (const bool types : {true, false})
      for (const Cell& cell : cells) {
        if (cell.value.empty() || (cell.column == "type") != types) continue;
        if (auto taken = take(cell, spec, dressing); !taken)
          return fail(taken.error().code, "{}:{}: column {}: {}", file_.name, line, cell.column,
                      taken.error().text);
      }
    if (spec.name.empty()) return fail(EINVAL, "{}:{}: column name: missing", file_.name, line);
    if (auto complete = check_complete(spec); !complete)
      return fail(complete.error().code, "{}:{}: {}", file_.name, line, complete.error().text);
    const auto [first, is_new] =
        names_.try_emplace(fmt::format("{}/{}", spec.netns.value_or(""), spec.name), line);
    if (!is_new)
      return fail(EEXIST, "{}:{}: column name: '{}' is in line {} already", file_.name, line, spec.name,
                  first->second);
    file_.lines.push_back(line);
    return put(spec, dressing, line);
  }

 private:
  Status take(const Cell& cell, LinkSpec& spec, DressingSpec& dressing) {
    if (cell.column == "name") {
      spec.name = cell.value;
      return {};
    }
    if (cell.column == "up") return take_up(cell.value, spec);
    if (cell.column == "type") spec.kind = nullptr;
    // A value of several words is one only where the grammar has more than one there.
    std::vector<std::string_view> text;
    const bool split =
        cell.column == "peer" || cell.column == "addr" || cell.column == "route" || cell.column == "neigh";
    if (cell.column != "addr" && cell.column != "route" && cell.column != "neigh")
      text.push_back(cell.column);
    if (split)
      append_words(cell.value, text);
    else
      text.push_back(cell.value);
    Words words(text);
    if (!take_dressing_cell(cell.column, words, dressing) && !take_link_word(words, false, spec))
      return fail(EINVAL, "type {} has no such parameter", spec.kind == nullptr ? "(none)" : spec.kind->name);
    if (auto understood = words.status(); !understood) return understood;
    return words.done() ? Status{} : words.unknown();
  }

  static Status take_up(std::string_view value, LinkSpec& spec) {
    for (const std::string_view yes : {"up", "true", "yes", "1"})
      if (value == yes) spec.up = true;
    for (const std::string_view no : {"down", "false", "no", "0"})
      if (value == no) spec.up = false;
    for (const std::string_view known : {"up", "true", "yes", "1", "down", "false", "no", "0"})
      if (value == known) return {};
    return fail(EINVAL, "up '{}': accepted up, true, yes, 1, down, false, no, 0", value);
  }

  static void append_words(std::string_view text, std::vector<std::string_view>& words) {
    while (true) {
      const size_t start = text.find_first_not_of(" \t");
      if (start == std::string_view::npos) return;
      const size_t end = text.find_first_of(" \t", start);
      words.push_back(text.substr(start, end == std::string_view::npos ? end : end - start));
      if (end == std::string_view::npos) return;
      text.remove_prefix(end);
    }
  }

  Status put(const LinkSpec& spec, const DressingSpec& dressing, uint32_t line) {
    item_.begin_generic(protocol::kCmdLinkBulkItems);
    const size_t header = item_.size();
    item_.put_string(protocol::kBulkName, spec.name);
    {
      const RequestMessage::Nest shared(item_, protocol::kBulkTemplate);
      put_link(item_, spec);
    }
    if (spec.up) item_.put_flag(*spec.up ? protocol::kBulkUp : protocol::kBulkDown);
    put_dressing(item_, dressing);
    const size_t size = item_.size() - header;
    if (item_.overflown() || size > protocol::kMaxDatagram / 2)
      return fail(E2BIG, "{}:{}: the row is too long", file_.name, line);
    if (file_.messages.empty() || file_.messages.back().room() < size + NLA_HDRLEN + NLA_ALIGNTO)
      file_.messages.emplace_back().begin_generic(protocol::kCmdLinkBulkItems);
    file_.messages.back().put(protocol::kBulkItem | NLA_F_NESTED,
                              reinterpret_cast<const char*>(item_.header()) + header, size);
    return {};
  }

  BulkFile& file_;
  const LinkSpec& defaults_;
  RequestMessage item_;
  std::unordered_map<std::string, uint32_t> names_;
};

// The fields of RFC 4180: quoted ones may hold commas, line ends and doubled quotes.
class CsvReader {
 public:
  CsvReader(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  uint32_t line() const noexcept { return line_; }

  // The next record that is not blank, false at the end.
  Result<bool> next(std::vector<std::string>& fields) {
    do {
      line_ += breaks_;
      breaks_ = 0;
      if (at_ == text_.size()) return false;
      fields.clear();
      while (true) {
        if (auto read = field(fields.emplace_back()); !read) return std::unexpected(read.error());
        if (at_ == text_.size() || text_[at_] != ',') break;
        ++at_;
      }
      end_of_line();
    } while (fields.size() == 1 && fields.front().empty());
    return true;
  }

 private:
  Status field(std::string& value) {
    if (at_ < text_.size() && text_[at_] == '"') return quoted(value);
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    value = text_.substr(at_, end - at_);
    at_ = end;
    if (value.find('"') != std::string::npos)
      return fail(EINVAL, "{}:{}: a quote inside '{}': put the whole field into quotes and double it", name_,
                  line_, value);
    return {};
  }

  Status quoted(std::string& value) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) {
        ++at_;
        if (at_ == text_.size() || strchr(",\r\n", text_[at_]) != nullptr) return {};
        return fail(EINVAL, "{}:{}: '{}' behind the closing quote of \"{}\"", name_, line_, text_[at_],
                    value);
      }
      if (text_[at_] == '"') ++at_;
      if (text_[at_] == '\n') ++breaks_;
      value += text_[at_];
    }
    return fail(EINVAL, "{}:{}: a quote is not closed", name_, line_);
  }

  void end_of_line() noexcept {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++breaks_;
  }

  std::string_view name_;
  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;    // where the record begins
  uint32_t breaks_ = 0;  // line ends in it
};

Status parse_csv(std::string_view name, std::string_view text, Rows& rows) {
  CsvReader reader(name, text);
  std::vector<std::string> columns;
  const auto header = reader.next(columns);
  if (!header) return std::unexpected(header.error());
  for (size_t at = 0; at < columns.size(); ++at) {
    if (auto known = rows.check_column(columns[at], reader.line()); !known) return known;
    if (std::find(columns.begin(), columns.begin() + static_cast<ptrdiff_t>(at), columns[at]) !=
        columns.begin() + static_cast<ptrdiff_t>(at))
      return fail(EINVAL, "{}:{}: column '{}': given twice", name, reader.line(), columns[at]);
  }
  std::vector<std::string> fields;
  std::vector<Cell> cells;
  while (true) {
    const auto more = reader.next(fields);
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
    if (fields.size() != columns.size())
      return fail(EINVAL, "{}:{}: {} fields, the header has {} columns", name, reader.line(), fields.size(),
                  columns.size());
    cells.clear();
    for (size_t at = 0; at < fields.size(); ++at) cells.push_back({columns[at], std::move(fields[at])});
    if (auto added = rows.add(cells, reader.line()); !added) return added;
  }
}

Result<std::string> json_value(const ReadJson& value) {
  if (value.is_null()) return std::string{};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return std::string(value.get<bool>() ? "true" : "false");
  if (value.is_number_integer()) return value.dump();
  if (!value.is_array())
    return fail(EINVAL, "'{}': accepted a string, a whole number, true, false, or a list of strings",
                value.dump());
  std::string all;
  for (const ReadJson& each : value) {
    if (!each.is_string()) return fail(EINVAL, "'{}': accepted a string", each.dump());
    all += fmt::format("{}{}", all.empty() ? "" : " ", each.get<std::string>());
  }
  return all;
}

// The parser itself keeps the last of several equal keys and is silent about it.
Result<ReadJson> parse_object(std::string_view line) {
  std::vector<std::string> keys;
  std::string twice;
  const auto watch = [&](int depth, ReadJson::parse_event_t event, ReadJson& parsed) {
    if (event != ReadJson::parse_event_t::key || depth != 1) return true;
    const auto key = parsed.get<std::string>();
    if (std::ranges::find(keys, key) != keys.end()) twice = key;
    keys.push_back(key);
    return true;
  };
  try {
    ReadJson object = ReadJson::parse(line, watch);
    if (!twice.empty()) return fail(EINVAL, "column '{}': given twice", twice);
    if (!object.is_object()) return fail(EINVAL, "expected an object in {{}}");
    return object;
  } catch (const ReadJson::exception& error) {
    return fail(EINVAL, "no JSON: {}", error.what());
  }
}

Status parse_json_lines(std::string_view name, std::string_view text, Rows& rows) {
  std::vector<Cell> cells;
  for (uint32_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto object = parse_object(row);
    if (!object) return fail(object.error().code, "{}:{}: {}", name, line, object.error().text);
    cells.clear();
    for (const auto& item : object->items()) {
      if (auto known = rows.check_column(item.key(), line); !known) return known;
      auto value = json_value(item.value());
      if (!value)
        return fail(value.error().code, "{}:{}: column {}: {}", name, line, item.key(), value.error().text);
      cells.push_back({item.key(), std::move(*value)});
    }
    if (auto added = rows.add(cells, line); !added) return added;
  }
  return {};
}

Result<std::string> read_all(int fd, std::string_view name) {
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kInputChunk);
    const ssize_t got = read(fd, text.data() + before, kInputChunk);
    const int error = errno;
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (got < 0 && error != EINTR) return fail(error, "{}: {}", name, strerror(error));
  }
}

}  // namespace

std::string BulkFile::place(uint64_t member) const {
  return member < lines.size() ? fmt::format("{}:{}", name, lines[member]) : name;
}

Result<BulkFile> parse_bulk_file(std::string_view name, std::string_view text, const LinkSpec& defaults) {
  BulkFile file;
  file.name = name;
  Rows rows(file, defaults);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  if (auto parsed = json ? parse_json_lines(name, text, rows) : parse_csv(name, text, rows); !parsed)
    return std::unexpected(parsed.error());
  return file;
}

Result<BulkFile> read_bulk_file(std::string_view path, const LinkSpec& defaults) {
  const bool standard_input = path == "-";
  const std::string name(standard_input ? "stdin" : path);
  const int fd = standard_input ? STDIN_FILENO : open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(errno, "{}: {}", name, strerror(errno));
  const auto text = read_all(fd, name);
  if (!standard_input) close(fd);
  if (!text) return std::unexpected(text.error());
  return parse_bulk_file(name, *text, defaults);
}

}  // namespace mayfly::cli
