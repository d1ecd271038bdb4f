// verify: problems and their summary, for people, as JSON lines or as CSV.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "admin/commands.h"
#include "admin/row_writer.h"
#include "admin/verify.h"
#include "base/counted.h"
#include "base/shown_text.h"

namespace nowcalls::admin {
namespace {

ColumnInfo TextColumn(std::string_view name) { return {name, "", Kind::kText}; }

std::string ProblemLine(const Problem& problem) {
  std::string line = std::string(ProblemName(problem.kind)) + ": ";
  if (!problem.family.empty()) {
    line += problem.family + (problem.key.empty() ? ": " : " " + problem.key + ": ");
  }
  return line + ShownText(problem.detail) + "\n";
}

std::string SummaryText(const VerifySummary& summary, uint64_t shown_max) {
  std::string text;
  // Problems beyond --max-problems are counted, not shown.
  if (summary.problems > shown_max) {
    text += "and " + std::to_string(summary.problems - shown_max) + " more\n";
  }
  text += summary.ok() ? "ledger ok: " : "ledger damaged: " + Counted(summary.problems, "problem");
  if (summary.warnings > 0) {
    text += (summary.ok() ? "" : " and ") + Counted(summary.warnings, "warning");
  }
  std::string kinds;
  for (const auto& [kind, count] : summary.by_kind) {
    kinds +=
        (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(ProblemName(kind));
  }
  if (!kinds.empty()) text += " (" + kinds + ") in ";
  return text + Counted(summary.tokens, "token") + " with nowCalls " +
         std::to_string(summary.now_calls) + ", " + Counted(summary.sessions, "session") + ", " +
         Counted(summary.rules, "rule") + ", " + Counted(summary.history, "history row") +
         ", sealed by batch " + std::to_string(summary.batch_number) + "\n";
}

std::string SummaryJson(const VerifySummary& summary) {
  nlohmann::ordered_json by_kind = nlohmann::ordered_json::object();
  for (const auto& [kind, count] : summary.by_kind) by_kind[std::string(ProblemName(kind))] = count;
  const nlohmann::ordered_json object = {{"summary", summary.ok() ? "ok" : "damaged"},
                                         {"problems", summary.problems},
                                         {"problems_by_kind", by_kind},
                                         {"tokens", summary.tokens},
                                         {"now_calls", summary.now_calls},
                                         {"sessions", summary.sessions},
                                         {"rules", summary.rules},
                                         {"history", summary.history},
                                         {"batch_number", summary.batch_number},
                                         {"warnings", summary.warnings}};
  return object.dump() + "\n";
}

}  // namespace

Result<bool> PrintVerify(const Arguments& arguments, store::LedgerSource* store, Progress* progress,
                         const Streams& streams) {
  const Format format = arguments.format.value_or(Format::kTable);
  const std::unique_ptr<RowWriter> rows =
      format == Format::kTable ? nullptr
                               : MakeRowWriter(format,
                                               {TextColumn("problem"), TextColumn("family"),
                                                TextColumn("key"), TextColumn("detail")},
                                               0, streams.out);
  const auto show = [&](const Problem& problem) {
    // Problems and the progress line must not share a line of the terminal.
    progress->Erase();
    if (rows == nullptr) return streams.out->Write(ProblemLine(problem));
    const std::string_view family = problem.family;
    const std::string_view key = problem.key;
    const std::string_view detail = problem.detail;
    rows->Write(std::vector<Cell>{ProblemName(problem.kind), family, key, detail});
  };
  const Result<VerifySummary> summary = Verify(store, arguments.problems_max, show, progress);
  progress->Erase();
  if (!summary.ok()) return summary.status();
  const std::string text = SummaryText(*summary, arguments.problems_max);
  switch (format) {
    case Format::kJsonl: streams.out->Write(SummaryJson(*summary)); break;
    // Rows of csv have one form, so the summary goes to stderr.
    case Format::kCsv: streams.err(text); break;
    case Format::kTable:
    case Format::kDetail: streams.out->Write(text); break;
  }
  return summary->ok();
}

}  // namespace nowcalls::admin
