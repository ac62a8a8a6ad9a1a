// SPDX-License-Identifier: BSD-3-Clause
// The YAML loader: any bytes are either refused with a text that has one line and names the file, or make a
// configuration that survives being dumped and loaded.

#include "config/config.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mayfly;
  const auto config = parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "f.yaml");
  if (!config) {
    MAYFLY_CHECK(config.error().text.starts_with("f.yaml"), "an error does not name the file");
    MAYFLY_CHECK(config.error().text.find('\n') == std::string::npos, "an error has more than one line");
    MAYFLY_CHECK(config.error().code == EINVAL, "an error has an unexpected code");
    return 0;
  }
  const std::string text = dump_config(*config);
  const auto again = parse_config(text, "dump");
  MAYFLY_CHECK(again.has_value(), "a dumped configuration does not load");
  MAYFLY_CHECK(dump_config(*again) == text, "a dumped configuration loads into another one");
  MAYFLY_CHECK(!describe_memory(*config).empty(), "memory is not described");
  return 0;
}
