// Admin: runs nowcalls-admin and takes its output apart.
//
// Thread: any; each call is a process of its own.
#ifndef NOWCALLS_SUPPORT_ADMIN_H_
#define NOWCALLS_SUPPORT_ADMIN_H_

#include <string>
#include <utility>
#include <vector>

#include "support/process.h"
#include "support/rpc_client.h"

namespace nowcalls::testing {

// Where the tool reads: a data directory (offline) or a server (live).
struct Source {
  std::string flag;  // --data-dir or --server
  std::string value;

  static Source Offline(std::string data_dir) { return {"--data-dir", std::move(data_dir)}; }
  static Source Live(std::string address) { return {"--server", std::move(address)}; }
};

// nowcalls-admin COMMAND... with the source's flag behind it. A server is waited for as long as
// tests do, unless the command says for how long.
Finished RunAdmin(const Source& source, std::vector<std::string> command);

// The same with --format jsonl. Throws std::runtime_error with stderr when the tool fails, or
// prints a line that is no JSON object.
std::vector<Json> AdminRows(const Source& source, std::vector<std::string> command);

std::vector<Json> ParseJsonLines(const std::string& text);

// Splits RFC 4180 text into records of fields.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_ADMIN_H_
