// The commands of nowcalls-admin, from arguments to exit code.
//
// Thread: one.
#ifndef NOWCALLS_ADMIN_COMMANDS_H_
#define NOWCALLS_ADMIN_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "admin/arguments.h"
#include "admin/output.h"
#include "admin/progress.h"
#include "admin/rules_diff.h"
#include "admin/source.h"
#include "nowcalls/status.h"
#include "store/ledger_source.h"

namespace nowcalls::admin {

struct Streams {
  Output* out;
  std::function<void(std::string_view bytes)> err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool in_is_terminal = false;
  // Empty at the end. Called on a terminal only.
  std::function<std::string()> read_line = nullptr;
};

// Returns the exit code (base/exit_codes.h). Errors go to `err`, but a failure of `out` stays in
// its status.
int Run(const Arguments& arguments, const Streams& streams);

// dump, stat, flow, tokens, sessions, history, rules list.
Status PrintListing(const Arguments& arguments, Format format, Source* source, Output* out);

// True: a load would change nothing.
Result<bool> PrintRulesDiff(const Arguments& arguments, Format format,
                            const core::ParsedRules& file, Source* source, Progress* progress,
                            const Streams& streams);
Result<RulesDiff> DiffAgainst(Source* source, const std::string& name_space,
                              const core::ParsedRules& file);

// `now_ms`: of the ledger clock.
Status PrintRulesSources(const Arguments& arguments, Format format, int64_t now_ms, Source* source,
                         Output* out);

// `encoded`: the server's answer.
Status PrintInfo(Format format, std::string_view encoded, Output* out);

// True: no problems. A failure: the ledger cannot be read to its end.
Result<bool> PrintVerify(const Arguments& arguments, store::LedgerSource* store, Progress* progress,
                         const Streams& streams);

Status PrintRepair(const Arguments& arguments, Output* out);

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_COMMANDS_H_
