// LedgerWalk: one pass over a ledger. Keeps clock, rules and sessions.
//
// Thread: one. Damage is counted and stepped over. Damage behind all that is wanted ends the walk,
// uncounted.
#ifndef NOWCALLS_ADMIN_LEDGER_WALK_H_
#define NOWCALLS_ADMIN_LEDGER_WALK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "admin/progress.h"
#include "base/clock.h"
#include "ledger/codec.h"
#include "ledger/entities.h"
#include "ledger/history_entry.h"
#include "nowcalls/status.h"
#include "store/ledger_source.h"

namespace nowcalls::admin {

class LedgerWalk : public ledger::EntityVisitor {
 public:
  // How far to go; what comes before is kept.
  enum class Until { kSeal, kRules, kSessions, kHistory, kEnd };
  using TokenSink = std::function<Status(const ledger::Token& token)>;

  LedgerWalk(Until until, Progress* progress, TokenSink tokens = nullptr)
      : until_(until), progress_(progress), tokens_(std::move(tokens)) {}

  // Shows the history, oldest first; without a sink it is passed over.
  using HistorySink = std::function<Status(const ledger::HistoryEntry& entry)>;
  void set_history(HistorySink sink) { history_ = std::move(sink); }

  // The failure of the store or the token sink; Ok for damage that was stepped over.
  Status Run(store::LedgerSource* store);

  // kCorruption: something was unreadable, or does not belong together.
  Status damage() const;
  // All is there but unwanted history, so sums are right.
  bool whole() const { return damaged_ == damaged_history_; }
  // Damage that the caller found.
  void AddDamage(Status what);

  // The ledger clock, recovered as a server would.
  int64_t NowMs(const ClockSample& machine) const;

  // 0: no record.
  uint32_t format_version() const { return format_version_; }
  const std::optional<ledger::Seal>& seal() const { return seal_; }
  const std::vector<ledger::NamespaceEntry>& namespaces() const { return namespaces_; }
  const std::vector<ledger::RuleEntry>& rules() const { return rules_; }
  // nullptr: no such session.
  const ledger::Session* FindSession(SessionId id) const;
  // By session id.
  const absl::flat_hash_map<uint64_t, ledger::Session>& sessions() const { return sessions_; }

  Status OnEntity(const ledger::Entity& entity) override;
  Status OnBadRecord(const ledger::BadRecord& record) override;
  Status OnUnreadable(ledger::Family family, Status what) override;

 private:
  Status On(const ledger::Format& format);
  Status On(const ledger::ClockMark& mark);
  Status On(const ledger::Seal& seal);
  Status On(const ledger::Watermark& /*watermark*/) { return {}; }
  Status On(const ledger::NamespaceEntry& entry);
  Status On(const ledger::RuleEntry& rule);
  Status On(const ledger::Session& session);
  Status On(const ledger::HistoryBlock& block);
  Status On(const ledger::RateBucket& /*bucket*/) { return {}; }
  Status On(const ledger::Token& token);
  Status Stop();
  Status StepOver(ledger::Family family, Status what);

  const Until until_;
  Progress* const progress_;
  const TokenSink tokens_;
  HistorySink history_;
  bool stopped_ = false;
  uint32_t format_version_ = 0;
  std::optional<ledger::ClockMark> mark_;
  std::optional<ledger::Seal> seal_;
  std::vector<ledger::NamespaceEntry> namespaces_;
  std::vector<ledger::RuleEntry> rules_;
  absl::flat_hash_map<uint64_t, ledger::Session> sessions_;
  uint64_t damaged_ = 0;
  uint64_t damaged_history_ = 0;  // Of which in a history that is passed over.
  Status first_damage_;
};

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_LEDGER_WALK_H_
