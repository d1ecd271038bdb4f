#include "admin/argument_checks.h"

#include <string>

#include "base/duration.h"
#include "base/option_values.h"
#include "base/text.h"
#include "ledger/history_entry.h"

namespace nowcalls::admin {

Result<Format> ParseFormat(std::string_view text) {
  if (text == "table") return Format::kTable;
  if (text == "jsonl") return Format::kJsonl;
  if (text == "csv") return Format::kCsv;
  return Status::InvalidArgument(Quoted(text) + " is none of table, jsonl, csv");
}

Status CheckText(std::string_view text, size_t bytes_max) {
  if (text.empty() || text.size() > bytes_max) {
    return Status::InvalidArgument("must be 1.." + std::to_string(bytes_max) + " bytes, got " +
                                   std::to_string(text.size()));
  }
  if (IsPrintable(text)) return {};
  return Status::InvalidArgument("must be UTF-8 without control characters, got " + Quoted(text));
}

Status CheckEndReason(std::string_view text) {
  for (int reason = 1; reason < kEndReasonCount; ++reason) {
    const auto end = static_cast<EndReason>(reason);
    if (ledger::IsKeptInHistory(end, CallOutcome::kFailed) && text == EndReasonName(end)) return {};
  }
  return Status::InvalidArgument(
      Quoted(text) +
      " is none of released, released_late, client_offline, "
      "resource_timeout, rule_removed, admin; of tokens released in time "
      "only those are kept whose call did not end well, and cancelled "
      "ones are counted");
}

CLI::Option* AddPath(CLI::App* app, const std::string& name, const std::string& help,
                     std::string* path) {
  return app->add_option(name, *path, help)->type_name("DIR")->check([](const std::string& dir) {
    // A forgotten value takes the next option for it.
    if (dir.starts_with("--")) return "needs a value, got " + dir;
    return dir.empty() ? std::string("must not be empty") : std::string();
  });
}

void AddAge(CLI::App* app, const std::string& name, const std::string& help,
            const std::function<void(int64_t ms)>& set) {
  app->add_option_function<std::string>(
         name,
         [name, set](const std::string& text) { set(RequireValue(name, ParseDuration(text))); },
         help)
      ->type_name("DURATION");
}

}  // namespace nowcalls::admin
