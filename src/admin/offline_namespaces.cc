// Namespaces of a ledger on disk: where their rules come from, and the sessions that are stored.
#include <map>
#include <string>

#include "admin/offline_source.h"

namespace nowcalls::admin {

Status OfflineSource::Namespaces(const RowSink<wire::NamespaceRow>& sink) {
  LedgerWalk walk(LedgerWalk::Until::kSessions, progress_);
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  // Counts of what is left of a damaged ledger would look like an answer, so none are shown.
  NOWCALLS_RETURN_IF_ERROR(walk.damage());
  std::map<std::string, wire::NamespaceRow> rows;
  const auto row_of = [&rows](const std::string& name_space) -> wire::NamespaceRow& {
    wire::NamespaceRow& row = rows[name_space];
    row.name_space = name_space;
    return row;
  };
  for (const ledger::NamespaceEntry& entry : walk.namespaces()) {
    // A namespace has a row if it has a source, a rule in force or a session.
    row_of(entry.name_space).source = entry.source;
  }
  for (const ledger::RuleEntry& rule : walk.rules()) {
    if (ledger::IsInForce(rule.state)) ++row_of(rule.name_space).rules;
  }
  for (const auto& [id, session] : walk.sessions()) ++row_of(session.name_space).sessions;
  progress_->Erase();
  for (const auto& [name_space, row] : rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return {};
}

}  // namespace nowcalls::admin
