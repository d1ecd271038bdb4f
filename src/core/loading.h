// Loading: the ledger's entities become the core's tables, and are proved to be complete.
//
// Thread: one, before the core serves. Order: SetFormat, ExpectSeal, namespaces and rules,
// sessions, history, rates, tokens, Finish. After an error the core is of no use. A time of the
// future is dropped or bounded, and noted.
#ifndef NOWCALLS_CORE_LOADING_H_
#define NOWCALLS_CORE_LOADING_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/books.h"
#include "core/fence_order.h"
#include "core/future_times.h"
#include "core/tables/slot.h"
#include "ledger/entities.h"
#include "ledger/history_entry.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

// Of the first batch, for a ledger of an earlier format.
struct FirstRecords {
  std::optional<ledger::Format> format{};  // To set; none: the ledger has this program's.
  std::vector<FlowKey> rules{};            // Made for tokens without a rule of their kind.
  std::vector<FlowKey> idle{};             // Removed, without tokens of their kind.
};

class Loading {
 public:
  Loading(Books* books, FlowTable* flows, SessionTable* sessions, TokenTable* tokens,
          RateTable* rates, History* history)
      : books_(books),
        flows_(flows),
        sessions_(sessions),
        tokens_(tokens),
        rates_(rates),
        history_(history) {}

  void SetFormat(const ledger::Format& found) { found_ = found; }
  FirstRecords first_records() const;

  // Its time bounds all times.
  void ExpectSeal(const ledger::Seal& seal);
  const FutureTimes& times() const { return times_; }
  ledger::ClockMark Believed(ledger::ClockMark mark);

  Status LoadNamespace(const ledger::NamespaceEntry& entry);
  Status LoadRule(const ledger::RuleEntry& entry);
  Status LoadSession(const ledger::Session& session);
  Status LoadHistory(ledger::HistoryBlock block);     // By ascending sequence.
  Status LoadRate(const ledger::RateBucket& bucket);  // By ascending key.
  Status LoadToken(const ledger::Token& token);
  // kCorruption: the live tokens are not the seal's. A new ledger has none.
  Status Finish(const std::optional<ledger::Seal>& seal);

 private:
  FlowSlot FlowOf(const ledger::Token& token);
  Status CheckIds();
  Status IndexTokens();
  void LinkTokens();
  Status CheckRemovedRules();
  Status CheckNamespacesHaveRules() const;
  Status CheckSums(const ledger::Seal& seal) const;
  Status CheckNumbers(uint64_t next_fence) const;
  Status CheckHistory(uint64_t next_fence) const;
  Status CheckEnded(const ledger::HistoryEntry& entry, uint64_t next_fence) const;

  Books* const books_;
  FlowTable* const flows_;
  SessionTable* const sessions_;
  TokenTable* const tokens_;
  RateTable* const rates_;
  History* const history_;
  ledger::Format found_;
  std::vector<FlowKey> stand_ins_;
  std::vector<FlowKey> idle_;
  FutureTimes times_;
  int64_t last_end_ms_ = 0;  // Of the history.
  bool has_rates_ = false;
  FenceOrder order_;        // Of all tokens.
  uint64_t fence_sum_ = 0;  // Of these.
  std::vector<std::pair<TokenId, TokenSlot>> unchecked_ids_;
  absl::flat_hash_map<uint64_t, SessionSlot> session_slots_;  // By id.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_LOADING_H_
