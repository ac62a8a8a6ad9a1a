// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The report of a run for eyes: one HTML page with plots, which needs nothing beside itself and fetches
// nothing, so that it opens from a disk without a network and can be mailed. The page is report_page.html
// with its style sheet and its scripts (report_*.css, report_*.js), put together when Mayfly is built.

#include <string>
#include <string_view>

namespace mayfly::perf {

// `json` is a report as docs/perf-report.schema.json describes it; the page draws it when it is opened.
// Whatever its strings hold stays text, '</script>' included. What is no JSON gives a page that says so. Any
// thread; copies `json`.
std::string report_page(std::string_view json);

}  // namespace mayfly::perf
