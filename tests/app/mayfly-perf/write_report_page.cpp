// SPDX-License-Identifier: BSD-3-Clause
// The page of the report on standard input.
#include <iostream>
#include <iterator>

#include "mayfly-perf/report_page.hpp"

int main() {
  const std::string json(std::istreambuf_iterator<char>(std::cin), {});
  std::cout << mayfly::perf::report_page(json);
  return std::cout.flush() ? 0 : 1;
}
