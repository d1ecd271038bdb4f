#include "web/visible.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace nowcalls::web {
namespace {

constexpr access::Needs kSeeing{access::Role::kObserver, access::Scope::kNamespace};

// Copies what may be seen from one snapshot to another.
class Copying {
 public:
  Copying(const access::Principal& principal, const Snapshot& from, Snapshot* to)
      : principal_(principal), from_(from), to_(to) {}

  void CopyRows() {
    Copy(from_.flows, &to_->flows, [&](const FlowLook& look) { return Sees(look.row.name_space); });
    Copy(from_.namespaces, &to_->namespaces,
         [&](const wire::NamespaceRow& row) { return Sees(row.name_space); });
    Copy(from_.sessions, &to_->sessions,
         [&](const wire::SessionRow& row) { return Sees(row.name_space); });
    Copy(from_.history, &to_->history,
         [&](const wire::HistoryRow& row) { return SeesBoth(row.name_space, row); });
    for (const auto& [key, detail] : from_.details) CopyFlow(key, detail);
    for (const auto& [session, detail] : from_.session_details) CopySession(session, detail);
  }

 private:
  bool Sees(const std::string& name_space) const {
    return access::May(principal_, kSeeing, name_space);
  }
  // A flow that is gone has no namespace any more: then that of the session decides.
  template <typename Row>
  bool SeesBoth(const std::string& name_space, const Row& row) const {
    const FlowLook* const flow = FindFlow(from_, wire::FlowKeyOf(row));
    return Sees(name_space) && (flow == nullptr || Sees(flow->row.name_space));
  }
  template <typename Row, typename Visible>
  void Copy(const std::vector<Row>& from, std::vector<Row>* to, const Visible& visible) const {
    std::copy_if(from.begin(), from.end(), std::back_inserter(*to), visible);
  }
  template <typename Detail>
  void CopyHolders(const Detail& from, Detail* to) const {
    Copy(from.tokens, &to->tokens,
         [&](const wire::TokenRow& row) { return SeesBoth(row.name_space, row); });
    Copy(from.waiters, &to->waiters,
         [&](const wire::WaiterRow& row) { return SeesBoth(row.name_space, row); });
    to->more_tokens = from.more_tokens;
  }
  void CopyFlow(const FlowKey& key, const FlowDetail& detail) const {
    if (FindFlow(*to_, key) == nullptr) return;
    FlowDetail* const to = &to_->details[key];
    CopyHolders(detail, to);
    to->params = detail.params;
  }
  // One that may not be seen is as one that does not exist.
  void CopySession(uint64_t session, const SessionDetail& detail) const {
    SessionDetail* const to = &to_->session_details[session];
    if (!detail.row || !Sees(detail.row->name_space)) return;
    to->row = detail.row;
    CopyHolders(detail, to);
  }

  const access::Principal& principal_;
  const Snapshot& from_;
  Snapshot* const to_;
};

}  // namespace

std::string SightOf(const access::Principal& principal) {
  if (!principal.namespaces) return "";
  std::string sight = "of";
  for (const std::string& name_space : *principal.namespaces) sight += '\0' + name_space;
  return sight;
}

SnapshotPtr VisibleTo(const access::Principal& principal, const SnapshotPtr& snapshot) {
  if (!principal.namespaces) return snapshot;
  auto part = std::make_shared<Snapshot>();
  // What is not named here is not shown, also what a snapshot gets later.
  part->number = snapshot->number;
  part->unix_ms = snapshot->unix_ms;
  part->span_ms = snapshot->span_ms;
  part->server = snapshot->server;
  part->problem = snapshot->problem;
  part->ledger_ms = snapshot->ledger_ms;
  part->info = snapshot->info;
  part->has_sessions = snapshot->has_sessions;
  part->more_sessions = snapshot->more_sessions;
  part->has_history = snapshot->has_history;
  part->is_part = true;
  Copying(principal, *snapshot, part.get()).CopyRows();
  return part;
}

SnapshotPtr VisibleSnapshots::For(const access::Principal& principal, const SnapshotPtr& latest) {
  const std::string sight = SightOf(principal);
  if (sight.empty()) return latest;
  const std::lock_guard lock(mutex_);
  if (of_ != latest->number) {
    of_ = latest->number;
    parts_.clear();
    flows_ = 0;
  }
  const auto found = parts_.find(sight);
  if (found != parts_.end()) return found->second;
  SnapshotPtr part = VisibleTo(principal, latest);
  // Each counts as one at least: the access file bounds how many there are.
  const size_t flows = part->flows.size() + 1;
  if (flows_ + flows <= kFlowsMax) {
    flows_ += flows;
    parts_.emplace(sight, part);
  }
  return part;
}

}  // namespace nowcalls::web
