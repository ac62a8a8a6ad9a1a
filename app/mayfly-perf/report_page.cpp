// SPDX-License-Identifier: BSD-3-Clause
#include "report_page.hpp"

namespace mayfly::perf {

// In the source that embed_report_page.py writes.
extern const std::string_view kPageBeforeReport;
extern const std::string_view kPageAfterReport;

std::string report_page(std::string_view json) {
  std::string page;
  page.reserve(kPageBeforeReport.size() + json.size() + kPageAfterReport.size());
  page += kPageBeforeReport;
  // In JSON '<' is only ever inside of a string, and without it there is neither '</script>' nor '<!--'.
  for (const char character : json) {
    if (character == '<')
      page += "\\u003c";
    else
      page += character;
  }
  page += kPageAfterReport;
  return page;
}

}  // namespace mayfly::perf
