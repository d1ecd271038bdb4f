// `rules diff` and `rules sources`: from a source of answers to the output.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "admin/commands.h"
#include "admin/effective_rules.h"
#include "admin/namespace_columns.h"
#include "admin/rules_diff.h"
#include "base/limits.h"
#include "base/text.h"
#include "nowcalls/rule_source.h"

namespace nowcalls::admin {
namespace {

using wire::NamespaceRow;

// Whose rules rules_load may not replace.
Status NoteOwner(const std::string& name_space, Source* source, const Streams& streams) {
  return source->Namespaces([&](const NamespaceRow& row) {
    if (row.name_space != name_space || !row.source.has_value()) return Status::Ok();
    // Rules by RPC may be replaced by a load; others come back from their own source.
    if (*row.source == kRpcRuleSource) return Status::Ok();
    streams.err("nowcalls-admin: note: namespace " + Quoted(name_space, kNamespaceBytesMax) +
                " takes its rules from " + TerminalText(*row.source) + "\n");
    return Status::Ok();
  });
}

void PrintChanges(const RulesDiff& diff, Format format, Output* out) {
  // Scripts get a csv header even without changes; people get the sentence alone.
  if (format != Format::kTable || !diff.changes.empty()) {
    Listing<RuleChange> listing(format, /*now_ms=*/0, out);
    for (const RuleChange& change : diff.changes) {
      if (!listing.Add(change).ok()) break;
    }
    listing.Finish();
  }
  if (format == Format::kTable) out->Write(diff.Summary() + "\n");
}

}  // namespace

Result<RulesDiff> DiffAgainst(Source* source, const std::string& name_space,
                              const core::ParsedRules& file) {
  std::vector<RuleRow> in_force;
  NOWCALLS_RETURN_IF_ERROR(source->Rules(std::nullopt, [&](const RuleRow& row) {
    in_force.push_back(row);
    return Status::Ok();
  }));
  return DiffRules(name_space, in_force, file);
}

Result<bool> PrintRulesDiff(const Arguments& arguments, Format format,
                            const core::ParsedRules& file, Source* source, Progress* progress,
                            const Streams& streams) {
  const Result<RulesDiff> diff = DiffAgainst(source, arguments.name_space, file);
  if (!diff.ok()) return diff.status();
  progress->Erase();
  // The note stands before the changes: it may make them moot.
  NOWCALLS_RETURN_IF_ERROR(NoteOwner(arguments.name_space, source, streams));
  PrintChanges(*diff, format, streams.out);
  streams.err(RemovalWarning(diff->removed));
  return diff->same();
}

Status PrintRulesSources(const Arguments& arguments, Format format, int64_t now_ms, Source* source,
                         Output* out) {
  return PrintRows<NamespaceRow>(format, now_ms, out, [&](const RowSink<NamespaceRow>& sink) {
    return source->Namespaces([&](const NamespaceRow& row) {
      const auto& wanted = arguments.filter.name_space;
      if (wanted.has_value() && row.name_space != *wanted) return Status::Ok();
      return sink(row);
    });
  });
}

}  // namespace nowcalls::admin
