// CommitBatch: what one group commit makes durable, as self-contained redo records.
//
// Thread: one at a time. The loop thread fills it, hands it to whoever commits it, and has it back
// when it is durable. Every record carries all that is needed to apply it; times and random numbers
// were decided before. The ledger is a pure fold over the records of consecutive batches, so that
// any store (RocksDB, memory, one day a replicated log) can take the same bytes.
//
// A record is one type byte and a layout fixed for that type; a changed layout gets a new type
// number (FORMAT.md lists them). Appending allocates nothing once the buffer has grown to its
// usual size.
#ifndef NOWCALLS_LEDGER_COMMIT_BATCH_H_
#define NOWCALLS_LEDGER_COMMIT_BATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ledger/entities.h"
#include "ledger/history_entry.h"
#include "ledger/sealed_batch.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

class CommitBatch {
 public:
  // A token with a parameter has records of its own, here and in TokenKept. `param` is the token's,
  // null if it has none; Token::param stays empty, so that no text is copied.
  void TokenIssued(const Token& token, const Param* param);
  void TokenIssued(const Token& token);  // With Token::param.
  // The token at `before` moves to `after.key`; both in this batch, so that it is never lost. A
  // token that stays where it is leaves no record. REQUIRES: the same token id.
  void TokenKept(const TokenKey& before, const Token& after, const Param* param);
  void TokenKept(const TokenKey& before, const Token& after);  // With Token::param.
  void TokenEnded(const TokenKey& key, EndReason reason);
  void SessionOpened(const Session& session);
  void SessionClosed(SessionId id);
  // `by_value`: the namespace's other rule of the flow id, if there is one; `rule` is then that of
  // the flow. The two share a record, so whoever sets one sets both.
  void RuleSet(const RuleEntry& rule, const RuleEntry* by_value = nullptr);
  void RuleRemoved(std::string_view name_space, FlowId flow);
  void HistoryAdded(std::span<const HistoryEntry> block);  // REQUIRES: a HistoryBlock.
  void HistoryDropped(uint64_t first_sequence);            // Of the block.
  void NamespaceSet(const NamespaceEntry& entry);
  void NamespaceRemoved(std::string_view name_space);
  void RateSet(const RateBucket& bucket);
  void RateDropped(const RateKey& key);
  void ClockMarked(const ClockMark& mark);
  // A ledger of an earlier format gets this one's version, with the first batch that may need it.
  void FormatSet(const Format& format);
  // Every live token's deadline is at least `deadline_ms`: where a sweep may start.
  void WatermarkRaised(int64_t deadline_ms);

  // Ends the batch; it is a SealedBatch from now on. `term`: of this writer of the ledger.
  // REQUIRES: not sealed yet. Nothing may be appended after it.
  void Sealed(const Seal& seal, uint64_t term = 0);

  bool empty() const { return records_ == 0; }
  bool sealed() const { return number_ != 0; }
  uint64_t number() const { return number_; }  // The seal's batch number; 0 before.
  uint64_t term() const { return term_; }
  uint32_t records() const { return records_; }
  // The records.
  std::string_view bytes() const {
    return std::string_view(bytes_).substr(kSealedBatchHeaderBytes);
  }
  // Header and records. REQUIRES: sealed().
  std::string_view sealed_bytes() const;

  // Tokens that were due and have a record of what became of them in this batch, for whoever bounds
  // them.
  uint32_t due() const { return due_; }
  void CountDue() { ++due_; }

  // Empty and unsealed again; keeps the buffer unless one huge batch made it huge.
  void Clear();

 private:
  void Append(std::string_view record);

  std::string bytes_ = std::string(kSealedBatchHeaderBytes, '\0');  // Room for the header first.
  uint32_t records_ = 0;
  uint32_t due_ = 0;
  uint64_t number_ = 0;
  uint64_t term_ = 0;
};

// Where records end up: one call for each key they change.
class KeyValueSink {
 public:
  virtual ~KeyValueSink() = default;
  virtual void Put(Family family, std::string_view key, std::string_view value) = 0;
  // For keys that are put exactly once and deleted exactly once (tokens, sessions, history).
  virtual void SingleDelete(Family family, std::string_view key) = 0;
  // For keys that may have been put more than once (rules, namespaces, rates).
  virtual void Delete(Family family, std::string_view key) = 0;
};

// Applies the records of one sealed batch in order; the seal must be the last of them. kCorruption
// when they are not what CommitBatch writes; the sink then has seen a part and must be thrown away.
// Views passed to the sink are valid during the call.
Status ApplyRecords(std::string_view records, KeyValueSink* sink);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_COMMIT_BATCH_H_
