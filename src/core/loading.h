// Loading: the ledger's entities become the core's tables, and are proved to be all of them.
//
// Thread: one, before the core serves. It exists until the load is finished and no longer. It fills
// all tables; nothing else runs meanwhile. Order: namespaces and rules, sessions, history, rates,
// tokens, then Finish. Every function returns kCorruption for what a ledger cannot hold; then the
// core is of no use. A time of the future is none of that: it is dropped or bounded, and noted.
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
#include "core/slot.h"
#include "ledger/entities.h"
#include "ledger/history_entry.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

// What the first batch has to record of a ledger of an earlier format.
struct FirstRecords {
  std::optional<ledger::Format> format{};  // To set; none: the ledger has this program's.
  std::vector<FlowKey> rules{};            // Made for tokens that had none of their kind.
  std::vector<FlowKey> idle{};             // Removed, and without tokens of their kind.
};

class Loading {
 public:
  explicit Loading(Books* books) : books_(books) {}

  // The format that the ledger has; before all else.
  void SetFormat(const ledger::Format& found) { found_ = found; }
  // What the first batch of the start records.
  FirstRecords first_records() const;

  // What the last batch says, before all entities: how many tokens to make room for, and which
  // times had come. A new ledger has none.
  void ExpectSeal(const ledger::Seal& seal);
  const FutureTimes& times() const { return times_; }
  // The same of the clock mark.
  ledger::ClockMark Believed(ledger::ClockMark mark);

  Status LoadNamespace(const ledger::NamespaceEntry& entry);
  Status LoadRule(const ledger::RuleEntry& entry);
  Status LoadSession(const ledger::Session& session);
  Status LoadHistory(ledger::HistoryBlock block);     // By ascending sequence.
  Status LoadRate(const ledger::RateBucket& bucket);  // By ascending key.
  Status LoadToken(const ledger::Token& token);
  // kCorruption when the live tokens are not those the seal was written over. A new ledger has no
  // seal.
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
  ledger::Format found_;
  std::vector<FlowKey> stand_ins_;
  std::vector<FlowKey> idle_;
  FutureTimes times_;
  int64_t last_end_ms_ = 0;  // Of the history.
  bool has_rates_ = false;
  FenceOrder tokens_;
  uint64_t fence_sum_ = 0;  // Of these.
  // Tokens whose ids were not looked at yet.
  std::vector<std::pair<TokenId, TokenSlot>> unchecked_ids_;
  absl::flat_hash_map<uint64_t, SessionSlot> sessions_;  // By id.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_LOADING_H_
