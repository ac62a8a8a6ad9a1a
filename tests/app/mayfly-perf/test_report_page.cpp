// SPDX-License-Identifier: BSD-3-Clause
#include "mayfly-perf/report_page.hpp"

#include <gtest/gtest.h>

namespace mayfly::perf {
namespace {

constexpr std::string_view kOpen = R"(<script type="application/json" id="report">)";
constexpr std::string_view kClose = "</script>";

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// What an HTML parser takes for the report: all up to the first end tag.
std::string_view embedded(std::string_view page) {
  const size_t open = page.find(kOpen);
  EXPECT_NE(open, page.npos);
  page.remove_prefix(open + kOpen.size());
  return page.substr(0, page.find(kClose));
}

TEST(ReportPage, HoldsTheReportOnce) {
  const std::string_view json = R"({"run":"survive","command":"mayfly-perf survive"})";
  const std::string page = report_page(json);
  EXPECT_EQ(embedded(page), json);
  EXPECT_EQ(count(page, json), 1u);
  EXPECT_EQ(count(page, kOpen), 1u);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(ReportPage, IsTheSameAroundEveryReport) {
  const std::string empty = report_page("");
  EXPECT_EQ(embedded(empty), "");
  const std::string json = R"({"run":"churn"})";
  EXPECT_EQ(report_page(json).size(), empty.size() + json.size());
}

TEST(ReportPage, NoStringEndsTheElementItIsIn) {
  const std::string page = report_page(R"({"command":"</script><script>alert(1)</script><!-- <SCRIPT"})");
  EXPECT_EQ(embedded(page),
            R"({"command":"\u003c/script>\u003cscript>alert(1)\u003c/script>\u003c!-- \u003cSCRIPT"})");
  EXPECT_EQ(count(page, "alert(1)"), 1u);
}

TEST(ReportPage, AReportThatLooksLikeAPlaceholderStays) {
  for (const std::string_view json :
       {R"({"command":"@json@"})", R"({"command":"@report_page.css@ $1 \\1 %s {}"})"})
    EXPECT_EQ(embedded(report_page(json)), json);
  EXPECT_EQ(count(report_page("{}"), "@json@"), 0u);
}

TEST(ReportPage, EveryByteOfTheReportSurvives) {
  std::string json;
  for (int byte = 0; byte < 256; ++byte)
    if (byte != '<') json += static_cast<char>(byte);
  EXPECT_EQ(embedded(report_page(json)), json);
}

TEST(ReportPage, AsksForNothingFromElsewhere) {
  const std::string page = report_page("{}");
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
  for (const std::string_view reference :
       {"src=", "@import", "url(http", "//cdn", "fetch(", "XMLHttpRequest"})
    EXPECT_EQ(count(page, reference), 0u) << reference;
  // The name of SVG's elements, which nobody fetches.
  EXPECT_EQ(count(page, "http"), count(page, "http://www.w3.org/2000/svg") + count(page, "http-equiv"));
}

}  // namespace
}  // namespace mayfly::perf
