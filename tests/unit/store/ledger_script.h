// A scripted ledger for the tests of stores: random, consistent batches, and what a store must show
// after each, kept in plain maps.
#ifndef NOWCALLS_UNIT_STORE_LEDGER_SCRIPT_H_
#define NOWCALLS_UNIT_STORE_LEDGER_SCRIPT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "ledger/commit_batch.h"
#include "store/store.h"

namespace nowcalls::store {

inline constexpr int64_t kScriptStartMs = 1'700'000'000'000;

// A ledger as lines of text, in the order of a Load. The format record is left out, since each
// ledger has its own key.
using Dump = std::vector<std::string>;

// What `load` shows; a failure is the only line then. Bad records become lines and do not end the
// load.
Dump DumpOfLoad(const std::function<Status(ledger::EntityVisitor* visitor)>& load);
// Loads a LedgerSource, or what else has a Load.
template <typename Loaded>
Dump DumpOf(Loaded* loaded) {
  return DumpOfLoad([loaded](ledger::EntityVisitor* visitor) { return loaded->Load(visitor); });
}

// The batch that the dump's seal closes; 0 without one.
uint64_t BatchNumberOf(const Dump& dump);

// Empty when equal, else the first line that differs with its number.
std::string DifferenceOf(const Dump& got, const Dump& expected);

class LedgerScript {
 public:
  explicit LedgerScript(uint64_t seed) : random_(seed) {}

  // Fills `batch` with about `records` random records and a seal, and follows them.
  void NextBatch(int records, ledger::CommitBatch* batch);
  // Ends every token and closes every session.
  void LastBatch(ledger::CommitBatch* batch);

  Dump Expected() const;
  const std::map<ledger::TokenKey, ledger::Token>& tokens() const { return tokens_; }
  int64_t now_ms() const { return now_ms_; }
  uint64_t batch_number() const { return batch_number_; }

 private:
  void Issue(ledger::CommitBatch* batch);
  void Keep(ledger::CommitBatch* batch);
  void End(ledger::CommitBatch* batch);
  void AddHistory(const ledger::Token& token, EndReason reason, ledger::CommitBatch* batch);
  void AddBlock(ledger::CommitBatch* batch);
  void OpenSession(ledger::CommitBatch* batch);
  void CloseSession(ledger::CommitBatch* batch);
  void ChangeRule(ledger::CommitBatch* batch);
  void ChangeRate(ledger::CommitBatch* batch);
  void Seal(ledger::CommitBatch* batch);
  ledger::TokenKey AnyTokenKey();
  int64_t AnyHoldMs();

  Prng random_;
  int64_t now_ms_ = kScriptStartMs;
  uint64_t batch_number_ = 0;
  uint64_t next_fence_ = 1;
  uint64_t count_sum_ = 0;
  uint64_t fence_sum_ = 0;
  std::map<ledger::TokenKey, ledger::Token> tokens_;
  std::map<uint64_t, ledger::Session> sessions_;
  std::map<std::pair<std::string, int64_t>, std::string> rules_;
  std::map<ledger::RateKey, ledger::RateBucket> rates_;
  uint64_t last_history_ = 0;
  ledger::HistoryBlock block_;  // Ends of the batch that is being made.
  std::deque<ledger::HistoryBlock> history_;
  std::optional<ledger::ClockMark> clock_;
  std::optional<ledger::Seal> seal_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_UNIT_STORE_LEDGER_SCRIPT_H_
