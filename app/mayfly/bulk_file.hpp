// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A plan of interfaces in a file, one a row: CSV (RFC 4180) with a header row, or JSON lines when the first
// character that is not blank is '{'. Columns and keys are the words of "link add" and of dressing.hpp:
//
//   name,link,type,protocol,id,inner,up,addr
//   sub1,port0,vlan,802.1ad,100,1,up,10.0.0.1/30
//
//   {"name": "sub1", "link": "port0", "type": "vlan", "id": 100, "up": true, "addr": ["10.0.0.1/30"]}
//
// An empty field, and null, is not given: then what the command line says holds for the row. Mistakes are
// named with file, line and column. The whole file is understood before any of it is sent.

#include <string>
#include <vector>

#include "control/client.hpp"
#include "link_spec.hpp"

namespace mayfly::cli {

struct BulkFile {
  std::string name;                      // for messages
  std::vector<RequestMessage> messages;  // kCmdLinkBulkItems
  std::vector<uint32_t> lines;           // of each row

  std::string place(uint64_t member) const;
};

// path "-" is standard input. defaults holds for every row that does not say otherwise.
Result<BulkFile> read_bulk_file(std::string_view path, const LinkSpec& defaults);
// The same from memory.
Result<BulkFile> parse_bulk_file(std::string_view name, std::string_view text, const LinkSpec& defaults);

}  // namespace mayfly::cli
